"""The signals by which a person or a service manager ends the command line, and what each asks of the job."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from ..job import Job
    from ..sansio.lifecycle import EndReason

REASONS: Final[dict[int, EndReason]] = {
    signal.SIGINT: "caller",
    signal.SIGQUIT: "caller",
    signal.SIGTERM: "supervisor-shutdown",
    signal.SIGHUP: "supervisor-shutdown",
}


class Interruptions:
    """Takes the signals until the running loop is closed. The child has a session of its own and gets none of them."""

    def __init__(self) -> None:
        self.first: int | None = None
        """The first signal that came: the one that counts."""
        self._job: Job | None = None
        self._arrived: Final = asyncio.Event()
        self._tasks: Final[set[asyncio.Task[Any]]] = set()
        loop = asyncio.get_running_loop()
        for number in REASONS:
            # What our caller ignores stays ignored: nohup(1), and a background job of a script (POSIX sh, 2.11).
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._received, number)

    def attach(self, job: Job) -> None:
        """End this job when a signal comes, or now if one has come."""
        self._job = job
        if self.first is not None:
            self._end(job, self.first)

    def settled(self) -> None:
        """The job is over: a signal from now on is about what is still being shown."""
        self._job = None
        self._arrived.clear()

    async def bound(self, work: Coroutine[Any, Any, None], patience: float | None) -> bool:
        """Return whether `work` came to its end before a signal, and within `patience` seconds if that is not None.

        A signal that came since `settled`, or since the last call, counts. Raises: what `work` raises.
        """
        task = asyncio.ensure_future(work)
        arrival = asyncio.ensure_future(self._arrived.wait())
        await asyncio.wait({task, arrival}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        finished = task.done()
        arrival.cancel()
        task.cancel()
        await asyncio.wait({task, arrival})
        self._arrived.clear()
        if finished:
            task.result()
        return finished

    def _received(self, number: int) -> None:
        self._arrived.set()
        job = self._job
        if self.first is None:
            self.first = number
            if job is not None:
                self._end(job, number)
        elif job is not None:
            # Asked twice: the leader gets no grace any more. Members that outlive it have theirs [F3].
            self._keep(job.send_signal(signal.SIGKILL))

    def _end(self, job: Job, number: int) -> None:
        self._keep(job.terminate(REASONS[number]))

    def _keep(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop holds tasks weakly
        task.add_done_callback(self._tasks.discard)
