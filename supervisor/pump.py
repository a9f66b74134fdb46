"""The way of one stream's bytes: the sole reader's callback puts, one task takes, sanitises and hands on.

`data_received` is the only place where bytes of a pipe enter, and it never waits [B1]. At the high mark of its queue a
pump stops reading the pipe, which slows the child; it reads on at the low mark. A stop that lasts `stall_timeout`
while a write is in flight ends persistence instead [B4]. A stop that is our own slowness (a blocked loop, a hostile
input) only goes on.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from .clock import done_within
from .outbox import Outbox

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from .clock import Clock, Handle
    from .rawcopy import RawCopying
    from .sansio.stream import Stream
    from .sansio.words import CaptureReason
    from .sinks import Sink

SLICE_BYTES: Final = 256 * 1024
"""The most that is sanitised between two turns of the loop: the reader's own scratch size (facts 1)."""
LEAST_SLICE_BYTES: Final = 8 * 1024
TURN_SECONDS: Final = 0.002
"""About how long that may take: other jobs of the loop wait for it, and text that is slow to search is cut finer."""


class ByteQueue(asyncio.Queue[bytes]):
    """An `asyncio.Queue` that counts bytes. Putting never waits; whoever puts looks at `size` and stops reading."""

    _queue: deque[bytes]

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self.size = 0

    def _put(self, item: bytes) -> None:
        super()._put(item)
        self.size += len(item)

    def _get(self) -> bytes:
        item: bytes = super()._get()
        self.size -= len(item)
        return item

    async def batch(self, at_most: int) -> bytes:
        """Return what is there, joined, up to about `at_most` bytes; wait if nothing is. Empty means the end."""
        first = await self.get()
        if not first or self.empty() or len(first) >= at_most:
            return first
        parts = [first]
        size = len(first)
        queue = self._queue
        while queue and queue[0] and size + len(queue[0]) <= at_most:
            parts.append(self.get_nowait())
            size += len(parts[-1])
        return b"".join(parts)


def _slice(size: int, seconds: float) -> int:
    """Return how much to sanitise in the next turn, after `size` bytes took so long."""
    if seconds > TURN_SECONDS:
        return max(size // 2, LEAST_SLICE_BYTES)
    return min(size * 2, SLICE_BYTES) if seconds < TURN_SECONDS / 4 else size


class Tap(Protocol):
    """Sees decided text as it comes, kept or not."""

    def add(self, text: bytes) -> None:
        """Take `text`; never waits and never fails."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class Valve(Protocol):
    """The pipe's reader, as far as a pump needs it: `asyncio.ReadTransport` is one."""

    def pause_reading(self) -> None:
        """Read no more until told so."""
        ...

    def resume_reading(self) -> None:
        """Read on."""
        ...


class Pump:
    """One stream between its pipe and its sink. All methods run on the loop."""

    def __init__(
        self,
        stream: Stream,
        sink: Sink,
        *,
        clock: Clock,
        stall_timeout: float,
        high_mark: Callable[[], int],
        on_hold: Callable[[], None],
        on_unhold: Callable[[], None],
        on_progress: Callable[[], None],
    ) -> None:
        self.stream: Final = stream
        self.outbox: Final = Outbox(stream, sink, on_progress, clock=clock)
        self.valve: Valve | None = None
        self.tap: Tap | None = None
        self.raw_copy: RawCopying | None = None
        """Where the bytes go as they were read, if the caller wants that [B8]."""
        self.ended = False
        """Whether the pipe has reached its end or was closed by us."""
        self.cut = False
        """Whether we closed the pipe before its end."""
        self.boundary_known = True
        """False once a write never came back, so that nobody knows where the file ends [D8]."""
        self._queue: Final = ByteQueue()
        self._clock: Final = clock
        self._stall_timeout: Final = stall_timeout
        self._high_mark: Final = high_mark
        self._on_hold: Final = on_hold
        self._on_unhold: Final = on_unhold
        self._slice = LEAST_SLICE_BYTES
        self._low_mark = 0
        self._paused = False
        self._awaits_copy = False
        self._stall: Handle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to take what is put."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        """Take what the pipe gave; stop the pipe at the high mark."""
        self.stream.observe(len(data))
        self._queue.put_nowait(data)
        if not self._paused and self._queue.size >= (high := self._high_mark()):
            self._pause(high // 4)

    def pipe_ended(self) -> None:
        """The pipe gives nothing more. Called again, it changes nothing."""
        if not self.ended:
            self.ended = True
            self._release()
            self._queue.put_nowait(b"")

    def end_retention(self, reason: CaptureReason) -> None:
        """Keep nothing more, for this reason; sanitiser and preview go on [B5]."""
        self.outbox.end(reason)
        if self.raw_copy is not None:
            self.raw_copy.end(reason)

    async def finish(self, *, whole: bool) -> None:
        """Return when every byte was sanitised and the end decided. Precondition: `pipe_ended`.

        Bounded: a write on which that waits has `stall_timeout`, then it is given up [D8].
        """
        assert self._task is not None
        while not self._task.done():
            write = self.outbox.flight
            ended = await done_within(self._clock, self._stall_timeout, self._task)
            if not ended and write is not None and write is self.outbox.flight and not self.outbox.moves_up():
                self.outbox.end("writer-stalled")
        self._task.result()
        if self.stream.trusted and not self.stream.muted:
            self._contain(lambda: self._hand_on(self.stream.finish(whole=whole)))
        if self.tap is not None:
            self.tap.close()

    async def flush(self, *, spill: bool) -> None:
        """Write out what may be kept; `spill`: what is held in memory too.

        Bounded: each write has `stall_timeout`, then it is given up.
        """
        if self.raw_copy is not None:
            await asyncio.gather(self._flush_text(spill=spill), self.raw_copy.flush())
        else:
            await self._flush_text(spill=spill)

    async def _flush_text(self, *, spill: bool) -> None:
        written = await self.outbox.flush(self._stall_timeout)
        if written and spill:
            self.outbox.spill()
            written = await self.outbox.flush(self._stall_timeout)
        if not written:
            self.outbox.end("writer-stalled")
        self.boundary_known = await self.outbox.settle(self._stall_timeout)
        if not self.boundary_known:
            self.stream.reason = "writer-stuck"

    def keep_inline(self) -> None:
        """Count the text as kept: the receipt carries all of it [A7]."""
        self.stream.committed(self.stream.ledger.uncommitted)

    def abort(self) -> None:
        """Stop at once, for an ending that cannot be orderly."""
        if self._task is not None:
            self._task.cancel()
        self._release()
        self.end_retention("internal")

    def _hand_on(self, text: bytes) -> None:
        if text:
            if self.tap is not None:
                self.tap.add(text)
            self.outbox.put(text)

    async def _run(self) -> None:
        queue = self._queue
        while raw := await queue.batch(SLICE_BYTES):
            start = 0
            while self.stream.trusted and start < len(raw):
                piece = raw[start : start + self._slice]
                start += len(piece)
                self._contain(partial(self._sanitise, piece, more=start < len(raw)))
                if start < len(raw):
                    await asyncio.sleep(0)
            if self.raw_copy is not None:
                await self._copy(self.raw_copy, raw)
            await self.outbox.room()
            if self._paused and queue.size <= self._low_mark:
                self._release()
                if self.valve is not None:
                    self.valve.resume_reading()
            # One slice a turn: a firehose must not starve the other jobs of this loop.
            await asyncio.sleep(0)

    async def _copy(self, raw_copy: RawCopying, raw: bytes) -> None:
        """Put `raw` into the copy, and wait for room in it: the text that `raw` decided is on its way already."""
        raw_copy.put(raw)
        if raw_copy.has_room:
            return
        self._awaits_copy = True
        await raw_copy.room()
        self._awaits_copy = False
        if self._paused and self._stall is not None:
            # The pause so far was the copy's doing: a write of the text that is out has its whole time from here on.
            self._stall.cancel()
            self._arm_stall()

    def _sanitise(self, raw: bytes, *, more: bool) -> None:
        bulk = more or not self._queue.empty()
        began = time.perf_counter()
        self._hand_on(self.stream.feed(raw, bulk=bulk))
        if not bulk:
            self._hand_on(self.stream.quiet())
        if len(raw) >= self._slice:
            self._slice = _slice(self._slice, time.perf_counter() - began)

    def _contain(self, step: Callable[[], None]) -> None:
        """Run our own code on a child's bytes. A defect there costs the capture, never the child [B5]."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- contract B5 asks for exactly this containment
            self.stream.distrust()
            self.outbox.end("internal")
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"sanitising {self.stream.name} failed; its capture is given up", "exception": error}
            )

    def _pause(self, low_mark: int) -> None:
        self._paused = True
        self._low_mark = low_mark
        if self.valve is not None:
            self.valve.pause_reading()
        self._on_hold()
        self._arm_stall()

    def _release(self) -> None:
        if self._paused:
            self._paused = False
            self._on_unhold()
            if self._stall is not None:
                self._stall.cancel()

    def _arm_stall(self) -> None:
        self._stall = self._clock.call_at(self._clock.now() + self._stall_timeout, self._stalled)

    def _stalled(self) -> None:
        if not self._paused:
            return
        # It is not the text's write that holds the child up while its copy has no room; the copy has its own deadline.
        if self.outbox.flight is not None and not self._awaits_copy and not self.outbox.moves_up():
            self.outbox.end("writer-stalled")
        self._arm_stall()
