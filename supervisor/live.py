"""A bounded window on a stream's decided text, for whoever shows it while it comes, kept or not.

A follower reads committed bytes and so ends where retention ended. A person at a terminal wants the rest too: `Window`
keeps the last bytes of the decided text in memory, and a reader that falls behind is told how much it missed. It never
slows the pump [E1].
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a stream's text, and the bytes before it that were no longer there to be shown."""

    text: bytes
    skipped: int


class Window:
    """The last `capacity` bytes of a stream's decided text. One reader; it drops whole pieces only."""

    def __init__(self, capacity: int) -> None:
        self._capacity: Final = capacity
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._skipped = 0
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def add(self, text: bytes) -> None:
        """Take a piece; older ones fall out of the window."""
        self._pieces.append(text)
        self._size += len(text)
        while self._size > self._capacity and len(self._pieces) > 1:
            lost = len(self._pieces.popleft())
            self._size -= lost
            self._skipped += lost
        self._wake()

    def close(self) -> None:
        """No more will come."""
        self._closed = True
        self._wake()

    async def read(self) -> AsyncIterator[Shown]:
        """Yield what is decided, in order, until the stream ends. Cancellation: what was not yielded stays."""
        while True:
            if self._pieces:
                text = b"".join(self._pieces)
                skipped, self._skipped, self._size = self._skipped, 0, 0
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
