"""Time that passes when a test says so: an hour of a silent pipe takes a few milliseconds, on either loop.

Only the clock is played. Pipes, threads and files stay real and need real time, so before time moves, and after each
deadline that it reaches, the clock waits until the machine has nothing left to do. That is known, not guessed, of the
threads of storage; of the loop it is taken from its turns: in one turn a reader or a pump moves up to 256 KiB, each
piece makes the shell look at the clock, and a pipe and a queue that are full are empty after some thirty turns.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from ..storage import threads_at_work
from .failing_storage import held_threads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from ..clock import Clock

TURNS: Final = 30
"""Turns of the loop in which nobody looks at the clock, after which nothing is under way."""
TICKS: Final = 0.003
"""Real seconds for which, besides, nobody does: a reader looks at a chatty pipe once in a millisecond."""
LOOK_AGAIN: Final = 0.0005
"""Real seconds between two looks at threads that are at work."""
PATIENCE: Final = 20.0
"""Real seconds after which threads at work count as stuck, and the test is told so."""
MIDNIGHT: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Alarm:
    """A call that is to come."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when: Final = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """See `clock.Handle`."""
        self.callback = None

    def ring(self) -> None:
        """Make the call, unless it was cancelled meanwhile."""
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class VirtualClock:
    """A `Clock` for `Supervisor(clock=)` and for fake children. One loop; starts at 0 seconds, on a fixed day.

    It is for fake children: a real process does not wait for it.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._looks = 0
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._numbers: Final = itertools.count()
        self._armed: asyncio.Event | None = None

    def now(self) -> float:
        """Return the virtual seconds since the start."""
        self._looks += 1
        return self._now

    def wall(self) -> datetime:
        """Return the time of day that belongs to `now()`, in UTC."""
        return MIDNIGHT + timedelta(seconds=self._now)

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back when time has come to `when`; where that is now, at the loop's next turn."""
        alarm = Alarm(when, callback)
        if when <= self._now:
            asyncio.get_running_loop().call_soon(alarm.ring)
        elif not math.isinf(when):
            heapq.heappush(self._alarms, (when, next(self._numbers), alarm))
            if self._armed is not None:
                self._armed.set()
        return alarm

    async def sleep(self, seconds: float) -> None:
        """Return when so much time has passed on this clock."""
        await sleep(self, seconds)

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass: each deadline within them is kept at its own time, with all that follows from it.

        What was begun before (output on its way, a file being written) is finished first, and what begins at a deadline
        before the next one.

        Raises: ValueError for a number that is negative or infinite; as `settle`.
        Cancellation: a part of the time has passed.
        """
        if not seconds >= 0:
            raise ValueError("time does not go back")
        if math.isinf(seconds):
            raise ValueError("time does not come to an end")
        until = self._now + seconds
        await self.settle()
        while (alarm := self._next(until)) is not None:
            self._ring(alarm)
            await self._quiet(0.0)
        self._now = until
        await self.settle()

    async def settle(self) -> None:
        """Return when nothing is under way that does not wait for this clock or for the test.

        Raises: TimeoutError if a thread of storage does not come back for `PATIENCE` real seconds. A write that
        `FailingStorage` holds is not waited for.
        """
        await self._quiet(TICKS)

    @asynccontextmanager
    async def jumping(self) -> AsyncGenerator[None]:
        """Inside, time jumps to the next deadline whenever nothing else can run.

        A task that waits for anything but this clock (a real sleep, a socket, another thread) does not hold time up.

        Raises: RuntimeError in a block where it jumps already.
        """
        if self._armed is not None:
            raise RuntimeError("time jumps already")
        self._armed = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._jump(self._armed))
        try:
            yield
        finally:
            self._armed = None
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    async def _jump(self, armed: asyncio.Event) -> None:
        while True:
            armed.clear()
            await self.settle()
            alarm = self._next(math.inf)
            if alarm is None:
                await armed.wait()
            else:
                self._ring(alarm)

    def _next(self, until: float) -> Alarm | None:
        """Return the next alarm up to `until`, taken out."""
        while self._alarms and self._alarms[0][0] <= until:
            _, _, alarm = heapq.heappop(self._alarms)
            if alarm.callback is not None:
                return alarm
        return None

    def _ring(self, alarm: Alarm) -> None:
        self._now = max(self._now, alarm.when)
        # From the loop, as every clock does, so that what it raises is the loop's affair.
        asyncio.get_running_loop().call_soon(alarm.ring)

    async def _quiet(self, seconds: float) -> None:
        """Return after `TURNS` turns, and `seconds` of real time, in which no thread worked and nobody looked."""
        began = time.monotonic()
        since, turns, looks = began, 0, self._looks
        while turns <= TURNS or time.monotonic() - since < seconds:
            at_work = threads_at_work() - held_threads()
            if at_work or looks != self._looks:
                since, turns, looks = time.monotonic(), 0, self._looks
            if at_work and since - began > PATIENCE:
                raise TimeoutError("threads of storage are at work and do not come back, so time cannot move")
            await asyncio.sleep(LOOK_AGAIN if at_work else 0)
            turns += 1


async def sleep(clock: Clock, seconds: float) -> None:
    """Return when so much time has passed on any clock."""
    if seconds <= 0:
        return
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    handle = clock.call_at(clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        handle.cancel()
