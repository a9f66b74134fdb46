"""The unsanitised copy of one stream, which `keep="raw"` asks for beside the text (contract B8).

It is a file of its own with an outbox of its own. A full limit, a full or failing disk, a write that does not come back
end the copy alone, and the text goes on. A copy that is slower than the text slows the child, as the text would
[B4]; a single write that takes longer than `stall_timeout` ends that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .outbox import Outbox
from .storage import RAW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clock import Clock
    from .sansio.words import CaptureReason, CaptureState, StreamName
    from .sinks import Sink


class RawCopying:
    """One stream's copy while it grows. Used by the pump's task; `end` may be called by any callback of the loop."""

    def __init__(self, name: StreamName, sink: Sink, *, clock: Clock, stall_timeout: float) -> None:
        self.name: Final = raw_name(name)
        self.observed = 0
        """Bytes that were put."""
        self.size = 0
        """Bytes on disk, as far as is known."""
        self.reason: CaptureReason | None = None
        """The first cause why it is not whole."""
        self.boundary_known = True
        """False once a write never came back, so that nobody knows where the file ends [D8]."""
        self._outbox: Final = Outbox(self, sink, _nobody_follows, clock=clock)
        self._stall_timeout: Final = stall_timeout

    @property
    def retaining(self) -> bool:
        """Whether it still grows."""
        return self.reason is None

    @property
    def state(self) -> CaptureState:
        """What became of it. Precondition: it was flushed."""
        if self.reason is None:
            assert self.size == self.observed, "the copy ended with bytes missing and no reason"
            return "complete"
        return "failed" if self.reason in {"writer-stuck", "internal"} else "partial"

    def put(self, data: bytes) -> None:
        """Take what the pipe gave. Never waits: call `room` before the next one."""
        self.observed += len(data)
        self._outbox.put(data)

    @property
    def has_room(self) -> bool:
        """Whether less than a batch is waiting."""
        return self._outbox.has_room

    async def room(self) -> None:
        """Return when less than a batch is waiting; a write that takes longer than `stall_timeout` ends the copy."""
        while not self._outbox.has_room:
            write = self._outbox.flight
            if not await self._outbox.landed(self._stall_timeout) and write is self._outbox.flight:
                self.end("writer-stalled")

    async def flush(self) -> None:
        """Return when all of it is written, or given up: bounded, as the text's flush is."""
        if not await self._outbox.flush(self._stall_timeout):
            self.end("writer-stalled")
        self.boundary_known = await self._outbox.settle(self._stall_timeout)
        if not self.boundary_known:
            self.reason = "writer-stuck"

    def end(self, reason: CaptureReason) -> None:
        """Write nothing more of it. A later reason changes nothing."""
        self._outbox.end(reason)

    def committed(self, count: int) -> None:
        """`count` bytes more are on disk."""
        self.size += count

    def end_retention(self, reason: CaptureReason) -> None:
        """It is not whole, for this reason; a later one changes nothing."""
        self.reason = self.reason or reason

    def distrust(self) -> None:
        """Writing it failed by a fault of ours, which nobody may take for the disk's."""
        self.reason = "internal"


def raw_name(name: StreamName) -> str:
    """Return what the capture calls the copy of this stream."""
    return name + RAW


def first_bytes(chunks: Sequence[bytes], at_most: int) -> list[bytes]:
    """Return the first `at_most` bytes of `chunks`: raw bytes have no border to be kept."""
    kept: list[bytes] = []
    for chunk in chunks:
        if at_most <= 0:
            break
        kept.append(chunk[:at_most])
        at_most -= len(chunk)
    return kept


def _nobody_follows() -> None:
    """Do nothing: nobody is told of a copy's progress."""
