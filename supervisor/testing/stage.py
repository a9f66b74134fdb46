"""What a check of the contract suite is given: children that play a script, and a supervisor for each."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

from ..supervisor import Supervisor
from .fake_child import FakeChild

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from ..process import Child, Launch
    from ..sansio.receipt import ProcessFacts, Receipt
    from ..sansio.words import StreamName
    from .history import History

LOOK_AGAIN: Final = 0.001
"""Seconds between two looks at a snapshot, for whose change nobody sets an event."""


class ScriptedChild(Protocol):
    """A child of any kind that plays a script, so that one suite can check all kinds.

    Each method returns when it has been done, and is called once `spawn` has returned.
    """

    @property
    def command(self) -> Sequence[str]:
        """What to give to `Supervisor.start`."""
        ...

    @property
    def signals(self) -> Sequence[int]:
        """The signals that it took and could tell of, in order; at least those that it ignores."""
        ...

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Start it: what is checked."""
        ...

    async def fail_to_spawn(self) -> None:
        """Let its start fail, because the program of `command` is missing. Called before `spawn`."""
        ...

    async def feed(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Write all of `data`, waiting while the pipe is full."""
        ...

    async def close(self, stream: StreamName) -> None:
        """Close an output and live on."""
        ...

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """End with a code or by a signal; with `hold_pipes` a descendant keeps the pipes and takes over the script."""
        ...

    async def ignore(self, *numbers: int) -> None:
        """Do not end by these signals."""
        ...

    async def received(self, number: int) -> None:
        """Wait for a signal that it ignores."""
        ...

    async def read_stdin(self, count: int | None = None) -> bytes:
        """Read so much of stdin, less only at its end; None: all up to there."""
        ...


class ScriptedFake:
    """A `ScriptedChild` that is a `FakeChild`: the same steps, awaitable. An async context manager."""

    command = ("/nonexistent/fake-child",)

    def __init__(self, fake: FakeChild | None = None) -> None:
        self.fake: Final = FakeChild() if fake is None else fake
        self.signals: Final = self.fake.signals

    async def __aenter__(self) -> Self:
        """Return it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: the supervisor has released it."""

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """See `FakeChild.spawn`."""
        return await self.fake.spawn(protocol, launch)

    async def fail_to_spawn(self) -> None:
        """See `FakeChild.fail_to_spawn`."""
        self.fake.fail_to_spawn(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))

    async def feed(self, data: bytes, stream: StreamName = "stdout") -> None:
        """See `FakeChild.feed`."""
        await self.fake.feed(data, stream)

    async def close(self, stream: StreamName) -> None:
        """See `FakeChild.close`."""
        self.fake.close(stream)

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """See `FakeChild.exit`."""
        self.fake.exit(code, signal=signal, hold_pipes=hold_pipes)

    async def ignore(self, *numbers: int) -> None:
        """See `FakeChild.ignore`."""
        self.fake.ignore(*numbers)

    async def received(self, number: int) -> None:
        """See `FakeChild.received`."""
        await self.fake.received(number)

    async def read_stdin(self, count: int | None = None) -> bytes:
        """See `FakeChild.read_stdin`."""
        return await self.fake.read_stdin(count)


class ScriptedReplay(ScriptedFake):
    """A `ScriptedChild` that is a replayed history, for the checks in `REPLAYED`.

    It goes its own way: the steps of the script are those of the recording, so each returns at once.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history.child())

    async def feed(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Do nothing: it was recorded."""

    async def close(self, stream: StreamName) -> None:
        """Do nothing: it was recorded."""

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """Do nothing: it was recorded."""


@dataclass
class Stage:
    """Where one check plays."""

    make: Callable[[], AbstractAsyncContextManager[ScriptedChild]]
    directory: Path = field(default_factory=Path)
    """The conversation of the child that plays now."""
    spawning: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when that child is to be started."""

    @asynccontextmanager
    async def play(self) -> AsyncGenerator[tuple[ScriptedChild, Supervisor]]:
        """Yield a new child and an open supervisor that starts it, in a conversation of its own."""
        with tempfile.TemporaryDirectory(prefix="check-") as place:
            self.directory = Path(place)
            spawning = self.spawning = asyncio.Event()

            async def spawn(protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
                spawning.set()
                return await child.spawn(protocol, launch)

            # Whether a barrier holds is no matter of the child's, and costs more than all the rest.
            async with (
                self.make() as child,
                Supervisor(place, spawn=spawn, durability="none") as supervisor,
            ):
                yield child, supervisor

    def captures(self) -> list[Path]:
        """Return the directories of this conversation's captures."""
        return sorted((self.directory / "tool-outputs" / "captures").glob("*"))


async def until(true: Callable[[], object]) -> None:
    """Return when `true()` is."""
    while not true():  # noqa: ASYNC110 - it is a snapshot's
        await asyncio.sleep(LOOK_AGAIN)


def facts(receipt: Receipt | None) -> ProcessFacts:
    """Return what the receipt says of its process."""
    assert receipt is not None, "there is no receipt"
    assert receipt.process is not None, "the receipt has no process"
    return receipt.process


def expect(what: str, found: object, wanted: object) -> None:
    """Raise an AssertionError that shows both, unless they are equal: nobody rewrites the asserts of this module."""
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")
