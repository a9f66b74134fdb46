"""Where the followers of one stream are served, so that a crowd of them costs its child next to nothing [E1].

Followers of a stream mostly want the same piece at the same moment: one looks it up, the others take what it found. And
while the child writes faster than anybody reads, each look is followed by a rest in proportion to what it cost: the
followers together get a small share of the loop, the pump the rest, and what they are behind they make up when the
child pauses or ends. A child that writes slowly is followed at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .storage import Piece

FIREHOSE_BYTES: Final = 8 * 1024 * 1024
"""Bytes a second from which on a child counts as faster than its readers."""
REST_SHARE: Final = 19
"""A look that took one part of time is followed by so many parts of rest."""
REST_EACH_SECONDS: Final = 0.001
"""The rest for each follower that takes a page over, which costs some 50 µs of the loop."""

Place = tuple[int, int]
"""Offset and length, in bytes."""


class Desk:
    """Serves the followers of one stream; used on one loop. It keeps no follower, and no text but the last piece."""

    def __init__(self) -> None:
        self._looks: Final[dict[Place, asyncio.Future[Piece]]] = {}
        self._last: tuple[Place, Piece] | None = None
        self._turn: Final = asyncio.Lock()
        self._served = 0
        self._rest_until = 0.0
        self._seen: tuple[float, int] = (0.0, 0)

    async def piece(
        self,
        place: Place,
        look: Callable[[], Awaitable[Piece]],
        *,
        observed: int,
        at_least: int,
        committed: int = 0,
    ) -> Piece:
        """Return the piece at `place`: what `look` returns to us, or to somebody who wanted the same meanwhile.

        `observed` is how much the child has written by now, `committed` how much of it the file has. A look that found
        a shorter file than `at_least` may be older than the caller's last one, or than the stream's end, so it is not
        shared; nor is one that missed a commit which woke the caller, unless it filled the piece all the same.
        Cancellation: another one who waits looks instead.
        """

        def serves(found: Piece) -> bool:
            return found.size >= at_least and (found.size >= committed or len(found.data) == place[1])

        self._served += 1
        while (others := self._looks.get(place)) is not None:
            await asyncio.wait({others})
            if not others.cancelled() and serves(others.result()):
                return others.result()
        if self._last is not None and self._last[0] == place and serves(self._last[1]):
            return self._last[1]
        ours = self._looks[place] = asyncio.get_running_loop().create_future()
        try:
            found = await self._look(look, observed)
            ours.set_result(found)
        finally:
            del self._looks[place]
            ours.cancel()
        if len(found.data) == place[1]:
            # A full piece of a file that only grows stays what it is.
            self._last = (place, found)
        return found

    async def _look(self, look: Callable[[], Awaitable[Piece]], observed: int) -> Piece:
        async with self._turn:
            began = time.monotonic()
            if began < self._rest_until:
                await asyncio.sleep(self._rest_until - began)
                began = time.monotonic()
            found = await look()
            now = time.monotonic()
            at, before = self._seen
            self._seen = (now, observed)
            served, self._served = self._served, 0
            if observed - before > FIREHOSE_BYTES * (now - at):
                self._rest_until = now + max(REST_SHARE * (now - began), REST_EACH_SECONDS * served)
            return found
