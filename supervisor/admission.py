"""The door of a supervisor: a start comes in at once, waits for its turn, or is refused [F9]."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from .errors import SupervisorClosed, TooManyJobs
from .sansio.admission import Admission

if TYPE_CHECKING:
    from .sansio.admission import Policy


class Door:
    """Used on one loop."""

    def __init__(self, places: int | None, policy: Policy) -> None:
        self._admission: Final[Admission[asyncio.Future[None]]] = Admission(places, policy)

    @property
    def waiting(self) -> tuple[asyncio.Future[None], ...]:
        """One future for each start that waits, done when it comes in or will not; first come, first served."""
        return self._admission.waiting

    async def enter(self) -> None:
        """Return with a place, which the caller gives back by `leave`; without waiting where one is free.

        Raises: TooManyJobs, SupervisorClosed; with no place.
        Cancellation: no place is held; one that had come goes to the next in the queue.
        """
        turn = asyncio.get_running_loop().create_future()
        answer = self._admission.ask(turn)
        if answer == "refused":
            live = self._admission.live
            raise TooManyJobs(f"{live} jobs are live already", live=live)
        if answer == "admitted":
            return
        try:
            await turn
        except BaseException:
            _wake(self._admission.withdraw(turn))
            raise
        if not self._admission.take(turn):
            raise SupervisorClosed("the supervisor was closed while this start waited for a free place")

    def leave(self) -> None:
        """Give a place back."""
        _wake(self._admission.give_back())

    def close(self) -> None:
        """Send away whoever waits."""
        for turn in self._admission.close():
            _wake(turn)


def _wake(turn: asyncio.Future[None] | None) -> None:
    # One that was cancelled and has not run since still has its turn in the queue, and passes it on when it runs.
    if turn is not None and not turn.done():
        turn.set_result(None)
