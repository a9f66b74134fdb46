"""One command that was started, as its caller sees it.

Waiting, reading and ending may be done by any number of tasks of the supervisor's loop; a job belongs to that loop.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from .live import Shown, Window
from .reporting import pending_receipt
from .request import PIPE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .course import Course
    from .sansio.lifecycle import EndReason
    from .sansio.receipt import Receipt
    from .sansio.words import StreamName


class Job:
    """A started command."""

    def __init__(self, course: Course) -> None:
        self._course = course

    @property
    def id(self) -> str:
        """Its number in this supervisor."""
        return self._course.job_id

    @property
    def capture_id(self) -> str:
        """Its identity everywhere [A6]."""
        return self._course.capture_id

    @property
    def pid(self) -> int | None:
        """The leader's process id; None if there never was a child."""
        return None if self._course.child is None else self._course.child.get_pid()

    @property
    def receipt(self) -> Receipt:
        """The receipt: final once the job has settled, before that a snapshot in state `pending`."""
        settled = self._course.settled
        return settled.result() if settled.done() else pending_receipt(self._course)

    async def wait(self) -> Receipt:
        """Return the final receipt: the same one for every caller, however many, however late.

        Cancellation: only this wait ends; the job goes on [F5].
        """
        return await asyncio.shield(self._course.settled)

    async def terminate(self, reason: EndReason = "caller") -> Receipt:
        """End the whole tree (TERM, `kill_after`, KILL) and return the final receipt.

        May be called again and after the end: the first cause stays [A3].
        Cancellation: the ending goes on; only this wait ends.
        """
        self._course.request_end(reason)
        return await self.wait()

    async def send_signal(self, number: int) -> None:
        """Send a signal to the leader alone; one that has ended by itself meanwhile is no error.

        Raises: ValueError for a number that is no signal.
        """
        signal.Signals(number)
        if self._course.child is not None and self._course.child.exit is None:
            self._course.child.send_signal(number)

    async def write(self, data: bytes) -> None:
        """Write to the child's stdin; return when the buffer has room for more.

        Raises:
            ValueError: the job was not started with `stdin=PIPE`.
            BrokenPipeError: the child has closed its stdin, or it was ended by `write_eof`.
        Cancellation: `data` is still written.
        """
        self._needs_pipe()
        await self._course.write(data)

    async def write_eof(self) -> None:
        """Close the child's stdin once what was written is in the pipe. May be called again.

        Raises: ValueError if the job was not started with `stdin=PIPE`.
        """
        self._needs_pipe()
        self._course.close_stdin()

    async def live(self, stream: StreamName) -> AsyncIterator[Shown]:
        """Yield the decided text as it comes, kept or not, to its one reader; what was missed is counted.

        Raises: ValueError if the job was not started with `window_bytes`.
        """
        # A foreground run is among `Supervisor.jobs` before it has streams.
        await asyncio.wait({self._course.launched})
        pump = self._course.pumps.get(stream)
        if pump is None:
            return
        if not isinstance(pump.tap, Window):
            raise ValueError("this job was not started with window_bytes")  # noqa: TRY004 -- a wrong call, not a wrong type
        async for shown in pump.tap.read():
            yield shown

    def shut_down(self) -> None:
        """Begin to end the tree because the supervisor closes; returns at once."""
        self._course.request_end("supervisor-shutdown")

    def _needs_pipe(self) -> None:
        if self._course.request.options.stdin != PIPE:
            raise ValueError("this job was not started with stdin=PIPE")
