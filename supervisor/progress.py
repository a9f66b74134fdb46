"""How followers learn that text was committed: one future that all who wait at a moment share.

Nobody is registered: a follower that is not waiting costs nothing, and telling any number of them is one step for the
pump [E1]. Nothing is polled.
"""

from __future__ import annotations

import asyncio


class Progress:
    """Counts what happened to one stream. Used on one loop."""

    def __init__(self) -> None:
        self.count = 0
        """Look at it before you look at the stream, then wait for what is `beyond` it."""
        self._next: asyncio.Future[None] | None = None

    def happened(self) -> None:
        """Wake everybody who waits."""
        self.count += 1
        if self._next is not None:
            self._next.set_result(None)
            self._next = None

    async def beyond(self, count: int) -> None:
        """Return once more than `count` has happened: at once, if it has. Cancellation: the others wait on."""
        while self.count <= count:
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._next)
