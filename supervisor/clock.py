"""What the shell waits on, behind one small seam: a clock that a test can move by hand.

Deadlines of jobs (limits, grace, drain, stall) go through it. What belongs to the machine does not: the one-millisecond
timer of a chatty pipe, and the deadlines of file system calls.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


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
