"""What the shell waits on, behind one small seam: a clock that a test can move by hand.

Deadlines of jobs (limits, grace, drain, stall, a write that does not come back) go through it. What belongs to the
machine does not: the one-millisecond timer of a chatty pipe, the rests of a desk, and the deadlines of file system
calls (opening, sealing, publishing, reading), which bound a thread and not a job.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Handle(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """The call does not come any more. May be called again, and after it came."""
        ...


class Clock(Protocol):
    """Time as a job sees it."""

    def now(self) -> float:
        """Return seconds of a clock that never steps (field report H5-075: wall clocks do)."""
        ...

    def wall(self) -> datetime:
        """Return the time of day, in UTC."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Handle:
        """Call back on the running loop as soon as `now()` is at least `when`."""
        ...


class SystemClock:
    """The machine's own clocks: `time.monotonic`, because uvloop's `loop.time()` has steps of a millisecond."""

    def now(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()

    def wall(self) -> datetime:
        """Return the time of day, in UTC."""
        return datetime.now(UTC)

    def call_at(self, when: float, callback: Callable[[], None]) -> Handle:
        """Call back on the running loop at `when`."""
        return asyncio.get_running_loop().call_later(max(0.0, when - time.monotonic()), callback)


async def done_within(clock: Clock, seconds: float, future: asyncio.Future[Any]) -> bool:
    """Return whether `future` is done: as soon as it is, or when `seconds` have passed on the clock.

    Cancellation: `future` goes on, as it does when the time is over.
    """
    if future.done():
        return True
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    handle = clock.call_at(clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
    try:
        await asyncio.wait({future, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        handle.cancel()
        over.cancel()
    return future.done()
