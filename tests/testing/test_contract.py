"""One contract for the fake child and for real ones, and a suite that catches each child which lies."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import SpawnError
from supervisor.testing import (
    CHECKS,
    REPLAYED,
    FakeChild,
    History,
    RealChild,
    Recorder,
    ScriptedFake,
    ScriptedReplay,
    check_child,
    contract,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.process import Child, Launch

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("make", [ScriptedFake, RealChild], ids=["fake", "real"])
@pytest.mark.parametrize("name", CHECKS)
async def test_fake_and_real_children_keep_the_contract(
    make: Callable[[], ScriptedFake | RealChild], name: str
) -> None:
    """Each check passes on both, on both loops; what a test learns from the one holds for the other."""
    await check_child(make, (name,))


async def recorded(name: str) -> list[History]:
    """Run a check on real children, and return what each of them did."""
    recorders: list[Recorder] = []

    def make() -> RealChild:
        recorders.append(Recorder())
        return RealChild(recorders[-1].spawn)

    await check_child(make, (name,))
    return [recorder.history() for recorder in recorders]


@pytest.mark.parametrize("name", REPLAYED)
async def test_a_replayed_history_keeps_the_contract(name: str) -> None:
    """What real children did in a check, recorded and replayed by fake ones through JSON, passes it again."""
    histories = iter([History.parse(history.to_json()) for history in await recorded(name)])
    await check_child(lambda: ScriptedReplay(next(histories)), (name,))


@pytest.mark.parametrize("name", REPLAYED)
async def test_a_history_of_something_else_is_caught(name: str) -> None:
    """A replay passes because of what it replays."""
    other = History.parse(
        '{"schema": 1, "command": [], "merge": false, "moments": [{"at": 0, "stream": "stdout", "text": "other"},'
        ' {"at": 0, "stream": "stdout", "end": true}, {"at": 0, "stream": "stderr", "end": true},'
        ' {"at": 0, "code": 9}]}'
    )
    with pytest.raises((AssertionError, TimeoutError)):
        await check_child(lambda: ScriptedReplay(other), (name,), patience=2)


class OutputAtTheEnd(ScriptedFake):
    """What mocks do: there is no output while the child lives."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = b""

    async def feed(self, data: bytes, stream: Any = "stdout") -> None:  # noqa: ANN401, ARG002
        """Keep it."""
        self.kept += data

    async def exit(self, code: int | None = None, **options: Any) -> None:  # noqa: ANN401
        """Write it."""
        await self.fake.feed(self.kept)
        self.fake.exit(code, **options)


class ExitAtTheEndOfOutput(ScriptedFake):
    """What `asyncio.subprocess.Process.wait` does: the exit is told when the pipes have ended."""

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """Tell it only then."""
        if not hold_pipes:
            self.fake.exit(code, signal=signal)


class EndsWithItsOutput(ScriptedFake):
    """A child cannot be without its outputs."""

    async def close(self, stream: Any) -> None:  # noqa: ANN401
        """Exit at once."""
        self.fake.close(stream)
        if stream == "stderr":
            self.fake.exit(4)


class HasNoDescendant(ScriptedFake):
    """The end of a process ends its pipes."""

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:  # noqa: ARG002
        """Close them."""
        self.fake.exit(code, signal=signal)


class LosesTheTail(ScriptedFake):
    """The last byte never arrives."""

    async def feed(self, data: bytes, stream: Any = "stdout") -> None:  # noqa: ANN401
        """Drop it."""
        await self.fake.feed(data[:-1], stream)


class HasOneOutput(ScriptedFake):
    """What goes to stderr is seen on stdout."""

    async def feed(self, data: bytes, stream: Any = "stdout") -> None:  # noqa: ANN401, ARG002
        """Mix them."""
        await self.fake.feed(data)


class HasNoStderr(ScriptedFake):
    """What goes to stderr is not seen at all."""

    async def feed(self, data: bytes, stream: Any = "stdout") -> None:  # noqa: ANN401
        """Drop it."""
        if stream == "stdout":
            await self.fake.feed(data)


class EndsByKill(ScriptedFake):
    """Whatever ends it is told as KILL."""

    def __init__(self) -> None:
        super().__init__(Killed())


class Killed(FakeChild):
    """The fake of `EndsByKill`."""

    def take_signal(self, number: int, *, group: bool) -> None:
        """Take another."""
        super().take_signal(9 if number == 15 else number, group=group)


class Obedient(ScriptedFake):
    """No signal can be ignored."""

    async def ignore(self, *numbers: int) -> None:
        """Do not."""


class AlwaysSucceeds(ScriptedFake):
    """Every exit is a success."""

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:  # noqa: ARG002
        """Exit with 0."""
        self.fake.exit(0, signal=signal, hold_pipes=hold_pipes)


class TellsSignalsAsCodes(ScriptedFake):
    """What a shell does with `$?`."""

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """Exit with 128 and the number."""
        self.fake.exit(code if signal is None else 128 + signal, hold_pipes=hold_pipes)


class HearsItsGroupOnly(ScriptedFake):
    """A signal to the leader alone is lost."""

    def __init__(self) -> None:
        super().__init__(GroupOnly())


class GroupOnly(FakeChild):
    """The fake of `HearsItsGroupOnly`."""

    def take_signal(self, number: int, *, group: bool) -> None:
        """Take it or not."""
        if group:
            super().take_signal(number, group=group)


class ReadsWhatItLikes(ScriptedFake):
    """Stdin is made up."""

    async def read_stdin(self, count: int | None = None) -> bytes:
        """Invent it."""
        return b"?" * (count or 1)


class FailsVaguely(ScriptedFake):
    """A failed start says nothing."""

    async def fail_to_spawn(self) -> None:
        """Have no number."""
        self.fake.fail_to_spawn(SpawnError("no", errno=None, fault="other"))


class Leaves(ScriptedFake):
    """A start leaves something when it is over, in `left`."""

    left: Final[list[Any]] = []

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Leave it."""
        self.leave()
        return await self.fake.spawn(protocol, launch)

    def leave(self) -> None:
        """Leave a descriptor."""
        self.left.append(os.open(os.devnull, os.O_RDONLY))


class LeavesTasks(Leaves):
    """The same with a task."""

    def leave(self) -> None:
        """Leave a task."""
        self.left.append(asyncio.get_running_loop().create_task(asyncio.Event().wait()))


LIES: Final = {
    "output_can_be_read_while_the_child_lives": OutputAtTheEnd,
    "exit_is_seen_while_a_descendant_holds_the_pipes": ExitAtTheEndOfOutput,
    "end_of_output_does_not_end_the_job": EndsWithItsOutput,
    "a_held_pipe_costs_one_drain_window": HasNoDescendant,
    "output_before_the_exit_is_complete": LosesTheTail,
    "stdout_and_stderr_are_apart": HasOneOutput,
    "merged_streams_share_one_pipe": HasNoStderr,
    "a_child_that_obeys_term_gets_no_kill": EndsByKill,
    "a_child_that_ignores_term_is_killed": Obedient,
    "a_descendant_is_ended_with_the_tree": AlwaysSucceeds,
    "code_and_signal_are_told_as_they_are": TellsSignalsAsCodes,
    "a_signal_to_the_leader_is_the_childs_affair": HearsItsGroupOnly,
    "stdin_goes_round": ReadsWhatItLikes,
    "without_stdin_there_is_nothing_to_read": ReadsWhatItLikes,
    "a_failed_start_is_one_typed_error": FailsVaguely,
    "it_settles_once_in_every_order_of_ends": AlwaysSucceeds,
    "a_cancelled_run_leaves_nothing": Leaves,
    "a_start_that_is_cancelled_leaves_nothing": LeavesTasks,
    "leaving_the_block_ends_the_child": EndsByKill,
}
"""For each check a child that keeps to everything but what this check is about."""


@pytest.mark.parametrize("name", CHECKS)
async def test_a_child_that_lies_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check fails on a lie of its own, by an error that names the check."""
    monkeypatch.setattr(contract, "CLEARANCE", 0.1)
    with pytest.raises((AssertionError, TimeoutError, RuntimeError, BrokenPipeError)) as caught:
        await check_child(LIES[name], (name,), patience=2)
    assert caught.value.__notes__ == [f"the check was {name}"]
    while Leaves.left:
        left = Leaves.left.pop()
        if isinstance(left, int):
            os.close(left)
        else:
            left.cancel()
            await asyncio.wait({left})
