"""The live file of one stream: it only grows, and its size is the committed length [D3, E2].

One call in flight at a time. The writer's thread owns the count and the digest while a call is out; everything else
belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final, Literal

from .descriptor import Descriptor
from .faults import SpoolFault, write_reason
from .files import write_some

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from ..sansio.words import CaptureReason
    from .files import Files
    from .writers import Writers

CALL_BYTES: Final = 256 * 1024
"""The most that one writev(2) is given, so that a slow disk's progress shows in `Spool.size` and a spool that was
given up stops soon after its call comes back."""
CALL_BUFFERS: Final = 1024
"""`IOV_MAX` on every system that we run on (writev(2))."""


class Spool:
    """An append-only file of 0600. Made by `Conversation.create_capture`; used by one task."""

    def __init__(
        self, files: Files, writers: Writers, number: int, path: Path, *, digest: Literal["sha256"] | None
    ) -> None:
        self.path: Final = path
        """Where the file is while it is live."""
        self.size = 0
        """Bytes that the kernel took: the file's size, also after a short write and while a call is out."""
        self.identity: tuple[int, int] | None = None
        """Device and inode of the file, once it is settled: names can be made to lead elsewhere."""
        self._files: Final = files
        self._writers: Final = writers
        self.descriptor: Final = Descriptor(files, number)
        self._hash: Final = hashlib.sha256() if digest == "sha256" else None
        self._flight: Future[None] | None = None
        self._fault: tuple[CaptureReason, int | None] | None = None

    @property
    def outstanding(self) -> bool:
        """Whether a write has not come back: `size` may still grow by it, and the digest is not to be had."""
        return self._flight is not None and not self._flight.done()

    @property
    def queued(self) -> int | None:
        """How many calls of others were served so far, while ours waits for a thread; None when none of ours does."""
        return None if self._flight is None else self._writers.queued(self._flight)

    async def write(self, chunks: Sequence[bytes]) -> None:
        """Return when the kernel has taken all of `chunks`. One hop to a thread, whatever their number.

        Cancellation: a write that had started goes on (`outstanding`); call `abandon` unless it will be awaited by
        looking at `outstanding` again.

        Raises:
            SpoolFault: it took `size` bytes in all and no more; from then on, every write is refused.
        """
        assert not self.outstanding, "one write at a time"
        self._refuse()
        flight = self._flight = self._writers.submit(self._write_all, [chunk for chunk in chunks if chunk])
        try:
            await asyncio.wrap_future(flight)
        except OSError as error:  # the thread could not be started
            self._fault = (write_reason(error.errno), error.errno)
            self._refuse()

    def abandon(self) -> None:
        """Write nothing more, and write off the thread of a call that is still out [B4, D8].

        When that call comes back, `size` takes in what it kept and nothing else touches the file.
        """
        self._fault = self._fault or ("writer-stalled", None)
        if self._flight is not None:
            self._writers.abandon(self._flight)

    def hexdigest(self) -> str | None:
        """Return the digest of the first `size` bytes; None without a digest, or while a write is outstanding."""
        return None if self._hash is None or self.outstanding else self._hash.hexdigest()

    def _refuse(self) -> None:
        if self._fault is not None:
            raise SpoolFault(*self._fault)

    def _write_all(self, chunks: list[bytes]) -> None:
        """Write on the writer's thread; whatever happens, count and digest hold exactly what the kernel took."""
        rest = Rest(chunks)
        try:
            with self.descriptor.borrow() as number:
                while buffers := rest.next_buffers():
                    self._refuse()
                    count = write_some(self._files, number, buffers)
                    self.size += count
                    for taken in rest.take(count):
                        if self._hash is not None:
                            self._hash.update(taken)
        except OSError as error:
            self._fault = self._fault or (write_reason(error.errno), error.errno)
            raise SpoolFault(*self._fault) from None


class Rest:
    """What is left to write of a batch, across short writes."""

    __slots__ = ("_chunks", "_position", "_skip")

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks: Final = chunks
        self._position = 0
        self._skip = 0

    def next_buffers(self) -> list[memoryview]:
        """Return what the next call should write, at most `CALL_BYTES` in `CALL_BUFFERS`; empty when all is written."""
        buffers: list[memoryview] = []
        room, position, skip = CALL_BYTES, self._position, self._skip
        while room and position < len(self._chunks) and len(buffers) < CALL_BUFFERS:
            buffer = memoryview(self._chunks[position])[skip : skip + room]
            buffers.append(buffer)
            room -= len(buffer)
            position, skip = position + 1, 0
        return buffers

    def take(self, count: int) -> list[memoryview]:
        """Take the first `count` bytes as written and return them."""
        taken: list[memoryview] = []
        while count:
            piece = memoryview(self._chunks[self._position])[self._skip : self._skip + count]
            taken.append(piece)
            count -= len(piece)
            self._skip += len(piece)
            if self._skip == len(self._chunks[self._position]):
                self._position, self._skip = self._position + 1, 0
        return taken
