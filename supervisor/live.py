"""A bounded window on a stream's decided text, for whoever shows it while it comes, kept or not.

A follower reads committed bytes and so ends where retention ended. A person at a terminal wants the rest too: `Window`
keeps the last bytes of the decided text in memory. A reader that falls behind is given what fell out of it from the
file, which holds the text from its first byte to where retention ended; only the rest is told as a gap. It never slows
the pump [E1].
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import following
from .errors import CursorError, StorageError
from .sansio.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .course import Course
    from .sansio.words import StreamName

RECALL_BYTES: Final = 256 * 1024
"""What is read from the file at once for a reader that is behind: all that it adds to the window's memory."""

Recall = Callable[[int, int], Awaitable[bytes]]
"""Returns text from the first offset on, up to the second one at most; nothing if it is not to be had."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a stream's text, and the bytes before it that could not be had any more."""

    text: bytes
    skipped: int


async def _forgotten(_start: int, _end: int) -> bytes:
    """Recall nothing: what fell out of the window is gone."""
    return b""


class Window:
    """The last `capacity` bytes of a stream's decided text. One reader; it drops whole pieces only."""

    def __init__(self, capacity: int) -> None:
        self._capacity: Final = capacity
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._start = 0
        """Where the text in memory begins."""
        self._shown = 0
        """Up to where text was yielded, or told as skipped."""
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def add(self, text: bytes) -> None:
        """Take a piece; older ones fall out of the window."""
        self._pieces.append(text)
        self._size += len(text)
        while self._size > self._capacity and len(self._pieces) > 1:
            lost = len(self._pieces.popleft())
            self._size -= lost
            self._start += lost
        self._wake()

    def close(self) -> None:
        """No more will come."""
        self._closed = True
        self._wake()

    async def read(self, recall: Recall = _forgotten) -> AsyncIterator[Shown]:
        """Yield what is decided, in order, until the stream ends; `recall` has what fell out of the window.

        Cancellation: what was not yielded stays.
        """
        while True:
            if self._shown < self._start and (text := await recall(self._shown, self._start)):
                self._shown += len(text)
                yield Shown(text, 0)
            elif self._pieces:
                text = b"".join(self._pieces)
                skipped = self._start - self._shown
                self._start += len(text)
                self._shown, self._size = self._start, 0
                self._pieces.clear()
                yield Shown(text, skipped)
            elif self._closed:
                return
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def recall(course: Course, stream: StreamName, start: int, end: int) -> bytes:
    """Return text of a stream from `start` on, up to `end` at most, as it is in the file once it is committed.

    Returns nothing if it is in no file: retention ended before it, a foreground run keeps it in memory, or the disk
    does not give or take it within `stall_timeout` [B4].
    """
    pump, progress = course.pumps[stream], course.progress[stream]
    cursor = Cursor(course.capture_id, stream, offset=start)
    try:
        async with asyncio.timeout(course.services.limits.stall_timeout):
            while course.capture is not None:
                seen = progress.count
                growing = pump.stream.retaining and not course.settled.done()
                if pump.stream.ledger.committed > start:
                    page = await following.read(course, stream, cursor, RECALL_BYTES)
                    # A window's piece may end inside a character, where a page never begins.
                    first = start - page.start.offset
                    if text := page.text.encode()[first : first + end - start]:
                        return text
                if not growing:
                    break
                await progress.beyond(seen)
    except (TimeoutError, CursorError, StorageError):
        pass  # its receipt will say what is wrong with the file
    return b""
