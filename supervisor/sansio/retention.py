"""What one job may keep (contract D5): a limit for both streams, a part of which stdout leaves alone.

The reserve is for the error at the end: a job that fills its limit with stdout can still say on stderr why it failed.
It is the *last* part of the limit, so stderr's earlier output does not use it up; at most half of the limit, so a small
limit is not all reserve. Bytes are taken before they are written and given back if they were not: what is counted is
never less than what lies on disk.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from .characters import cut

if TYPE_CHECKING:
    from ..limits import Limits
    from .words import StreamName

__all__ = ["RawRetention", "Retention", "cut"]


class Retention:
    """The account of one job, in bytes of sanitised text and, through `RawRetention`, of raw copies.

    `merged` says that there is no stderr to keep a reserve for (contract B7).
    """

    def __init__(self, limits: Limits, *, merged: bool = False) -> None:
        self._limit: Final = limits.job_bytes
        self._reserve: Final = 0 if merged else min(limits.stderr_reserve_bytes, limits.job_bytes / 2)
        self.for_copies: Final = self._limit / 2
        """What raw copies may take of it, so that they never cost the text more than half."""
        self._taken: Final[dict[StreamName, int]] = {"stdout": 0, "stderr": 0}

    @property
    def taken(self) -> int:
        """Bytes of both streams that are written or about to be."""
        return self._taken["stdout"] + self._taken["stderr"]

    def allow(self, stream: StreamName, wanted: int) -> int:
        """Return how many of `wanted` bytes may be taken for this stream now: 0 to `wanted`."""
        if math.isinf(self._limit):
            return wanted
        ceiling = self._limit - (self._reserve if stream == "stdout" else 0)
        return max(0, min(wanted, math.floor(ceiling) - self.taken))

    def take(self, stream: StreamName, count: int) -> None:
        """Count `count` bytes as this stream's. Raises: AssertionError if they are not allowed."""
        assert 0 <= count <= self.allow(stream, count), "more is taken than may be kept"
        self._taken[stream] += count

    def give_back(self, stream: StreamName, count: int) -> None:
        """Undo the taking of `count` bytes that did not reach the file. Raises: AssertionError if fewer were taken."""
        assert 0 <= count <= self._taken[stream], "more is given back than was taken"
        self._taken[stream] -= count


class RawRetention:
    """What the raw copies of a job's streams may keep: half of its limit, never more than is left (contract B8, D5).

    The text, which is what receipts, previews and readers are about, so has the other half for itself.
    """

    def __init__(self, retention: Retention) -> None:
        self._retention: Final = retention
        self._taken = 0

    def allow(self, stream: StreamName, wanted: int) -> int:
        """Return how many of `wanted` bytes may be taken for this stream's copy now: 0 to `wanted`."""
        most = self._retention.for_copies - self._taken
        if not math.isinf(most):
            wanted = max(0, min(wanted, math.floor(most)))
        return self._retention.allow(stream, wanted)

    def take(self, stream: StreamName, count: int) -> None:
        """Count `count` bytes as this stream's copy. Raises: AssertionError if they are not allowed."""
        assert 0 <= count <= self.allow(stream, count), "more is taken than may be kept"
        self._taken += count
        self._retention.take(stream, count)

    def give_back(self, stream: StreamName, count: int) -> None:
        """Undo the taking of `count` bytes that did not reach the file. Raises: AssertionError if fewer were taken."""
        assert 0 <= count <= self._taken, "more is given back than was taken"
        self._taken -= count
        self._retention.give_back(stream, count)
