"""The commands that a test expects, and the fake child that each of them gets."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Final, Self

from .fake_child import FakeChild
from .mistakes import check_list, checked_argument

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

    from ..clock import Clock
    from ..process import Child, Launch
    from .fake_child import Script

Pattern = Sequence[str | os.PathLike[str] | EllipsisType] | Callable[[tuple[str, ...]], bool] | None
"""Which commands are meant: these arguments, where `...` at the end stands for any others; those of which a function
says True; None: any."""


class UnexpectedCommand(AssertionError):
    """A command was started that the test did not expect; nothing was run."""


class MissingCommand(AssertionError):
    """A command that the test expected was never started."""


class FakeChildren:
    """Hands out fake children. Give `spawn` to a `Supervisor`.

    A command gets the child of the first expectation, in the order of `expect`, that matches it and was not used yet.
    Leaving it as a context manager is `check`, unless an exception is on its way already.

    Args:
        clock: What `delay` and the like of its children go by.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock: Final = clock
        self._expected: list[tuple[Pattern, FakeChild]] = []
        self._unexpected: list[tuple[str, ...]] = []
        self.started: Final[list[FakeChild]] = []
        """Those that were handed out, in that order; `launched` of each has its command."""

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Check it."""
        if error is None:
            self.check()

    def expect(
        self, command: Pattern = None, *, child: FakeChild | None = None, script: Script | None = None
    ) -> FakeChild:
        """Expect a command once more, and return the child that it gets.

        Args:
            command: Which commands are meant; None: the next one that no earlier expectation matches.
            child: The child; a new one if it is not given.
            script: What a new child does by itself.

        Raises: ValueError for a child and a script, or a `...` that is not the last argument; TypeError for what is no
            command.
        """
        if child is not None and script is not None:
            raise ValueError("a child has its script already")
        if not callable(command) and command is not None:
            check_list(command)
            command = [part if isinstance(part, EllipsisType) else checked_argument(part) for part in command]
            if ... in command[:-1]:
                raise ValueError("... stands for the rest of the arguments, so it comes last")
        made = child or FakeChild(script, clock=self._clock)
        self._expected.append((command, made))
        return made

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Start the child that is expected for this command. Give it to `Supervisor(spawn=)`.

        Raises:
            UnexpectedCommand: there is none; `check` raises it again.
            SpawnError: as the child's own.
        """
        for index, (pattern, child) in enumerate(self._expected):
            if _matches(pattern, launch.argv):
                del self._expected[index]
                self.started.append(child)
                return await child.spawn(protocol, launch)
        self._unexpected.append(launch.argv)
        unexpected = UnexpectedCommand(self._told_unexpected(launch.argv))
        for _, child in self._expected:
            child.not_coming(unexpected)  # else a test that feeds one of them would wait for ever
        raise unexpected

    def check(self) -> None:
        """Return if every command that was expected was started, and no other one, and no child's script has failed.

        Raises: what a script has raised; UnexpectedCommand, also where the code under test has swallowed the first;
            MissingCommand.
        """
        __tracebackhide__ = True
        for child in self.started:
            if child.script_error is not None:
                raise child.script_error
        if self._unexpected:
            raise UnexpectedCommand(self._told_unexpected(*self._unexpected))
        if self._expected:
            raise MissingCommand(
                "a command was expected and never started:\n"
                + _listed(*(_shown(item[0]) for item in self._expected))
                + "\nstarted were:\n"
                + self._told_started()
            )

    def _told_unexpected(self, *commands: tuple[str, ...]) -> str:
        expected = _listed(*(_shown(pattern) for pattern, _ in self._expected))
        return (
            "a command was not expected:\n"
            + _listed(*map(_shown, commands))
            + "\nstill expected were:\n"
            + expected
            + "\nstarted were:\n"
            + self._told_started()
        )

    def _told_started(self) -> str:
        return _listed(*(_shown(child.launched.argv) for child in self.started if child.launched is not None))


def _matches(pattern: Pattern, argv: tuple[str, ...]) -> bool:
    if pattern is None:
        return True
    if callable(pattern):
        return pattern(argv)
    wanted = tuple(pattern)
    if wanted and wanted[-1] is ...:
        return argv[: len(wanted) - 1] == wanted[:-1]
    return argv == wanted


def _shown(pattern: Pattern) -> str:
    if pattern is None:
        return "any command"
    if callable(pattern):
        return f"a command for which {getattr(pattern, '__qualname__', repr(pattern))} says True"
    return " ".join("..." if isinstance(part, EllipsisType) else shlex.quote(str(part)) for part in pattern)


def _listed(*lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines) or "  none"
