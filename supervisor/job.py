"""One command that was started, as its caller sees it.

Waiting, reading and ending may be done by any number of tasks of the supervisor's loop; a job belongs to that loop.
"""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING

from . import following, waiting
from .live import Shown, Window, recall
from .process import Terminal
from .reporting import pending_receipt
from .request import PIPE
from .sansio.lifecycle import STATE_OF
from .sansio.page import PAGE_BYTES

if TYPE_CHECKING:
    import os
    import re
    from collections.abc import AsyncGenerator, AsyncIterator
    from datetime import datetime

    from .course import Course
    from .sansio.cursor import Cursor
    from .sansio.lifecycle import EndReason
    from .sansio.page import Page
    from .sansio.receipt import Receipt
    from .sansio.searching import Match
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
    def done(self) -> bool:
        """Whether the receipt is final: later than the exit, which a snapshot may show while the pipes drain."""
        return self._course.settled.done()

    @property
    def last_output_at(self) -> datetime | None:
        """When a pipe last gave bytes, kept or not, in UTC; None: never yet.

        It is counted from `receipt.started_at` by a clock that does not jump.
        """
        return self._course.last_output_at

    @property
    def idle_for(self) -> float | None:
        """Seconds since the last output, or since the start if there was none; after the exit, as it was then.

        None: there never was a child. Unlike `idle_limit` it counts the time for which the command was held up.
        """
        return self._course.idle_for

    @property
    def receipt(self) -> Receipt:
        """The receipt: final once the job has settled, before that a snapshot in state `pending`."""
        settled = self._course.settled
        if settled.done():
            return settled.result()
        return following.routed(pending_receipt(self._course).fitted(), self._course)

    async def wait(self) -> Receipt:
        """Return the final receipt: the same one for every caller, however many, however late.

        Cancellation: only this wait ends; the job goes on [F5].
        """
        return await asyncio.shield(self._course.settled)

    async def acknowledge(self) -> None:
        """Wait, and return when the job's completion is not offered to anybody any more: the caller has seen its end.

        May be called again, and by who was handed the completion elsewhere.
        Cancellation: the job goes on; its completion may be acknowledged all the same.

        Raises:
            StorageError: it cannot be written; it may be tried again.
        """
        await self.wait()
        await self._course.services.offers.acknowledge(self.capture_id)

    async def terminate(self, reason: EndReason = "caller") -> Receipt:
        """End the whole tree (TERM, `kill_after`, KILL) and return the final receipt.

        May be called again and after the end: the first cause stays [A3].
        Cancellation: the ending goes on; only this wait ends.

        Raises: ValueError for a reason that does not exist; nothing was ended.
        """
        if reason not in STATE_OF:
            raise ValueError(f"reason must be one of {', '.join(STATE_OF)}")
        self._course.request_end(reason)
        return await self.wait()

    async def send_signal(self, number: int) -> None:
        """Send a signal to the leader alone; one that has ended by itself meanwhile is no error.

        Raises: ValueError for a number that is no signal.
        """
        if number not in signal.valid_signals():
            raise ValueError(f"{number!r} is not a signal")
        if self._course.child is not None and self._course.child.exit is None:
            self._course.child.send_signal(number)

    async def write(self, data: bytes) -> None:
        """Write to the child's stdin; return when the buffer has room for more.

        With `pty` it is typed: a program sees a line once it ends with a line feed, and of one that is longer than
        4,095 bytes only the beginning; the byte 3 is Ctrl-C, and sends SIGINT to the foreground group.

        Raises:
            ValueError: the job was not started with `stdin=PIPE`.
            BrokenPipeError: the child has closed its stdin, or it was ended by `write_eof`.
        Cancellation: `data` is still written.
        """
        self._needs_pipe()
        await self._course.write(data)

    async def write_eof(self) -> None:
        """Close the child's stdin once what was written is in the pipe. May be called again.

        With `pty` the terminal stays open, and Ctrl-D is typed (twice, if a line is unfinished: the first submits it).
        It ends one reading; what reads next can be written to again.

        Raises: ValueError if the job was not started with `stdin=PIPE`.
        """
        self._needs_pipe()
        self._course.close_stdin()

    async def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size, in characters; its foreground group gets SIGWINCH if it is another one.

        One that is closed meanwhile is no error.

        Raises:
            TypeError, ValueError: a size that `Terminal` refuses.
            ValueError: the job was not started with `pty`.
        """
        size = Terminal(rows, columns)
        if self._course.request.options.pty is None:
            raise ValueError("this job was not started with pty=Terminal(...)")
        if self._course.child is not None:
            self._course.child.resize(size)

    async def read(
        self, stream: StreamName = "stdout", cursor: Cursor | None = None, max_bytes: int = PAGE_BYTES
    ) -> Page:
        """Return the page of committed text at `cursor` (None: the beginning), while the job lives and ever after.

        It never waits for the child: a page without text, whose `eof` is False, says that there is none yet. Where
        retention ended early nothing follows, though the child may go on; the page's state and reason say why.

        Raises:
            ValueError: the cursor is of another capture or stream, or `max_bytes` is below 4; no file was touched.
            CursorError: the cursor is outside the retained range, which it carries [E3].
            StorageError: the file is gone, was changed by somebody else, or cannot be read.
        """
        return await following.read(self._course, stream, cursor, max_bytes)

    def follow(
        self, stream: StreamName = "stdout", cursor: Cursor | None = None, max_bytes: int = PAGE_BYTES
    ) -> AsyncGenerator[Page]:
        """Yield the pages from `cursor` on, as text is committed; the last one has `eof`.

        It ends where nothing follows: at the job's end, or before it where retention ended early. Any number may
        follow, each at its own pace. To leave it earlier, close it (`contextlib.aclosing`); a cancelled follower leaves
        nothing behind.

        Raises:
            ValueError: at once, as `read`.
            CursorError, StorageError: while it is iterated, as `read`.
        """
        return following.follow(self._course, stream, cursor, max_bytes)

    async def live(self, stream: StreamName) -> AsyncIterator[Shown]:
        """Yield the decided text as it comes, kept or not, to its one reader.

        A reader that is behind gets committed text from the file, at its own pace, and misses none of it. Of other
        text the last `window_bytes` are there; what was missed of it is counted.

        Cancellation: what was not yielded is there for the next reader.

        Raises: ValueError if the job was not started with `window_bytes`.
        """
        # A foreground run is among `Supervisor.jobs` before it has streams.
        await asyncio.wait({self._course.launched})
        pump = self._course.pumps.get(stream)
        if pump is None:
            return
        if not isinstance(pump.tap, Window):
            raise ValueError("this job was not started with window_bytes")  # noqa: TRY004 -- a wrong call, not a wrong type
        async for shown in pump.tap.read(partial(recall, self._course, stream)):
            yield shown

    async def wait_for(
        self,
        pattern: str | re.Pattern[str],
        stream: StreamName = "stdout",
        cursor: Cursor | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- it goes by the job's clock, and is checked like the rest
    ) -> Match:
        """Return the first match in the stream's text from `cursor` on (None: the beginning of this run's output).

        What is searched is what `follow` yields: sanitised, committed, of this job alone. What was printed before the
        call counts. A string is found literally, as soon as it is there, in an unfinished line too (a prompt) and over
        line ends; it has at most 4,096 characters. A compiled pattern is searched for line by line, once a line is
        whole, so `^` and `$` are the line's ends and no match goes over one. Of a line with more than 4,096 characters
        it sees 2,048 before and after each place: a longer match there may be cut or missed. The search holds such a
        part of a line in memory and no more, and no text is searched more than twice.

        An unfinished last line counts as a line if the end of the output was seen. Of a foreground run, text that is
        still in memory is found when it goes to a file or when the run ends. Where a command closes its output and
        runs on, the wait goes on to its end.

        Raises:
            TypeError, ValueError: at once; a pattern that is of bytes, empty, too long or matches an empty text, a
                negative timeout, a cursor of another capture or stream.
            NeverReady: nothing follows and there was no match: the job has ended, or no more is kept (`job-limit`,
                `capture="none"`, no directory), which is told at once.
            TimeoutError: `timeout` seconds (None, inf: no limit) have passed.
            CursorError, StorageError: as `read`.

        Cancellation: the job goes on; nothing is left behind. Any number may wait.
        """
        return await waiting.wait_for(self._course, pattern, stream, cursor, timeout)

    async def wait_for_port(
        self,
        port: int,
        host: str = "127.0.0.1",
        timeout: float | None = None,  # noqa: ASYNC109 -- as `wait_for`
    ) -> None:
        """Return when a TCP connection to the port was accepted; it is closed at once, without a byte.

        It is tried every 50 ms, for a second each time at most. Whoever accepts is taken for the command: a server of
        an earlier run that still listens is not told from it.

        Raises:
            TypeError, ValueError: at once; no port, no host, a negative timeout.
            NeverReady: the job has ended before.
            TimeoutError: `timeout` seconds (None, inf: no limit) have passed.

        Cancellation: the job goes on; no socket is left.
        """
        await waiting.wait_for_port(self._course, port, host, timeout)

    async def wait_for_file(
        self,
        path: str | os.PathLike[str],
        timeout: float | None = None,  # noqa: ASYNC109 -- as `wait_for`
    ) -> None:
        """Return when there is something at `path`, whatever it is; a relative path begins where the command runs.

        It is looked for every 50 ms, and once more after the job's end. A file that was there before is found at once,
        and one that is found may not be written to its end.

        Raises:
            TypeError, ValueError: at once; no path, a negative timeout.
            NeverReady: the job has ended and left nothing there.
            TimeoutError: `timeout` seconds (None, inf: no limit) have passed.
            StorageError: it cannot be looked at (permission, a dead file system).

        Cancellation: the job goes on.
        """
        await waiting.wait_for_file(self._course, path, timeout)

    def _needs_pipe(self) -> None:
        if self._course.request.options.stdin != PIPE:
            raise ValueError("this job was not started with stdin=PIPE")
