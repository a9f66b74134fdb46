"""One of our own output descriptors, written from a thread, because a pager or a stopped terminal blocks its writer.

The hand-over is one piece at a time: whoever writes waits until the piece is out, and meanwhile the job's window keeps
the newest text and counts what it had to drop. So a slow reader makes gaps and never a stall, neither of the loop nor
of the job [B1, E1], and memory is bounded by one piece here and the window there.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Final


class Screen:
    """A descriptor that text is shown on. Used from one loop; its thread is a daemon, so a stuck write ends with us."""

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        """Why it takes no more; None while it does."""
        self._descriptor: Final = descriptor
        self._loop: Final = asyncio.get_running_loop()
        self._pieces: Final[SimpleQueue[tuple[bytes, asyncio.Future[None]] | None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._fresh = True

    async def write(self, text: bytes) -> bool:
        """Return whether `text` was written, once it is or cannot be. After an error nothing is tried again.

        Pieces are written in the order of the calls. Cancellation: the piece may still be written.
        """
        if self.error is not None or not text:
            return self.error is None
        self._fresh = text.endswith(b"\n")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"screen {self._descriptor}", daemon=True)
            self._thread.start()
        written: asyncio.Future[None] = self._loop.create_future()
        self._pieces.put((text, written))
        await written
        return self.error is None

    async def write_lines(self, lines: bytes, then: bytes = b"") -> bool:
        """Write whole lines that begin on a fresh one, and `then` at once after them."""
        return await self.write((b"" if self._fresh else b"\n") + lines + then)

    def close(self) -> None:
        """Let the thread end after what is in hand; one that is stuck in a write stays until the process ends."""
        if self._thread is not None:
            self._pieces.put(None)

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            text, written = piece
            if self.error is None:
                try:
                    write_all(self._descriptor, text)
                except OSError as error:
                    self.error = error
            with suppress(RuntimeError):  # the loop is closed: we were given up, and nobody waits
                self._loop.call_soon_threadsafe(_done, written)


def write_all(descriptor: int, text: bytes) -> None:
    """Return when all of `text` is written. Blocks. Raises: OSError."""
    rest = memoryview(text)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            # O_NONBLOCK belongs to the open file, so whoever shares our terminal or pipe may have set it (open(2)).
            waiter = select.poll()
            waiter.register(descriptor, select.POLLOUT)
            waiter.poll()


def _done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
