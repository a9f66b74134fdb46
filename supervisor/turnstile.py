"""One long step of a job in each turn of the loop, so that a thousand jobs at once do not stop it.

Beginning a job, and settling one, takes some milliseconds of the loop without a pause. Where many begin or end at
once the loop would do all of that in one turn, and nothing else meanwhile: no output would be read, no limit
kept, nobody answered, and the thread that starts processes would wait for the lock. So such steps queue here. A
job that is alone passes without waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final


class Turnstile:
    """Used on one loop."""

    def __init__(self) -> None:
        self._waiting: Final[deque[asyncio.Future[None]]] = deque()
        self._taken = False

    async def turn(self) -> None:
        """Return in a turn of the loop in which nobody else does; in the order of asking. Only jobs' own tasks ask.

        Cancellation: the turn is left unused.
        """
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            loop.call_soon(self._next)
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        if not self._waiting:
            self._taken = False
            return
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_result(None)
        asyncio.get_running_loop().call_soon(self._next)
