"""Time that a test moves: nothing happens too early, everything happens in its order, and real work is waited for."""

from __future__ import annotations

import asyncio
import math
import signal
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import Limits, Supervisor
from supervisor.clock import done_within
from supervisor.storage import Writers
from supervisor.testing import FailingStorage, FakeChild, VirtualClock, assert_receipt, virtual_clock

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

HOUR: Final = 3600.0


async def test_calls_come_in_the_order_of_their_times_and_see_them() -> None:
    """Whatever the order in which they were asked for; one that asks for another is followed at once."""
    clock, seen = VirtualClock(), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, clock.now()))

    clock.call_at(3, lambda: note("third"))
    clock.call_at(1, lambda: (note("first"), clock.call_at(2, lambda: note("second")), None)[-1])
    clock.call_at(math.inf, lambda: note("never"))
    clock.call_at(HOUR, lambda: note("not yet"))
    cancelled = clock.call_at(2.5, lambda: note("cancelled"))
    cancelled.cancel()
    cancelled.cancel()
    await clock.advance(10)
    assert seen == [("first", 1), ("second", 2), ("third", 3)]
    assert clock.now() == 10


async def test_a_time_that_has_come_is_called_from_the_loop() -> None:
    """Never within `call_at` itself."""
    clock, called = VirtualClock(), asyncio.Event()
    clock.call_at(0, called.set)
    assert not called.is_set()
    await asyncio.wait_for(called.wait(), 10)


async def test_what_a_call_raises_is_the_loops_affair() -> None:
    """As with the machine's clock; time goes on."""
    clock, told = VirtualClock(), list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(repr(context["exception"])))
    clock.call_at(1, lambda: {}[0])
    await clock.advance(2)
    assert (told, clock.now()) == (["KeyError(0)"], 2)


async def test_the_time_of_day_goes_with_it() -> None:
    """In UTC, from one fixed day on."""
    clock = VirtualClock()
    before = clock.wall()
    await clock.advance(HOUR)
    assert clock.wall() - before == timedelta(hours=1)
    assert before.utcoffset() == timedelta(0)
    with pytest.raises(ValueError, match="does not go back"):
        await clock.advance(-1)


async def test_sleeping_takes_virtual_time_only() -> None:
    """A cancelled sleeper leaves nothing behind."""
    clock = VirtualClock()
    sleeper, other = asyncio.create_task(clock.sleep(HOUR)), asyncio.create_task(clock.sleep(HOUR))
    await clock.sleep(0)
    await clock.advance(HOUR - 1)
    assert not sleeper.done()
    other.cancel()
    await clock.advance(1)
    await sleeper
    assert other.cancelled()


async def test_what_is_waited_for_counts_only_in_time() -> None:
    """`done_within`: done already, done in time, and too late, which leaves it alone."""
    clock, loop = VirtualClock(), asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    waiting = asyncio.create_task(done_within(clock, 5, done))
    await clock.advance(4)
    done.set_result(None)
    assert await waiting
    assert await done_within(clock, 0, done)
    late: asyncio.Future[None] = loop.create_future()
    waiting = asyncio.create_task(done_within(clock, 5, late))
    await clock.advance(4)
    assert not waiting.done()
    await clock.advance(1)
    assert not await waiting
    assert not late.done()


async def test_an_idle_limit_of_ten_minutes_is_over_at_ten_minutes(tmp_path: Path) -> None:
    """And each output starts it again; what was written right before time moved counts at its own time."""
    clock = VirtualClock()
    child = FakeChild(clock=clock)
    async with Supervisor(tmp_path, spawn=child.spawn, clock=clock, durability="none") as supervisor:
        job = await supervisor.start(["chatty"], idle_limit=600)
        for _ in range(5):
            await clock.advance(599)
            await child.feed(b"still here\n")
        await clock.advance(599.9)
        assert_receipt(job.receipt, process="running")
        await clock.advance(0.2)
        receipt = await job.wait()
    assert_receipt(receipt, process="timeout", reason="idle-limit", signal=signal.SIGTERM, capture="complete")
    assert receipt.duration == pytest.approx(5 * 599 + 600)


async def test_a_kill_ladder_costs_no_real_time(tmp_path: Path) -> None:
    """A time limit of ten hours, then an hour of grace for a child that ignores TERM: each step at its own time."""
    clock, began = VirtualClock(), time.monotonic()
    child = FakeChild(clock=clock)
    child.ignore(signal.SIGTERM)
    async with Supervisor(tmp_path, spawn=child.spawn, clock=clock, durability="none") as supervisor:
        job = await supervisor.start(["stubborn"], kill_after=HOUR, time_limit=10 * HOUR)
        await clock.advance(11 * HOUR - 1)
        assert child.signals == [signal.SIGTERM, signal.SIGCONT]
        await clock.advance(1)
        receipt = await job.wait()
    assert_receipt(receipt, process="timeout", reason="time-limit", forced=True, signal=signal.SIGKILL)
    assert time.monotonic() - began < HOUR / 100


async def test_a_tree_is_watched_in_virtual_time(tmp_path: Path) -> None:
    """Its leader ends on TERM and a descendant does not: it has its grace, and is seen to be gone after KILL [F3]."""
    clock = VirtualClock()
    child = FakeChild(clock=clock)
    async with Supervisor(tmp_path, spawn=child.spawn, clock=clock, durability="none") as supervisor:
        job = await supervisor.start(["leaves one behind"], drain_timeout=HOUR, kill_after=5)
        child.exit(4, hold_pipes=True)
        child.ignore(signal.SIGTERM)
        await clock.settle()
        ending = asyncio.create_task(job.terminate())
        await clock.advance(4.9)
        assert child.signals == [signal.SIGTERM, signal.SIGCONT]
        await clock.advance(0.2)
        receipt = await ending
    assert_receipt(receipt, process="exited", code=4, forced=True, survivors=(), kill_confirmed=True)


async def test_output_is_read_and_written_before_time_moves(tmp_path: Path) -> None:
    """A megabyte that is in the pipe at the exit costs nothing of the drain window, on a slow disk too [F2]."""
    clock, disk = VirtualClock(), FailingStorage()
    disk.write_slowly(0.01)
    child = FakeChild(clock=clock)
    text = b"0123456789abcde\n" * 65536
    limits = Limits(queue_bytes=64 * 1024)
    async with Supervisor(
        tmp_path, spawn=child.spawn, clock=clock, storage=disk, limits=limits, durability="none"
    ) as supervisor:
        job = await supervisor.start(["burst"], drain_timeout=HOUR)
        await child.feed(text)
        child.exit(0, hold_pipes=True)
        await clock.advance(HOUR - 1)
        assert_receipt(job.receipt, capture="pending", code=0)
        await clock.advance(1)
        receipt = await job.wait()
        assert await receipt.read_text("stdout") == text.decode()
    assert_receipt(receipt, capture="partial", capture_reason="drain-timeout")


async def test_time_jumps_only_while_nothing_can_run(tmp_path: Path) -> None:
    """A slow disk and a script that yields are waited for; then the limits come, in their order."""
    clock, disk = VirtualClock(), FailingStorage()
    disk.write_slowly(0.02)
    child = FakeChild(clock=clock)

    async def write() -> None:
        for _ in range(20):
            await child.feed(b"x" * 50_000)

    async with Supervisor(tmp_path, spawn=child.spawn, clock=clock, storage=disk, durability="none") as supervisor:
        async with clock.jumping():
            job = await supervisor.start(["x"], idle_limit=600, time_limit=HOUR)
            await asyncio.create_task(write())
            receipt = await job.wait()
        before = clock.now()
        await asyncio.sleep(0.02)
        assert clock.now() == before, "outside, time stands"
    assert_receipt(receipt, reason="idle-limit", capture="complete")
    assert (clock.now(), disk.written) == (600, 1_000_000)


async def test_time_does_not_jump_in_the_middle_of_a_burst() -> None:
    """Where no thread is at work, each chunk that is read says that something still runs."""
    clock = VirtualClock()

    async def burst(child: FakeChild) -> None:
        for _ in range(400):
            await child.feed(b"x" * 60_000)

    child = FakeChild(burst, clock=clock)
    async with Supervisor(spawn=child.spawn, clock=clock) as supervisor, clock.jumping():
        job = await supervisor.start(["x"], idle_limit=600, capture="none")
        receipt = await job.wait()
    assert_receipt(receipt, reason="idle-limit")
    stdout = receipt.streams["stdout"]
    assert stdout is not None
    assert (stdout.raw.observed, receipt.duration) == (24_000_000, 600)


async def test_jumping_waits_for_a_deadline_that_comes_later() -> None:
    """Without one there is nothing to jump to; an error in the block is the block's."""
    clock = VirtualClock()
    async with clock.jumping():
        await clock.settle()
        await clock.sleep(HOUR)
        assert clock.now() == HOUR
    with pytest.raises(KeyError):
        async with clock.jumping():
            raise KeyError


async def test_a_write_that_a_test_holds_does_not_hold_time_up(tmp_path: Path) -> None:
    """So the patience with a dead disk passes in virtual time [B4, D8]."""
    clock, disk, began = VirtualClock(), FailingStorage(), time.monotonic()
    disk.hold_writes()
    child = FakeChild(clock=clock)
    limits = Limits(stall_timeout=1000)
    async with Supervisor(
        tmp_path, spawn=child.spawn, clock=clock, storage=disk, limits=limits, durability="none"
    ) as supervisor:
        job = await supervisor.start(["x"])
        await child.feed(b"lost\n")
        child.exit(3)
        await clock.advance(900)
        assert disk.holding
        assert_receipt(job.receipt, code=3, capture="pending")
        await clock.advance(5000)
        receipt = await job.wait()
        disk.release()
    assert_receipt(receipt, code=3, capture="failed", capture_reason="writer-stuck", stdout="lost\n")
    assert time.monotonic() - began < 100


async def test_a_thread_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a clock that stands for ever."""
    monkeypatch.setattr(virtual_clock, "PATIENCE", 0.05)
    clock, writers, disk = VirtualClock(), Writers(), FailingStorage()
    disk._failing.open_gate.clear()
    future = writers.submit(disk._failing.open_gate.wait)
    with pytest.raises(TimeoutError, match="threads of storage"):
        await clock.advance(1)
    disk.release()
    assert await asyncio.wrap_future(future)
    await clock.advance(1)
    await writers.close()
