"""The machine's clocks, behind their seam."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from typing import Final

import pytest

from supervisor.clock import SystemClock, done_within

PATIENCE: Final = 30.0


@pytest.mark.asyncio
@pytest.mark.realtime
async def test_a_call_comes_once_and_not_before_its_time() -> None:
    """`now()` is at least the time that was asked for: the lifecycle compares, and a call too early would spin."""
    clock, called = SystemClock(), asyncio.Event()
    when = clock.now() + 0.01
    times: list[float] = []

    def call() -> None:
        times.append(clock.now())
        called.set()

    clock.call_at(when, call)
    await asyncio.wait_for(called.wait(), PATIENCE)
    assert len(times) == 1
    assert times[0] >= when - 0.001, "uvloop's timers have steps of a millisecond (facts 1)"


@pytest.mark.asyncio
async def test_a_time_that_has_passed_is_called_at_the_next_turn() -> None:
    """Never from within the call itself, which may be under a state change."""
    clock, called = SystemClock(), asyncio.Event()
    clock.call_at(clock.now() - 100, called.set)
    assert not called.is_set()
    await asyncio.wait_for(called.wait(), PATIENCE)


@pytest.mark.asyncio
async def test_a_cancelled_call_does_not_come() -> None:
    """It may be cancelled again, and after another one came."""
    clock, called = SystemClock(), asyncio.Event()
    calls: list[str] = []
    handle = clock.call_at(clock.now(), lambda: calls.append("cancelled"))
    handle.cancel()
    handle.cancel()
    last = clock.call_at(clock.now(), called.set)
    await asyncio.wait_for(called.wait(), PATIENCE)
    last.cancel()
    assert calls == []


@pytest.mark.asyncio
async def test_an_endless_timeout_is_a_time_like_any_other() -> None:
    """`stall_timeout=inf` means no deadline (design, "The public API"); both loops take it."""
    clock = SystemClock()
    handle = clock.call_at(clock.now() + math.inf, lambda: None)
    await asyncio.sleep(0)
    handle.cancel()


def test_time_does_not_run_backwards_and_the_time_of_day_is_in_utc() -> None:
    """Two clocks: one for durations, one for people."""
    clock = SystemClock()
    assert clock.now() <= clock.now()
    before = datetime.now(UTC)
    assert before <= clock.wall() <= datetime.now(UTC)
    assert clock.wall().utcoffset() == UTC.utcoffset(None)


@pytest.mark.asyncio
@pytest.mark.realtime
async def test_waiting_ends_when_the_time_is_over_and_leaves_what_it_waited_for() -> None:
    """Done already, done meanwhile, not done in time, and never to be done; a cancelled wait leaves it too."""
    clock, loop = SystemClock(), asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    assert not await done_within(clock, 0.005, future)
    waits = [asyncio.create_task(done_within(clock, seconds, future)) for seconds in (PATIENCE, math.inf, PATIENCE)]
    await asyncio.sleep(0)
    waits[2].cancel()
    await asyncio.wait({waits[2]})
    assert waits[2].cancelled()
    assert not future.done()
    future.set_result(None)
    assert await asyncio.gather(*waits[:2]) == [True, True]
    assert await done_within(clock, 0, future)
