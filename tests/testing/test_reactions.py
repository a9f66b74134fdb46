"""What a fake child does on a signal, when a test wants something else than its end."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Supervisor
from supervisor.testing import FakeChild, VirtualClock, assert_receipt, delay, exit_with, ignore

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.testing import Reaction


@pytest.mark.asyncio
async def test_a_handler_exits_with_a_code_of_its_own(play: Callable[..., Any]) -> None:
    """TERM is caught: the job was cancelled, and the code is the handler's [A2]."""
    async with play() as (child, job):
        child.on_signal(signal.SIGTERM, exit_with(7))
        receipt = await job.terminate()
        with pytest.raises(BrokenPipeError, match="ended on signal 15"):
            await child.feed(b"late")
    assert_receipt(receipt, process="cancelled", code=7, signal=None, forced=False)
    assert child.signals == [signal.SIGTERM]


@pytest.mark.asyncio
async def test_one_signal_can_end_it_as_another(play: Callable[..., Any]) -> None:
    """A handler that cleans up and then raises its own end."""
    async with play() as (child, job):
        child.on_signal(signal.SIGTERM, exit_with(signal=signal.SIGINT))
        assert_receipt(await job.terminate(), code=None, signal=signal.SIGINT)


@pytest.mark.asyncio
@pytest.mark.parametrize(("reaction", "code", "number"), [(None, None, 15), (exit_with(3), 3, None)])
async def test_a_delayed_reaction_comes_at_its_time(reaction: Reaction | None, code: int | None, number: int) -> None:
    """Not a virtual moment earlier, by default or otherwise, and before the KILL that would come."""
    clock = VirtualClock()
    child = FakeChild(clock=clock)
    child.on_signal(signal.SIGTERM, delay(100, reaction))
    async with Supervisor(spawn=child.spawn, clock=clock) as supervisor:
        job = await supervisor.start(["slow"], kill_after=200)
        ending = asyncio.create_task(job.terminate())
        await child.received(signal.SIGTERM)
        await clock.advance(99.9)
        assert not ending.done()
        await clock.advance(0.2)
        assert_receipt(await ending, process="cancelled", code=code, signal=number, forced=False)


@pytest.mark.asyncio
async def test_a_reaction_that_is_too_late_does_nothing() -> None:
    """KILL came first; the delayed end finds nobody."""
    clock = VirtualClock()
    child = FakeChild(clock=clock)
    child.on_signal(signal.SIGTERM, delay(10, exit_with(0)))
    async with Supervisor(spawn=child.spawn, clock=clock) as supervisor:
        job = await supervisor.start(["slow"], kill_after=5)
        async with clock.jumping():
            receipt = await job.terminate()
        assert [alarm for _, _, alarm in clock._alarms if alarm.callback is not None] == []
        await clock.advance(100)
    assert_receipt(receipt, code=None, signal=signal.SIGKILL, forced=True)


@pytest.mark.asyncio
async def test_a_kill_can_take_its_time_or_do_nothing(play: Callable[..., Any]) -> None:
    """A process in state D; and no process can catch it."""
    child = FakeChild()
    with pytest.raises(ValueError, match="SIGKILL cannot be caught"):
        child.on_signal(signal.SIGKILL, exit_with(0))
    with pytest.raises(ValueError, match="SIGSTOP cannot be caught"):
        child.on_signal(signal.SIGSTOP, delay(1, delay(1, exit_with(0))))
    child.on_signal(signal.SIGKILL, delay(0.001))
    child.on_signal(signal.SIGTERM, ignore())
    async with play(child, kill_after=0) as (_, job):
        assert_receipt(await job.terminate(), signal=signal.SIGKILL, kill_confirmed=True)


def test_what_cannot_be_is_refused() -> None:
    """At once, where the script is written."""
    with pytest.raises(ValueError, match="not both"):
        exit_with(1, signal=9)
    with pytest.raises(ValueError, match="0 to 255"):
        exit_with(256)
    with pytest.raises(ValueError, match="after its signal"):
        delay(-1)
    with pytest.raises(ValueError, match="999"):
        FakeChild().on_signal(999, ignore())


@pytest.mark.asyncio
async def test_a_script_runs_from_the_start_and_ends_with_the_child(play: Callable[..., Any]) -> None:
    """One that is ended in the middle of a step is over, and leaves no task."""

    async def count(child: FakeChild) -> None:
        number = 0
        while True:
            await child.feed(b"%d\n" % number)
            number += 1
            await asyncio.sleep(0)

    async with play(FakeChild(count)) as (_, job):
        receipt = await job.terminate()
    assert receipt.stdout.startswith("0\n1\n") or receipt.stdout == ""
    assert_receipt(receipt, process="cancelled", signal=signal.SIGTERM)


@pytest.mark.asyncio
async def test_a_script_that_fails_ends_its_child_and_is_told(play: Callable[..., Any]) -> None:
    """Else the job would wait for ever, and the test hear of nothing."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def fail(child: FakeChild) -> None:
        await child.feed(b"before\n")
        raise AssertionError("a mistake")

    async with play(FakeChild(fail)) as (_, job):
        receipt = await job.wait()
    assert_receipt(receipt, process="exited", signal=signal.SIGABRT, stdout="before\n")
    assert [str(context["exception"]) for context in told] == ["a mistake"]
