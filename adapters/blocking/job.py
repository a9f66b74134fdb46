"""A job for callers on any thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from .loop import anywhere, shared

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

    from supervisor import Cursor, Job, Page, Receipt

    from .loop import LoopThread

    StreamName = Literal["stdout", "stderr"]
    EndReason = Literal["caller", "time-limit", "idle-limit", "output-limit", "memory", "supervisor-shutdown"]

T = TypeVar("T")

PAGE_BYTES: Final = 65536
"""As `supervisor.Job.read` has it."""


class BlockingJob:
    """A started command; `supervisor.Job` for threads, whose words mean the same.

    Every method may be called from any thread, by any number at once, while the job runs and after its supervisor was
    closed. `timeout` is in seconds, None: no limit; after it `TimeoutError` is raised, only the wait ends, and the job
    goes on. The same holds for a wait that a signal's handler interrupts (`KeyboardInterrupt`).

    All of them raise `WrongProcess` in a fork of the process, and RuntimeError on the loop's own thread.
    """

    def __init__(self, job: Job, thread: LoopThread) -> None:
        self._job: Final = job
        self._thread: Final = thread
        self.id: Final = job.id
        """Its number in its supervisor."""
        self.capture_id: Final = job.capture_id
        """Its identity everywhere."""

    @property
    def pid(self) -> int | None:
        """The leader's process id; None if there never was a child."""
        return self._job.pid

    @property
    def done(self) -> bool:
        """Whether the receipt is final. Never waits."""
        self._thread.check()
        return self._job.done

    @property
    def receipt(self) -> Receipt:
        """The receipt: final once the job has settled, before that a snapshot in state `pending`."""
        self._thread.check()
        if self._job.done:
            return self._job.receipt
        return self._thread.ask(lambda: self._job.receipt)

    def wait(self, timeout: float | None = None) -> Receipt:
        """Return the final receipt: the same one for every caller. Raises: TimeoutError."""
        self._thread.check()
        if self._job.done:
            return self._job.receipt
        return self._thread.call(self._job.wait, timeout)

    def acknowledge(self, timeout: float | None = None) -> None:
        """Wait, and return when the job's completion is not offered to anybody any more.

        Raises: TimeoutError; StorageError if that cannot be written, after which it may be tried again.
        """
        self._call(self._job.acknowledge, timeout)

    def terminate(self, reason: EndReason = "caller", timeout: float | None = None) -> Receipt:
        """End the whole tree (TERM, `kill_after`, KILL) and return the final receipt.

        Raises: ValueError for a reason that does not exist; TimeoutError: the ending goes on.
        """
        return self._call(lambda: self._job.terminate(reason), timeout)

    def send_signal(self, number: int) -> None:
        """Send a signal to the leader alone. Raises: ValueError for a number that is no signal."""
        self._call(lambda: self._job.send_signal(number), None)

    def write(self, data: bytes, timeout: float | None = None) -> None:
        """Write to the child's stdin; return when the buffer has room for more.

        Raises:
            ValueError: the job was not started with `stdin=PIPE`.
            BrokenPipeError: the child has closed its stdin, or it was ended by `write_eof`.
            TimeoutError: there is no room yet; `data` is still written.
        """
        self._call(lambda: self._job.write(data), timeout)

    def write_eof(self) -> None:
        """Close the child's stdin once what was written is in the pipe. Raises: ValueError as `write`."""
        self._call(self._job.write_eof, None)

    def read(
        self,
        stream: StreamName = "stdout",
        cursor: Cursor | None = None,
        max_bytes: int = PAGE_BYTES,
        timeout: float | None = None,
    ) -> Page:
        """Return the page at `cursor` (None: the beginning); it never waits for the child, only for the disk.

        Raises: ValueError, CursorError, StorageError as `supervisor.Job.read`; TimeoutError.
        """
        return self._call(lambda: self._job.read(stream, cursor, max_bytes), timeout)

    def read_text(self, stream: StreamName = "stdout", timeout: float | None = None) -> str:
        """Wait for the job, and return all of a stream's kept text.

        Raises: StorageError: it cannot be read; TimeoutError.
        """

        async def reading() -> str:
            return await (await self._job.wait()).read_text(stream)

        return self._call(reading, timeout)

    def follow(
        self,
        stream: StreamName = "stdout",
        cursor: Cursor | None = None,
        max_bytes: int = PAGE_BYTES,
        timeout: float | None = None,
    ) -> Pages:
        """Return an iterator over the pages from `cursor` on, as text is committed; see `Pages`.

        Raises: ValueError: at once, as `read`.
        """
        self._thread.check()
        pages = self._job.follow(stream, cursor, max_bytes)  # checks; its first step is on the loop
        return Pages(shared.take() if self._thread.over else self._thread, pages, timeout, lent=self._thread.over)

    def _call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
        return anywhere(self._thread, function, timeout)


class Pages:
    """The pages of a stream, to its end; the last one has `eof`. An iterator for one thread at a time.

    Each step waits for `timeout` seconds at most and then raises `TimeoutError`; after it, or after an interrupt, the
    iteration goes on where it was: the next step misses nothing. Whoever leaves it early closes it, at best by `with`.
    A step raises CursorError and StorageError as `supervisor.Job.follow` does, which ends the iteration.
    """

    def __init__(
        self, thread: LoopThread, pages: AsyncGenerator[Page], timeout: float | None, *, lent: bool = False
    ) -> None:
        self._thread: Final = thread
        self._pages: Final = pages
        self._timeout: Final = timeout
        self._lent = lent
        self._step: Future[Page | None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Page:
        return self.next(self._timeout)

    def next(self, timeout: float | None = None) -> Page:
        """Return the next page. Raises: StopIteration at the end; TimeoutError; as the class says."""
        self._thread.check()
        if self._closed:
            raise StopIteration
        self._step = self._step or self._thread.begin(self._advance)
        try:
            page = self._step.result(timeout)
        except BaseException:
            if self._step.done() and self._step.exception(0) is not None:
                self.close()
            raise
        self._step = None
        if page is None:
            self.close()
            raise StopIteration
        return page

    def close(self) -> None:
        """Stop following; the job goes on. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._thread.tell(self._leave)
        if self._lent:
            self._lent = False
            shared.give_back(self._thread)

    def _leave(self) -> None:
        """Close the generator, on the loop."""
        self._task = asyncio.get_running_loop().create_task(self._leaving(self._task))

    async def _leaving(self, step: asyncio.Task[Any] | None) -> None:
        if step is not None and not step.done():
            step.cancel()
            await asyncio.wait({step})
        await self._pages.aclose()

    async def _advance(self) -> Page | None:
        self._task = asyncio.current_task()
        return await anext(self._pages, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
