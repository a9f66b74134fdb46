"""Decided text on its way to a sink: one write in flight, one batch growing behind it.

The batch that waits is written in one hop as soon as the one before it is back, so a slow disk gets large writes and a
fast one gets them at once. The two together are the only decided text of a stream that is in memory [B3].

A write that does not come back can be given up: the stream goes on without a disk, and the write's own end, if it ever
has one, is looked at when the job settles [B4, D8].
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from .clock import SystemClock, done_within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from .clock import Clock
    from .sansio.words import CaptureReason
    from .sinks import Kept, Sink

BATCH_BYTES: Final = 1024 * 1024
"""The most that one write carries, and that waits behind it: the size of a grown pipe (facts 1)."""


class Account(Protocol):
    """Where an outbox books what became of its text: a `Stream`, or a raw copy."""

    @property
    def name(self) -> str:
        """What is written, for messages."""
        ...

    @property
    def retaining(self) -> bool:
        """Whether it is still meant to be written."""
        ...

    def committed(self, count: int) -> None:
        """`count` bytes more are on disk."""
        ...

    def end_retention(self, reason: CaptureReason) -> None:
        """Nothing more will be written; a later reason changes nothing."""
        ...

    def distrust(self) -> None:
        """Our own code failed on it."""
        ...


class Outbox:
    """Writes one stream's text in order. Used by one task; its callbacks run on the same loop."""

    def __init__(
        self, stream: Account, sink: Sink, on_progress: Callable[[], None], *, clock: Clock | None = None
    ) -> None:
        self.sink = sink
        self._clock: Final = clock or SystemClock()
        self._stream: Final[Account] = stream
        self._on_progress: Final = on_progress
        self._batch: list[bytes] = []
        self._size = 0
        self._flight: asyncio.Task[Kept] | None = None
        self._abandoned: asyncio.Task[Kept] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._put: Callable[[bytes], None] = self._enqueue
        self._line: int | None = None

    @property
    def flight(self) -> asyncio.Task[Kept] | None:
        """The write that is out, if one is; for telling it from the next one."""
        return self._flight

    @property
    def busy(self) -> bool:
        """Whether a write is out, an abandoned one included: the file may still grow."""
        return self._flight is not None or (self._abandoned is not None and not self._abandoned.done())

    def put(self, text: bytes) -> None:
        """Take text to write; it is dropped once retention has ended. Never waits: call `room` before the next one."""
        self._put(text)

    @property
    def has_room(self) -> bool:
        """Whether less than a batch is waiting."""
        return self._size < BATCH_BYTES

    async def room(self) -> None:
        """Return when less than a batch is waiting. Cancellation: nothing is lost."""
        while not self.has_room:
            await self._change()

    def moves_up(self) -> bool:
        """Whether the write that is out waits for others, of which some were served since this was asked last.

        A thousand jobs wait for each other longer than for any disk.
        """
        before, self._line = self._line, self.sink.in_line()
        return self._line is not None and self._line != before

    async def landed(self, seconds: float) -> bool:
        """Return True when the write that is out now is back and booked, False when the disk took over `seconds`."""
        flight = self._flight
        if flight is not None:
            while not await done_within(self._clock, seconds, flight):
                if not self.moves_up():
                    return False
            while self._flight is flight:
                await self._change()
        return True

    def spill(self) -> None:
        """Let a sink that held everything in memory write it now. Precondition: nothing is in flight."""
        if self._stream.retaining:
            self._launch(self.sink.spill())

    async def flush(self, seconds: float) -> bool:
        """Return True when everything is written, False when one write alone took longer than `seconds`.

        Each write has its own deadline, so that a slow disk is not mistaken for a stuck one.
        """
        while self._flight is not None:
            if not await self.landed(seconds):
                return False
        return True

    def end(self, reason: CaptureReason) -> None:
        """Write nothing more. A write in flight is abandoned; `settle` looks at it once more."""
        self._stream.end_retention(reason)
        self._put = self._drop
        self._batch.clear()
        self._size = 0
        if self._flight is not None:
            self._abandoned, self._flight = self._flight, None
            self.sink.give_up()
        self._changed()
        self._on_progress()

    async def settle(self, seconds: float) -> bool:
        """Give an abandoned write up to `seconds` to come back, and book what it kept. Returns False if it did not."""
        if self._abandoned is None:
            return True
        if await done_within(self._clock, seconds, self._abandoned):
            self._take_in(self._abandoned)
            self._abandoned = None
            return True
        self._abandoned.cancel()
        await asyncio.wait({self._abandoned})
        self._abandoned = None
        late = self.sink.late()
        if late is not None:
            self._stream.committed(late)
        return late is not None

    def _enqueue(self, text: bytes) -> None:
        if not text:
            return
        self._batch.append(text)
        self._size += len(text)
        if self._flight is None:
            self._launch_batch()

    def _drop(self, text: bytes) -> None:
        """The counting discarder: the ledger has counted the text as uncommitted already."""

    def _launch_batch(self) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        self._launch(self.sink.write(batch))

    def _launch(self, write: Coroutine[None, None, Kept]) -> None:
        self._flight = asyncio.get_running_loop().create_task(write)
        self._flight.add_done_callback(self._landed)

    def _landed(self, flight: asyncio.Task[Kept]) -> None:
        if flight is not self._flight:  # abandoned: it adds nothing any more
            self._on_progress()
            return
        self._flight = None
        self._take_in(flight)
        if self._batch:
            self._launch_batch()
        self._changed()
        self._on_progress()

    def _take_in(self, write: asyncio.Task[Kept]) -> None:
        """Book what a write that is over has kept."""
        if write.cancelled():
            self._lose_trust()
        elif (error := write.exception()) is not None:
            # Our own defect: a sink reports the world's faults as values [B5].
            self._lose_trust()
            message = f"writing {self._stream.name} failed; its capture is given up"
            write.get_loop().call_exception_handler({"message": message, "exception": error})
        else:
            kept = write.result()
            self._stream.committed(kept.count)
            if kept.ended is not None:
                self.end(kept.ended)

    def _lose_trust(self) -> None:
        self._stream.distrust()
        self.end("internal")

    def _changed(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _change(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
