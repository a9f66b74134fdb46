"""The ends of jobs for callers on any thread: asked for one by one, or given to a callback."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from .loop import anywhere, log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Self

    from supervisor import Completion, Receipt

    from .loop import LoopThread

    Callback = Callable[["BlockingCompletion"], object]


class BlockingCompletion:
    """One job's end, handed to one consumer; `supervisor.Completion` for threads."""

    def __init__(self, completion: Completion, thread: LoopThread) -> None:
        self._completion: Final = completion
        self._thread: Final = thread
        self.receipt: Final[Receipt] = completion.receipt
        """The job's receipt."""
        self.redelivered: Final = completion.redelivered
        """It was handed to somebody before, who died without acknowledging it."""

    def acknowledge(self, timeout: float | None = None) -> None:
        """Return when it is never offered again. May be called again, and after the supervisor was closed.

        Raises: StorageError if that cannot be written, after which it may be tried again; TimeoutError.
        """
        anywhere(self._thread, self._completion.acknowledge, timeout)


class BlockingCompletions:
    """An iterator over completions, which any number of threads may ask at a time; see `Supervisor.completions`.

    It ends when the supervisor is closed. Each step waits for `timeout` seconds at most and then raises `TimeoutError`;
    nothing is lost by that, and the next step goes on.
    """

    def __init__(self, thread: LoopThread, completions: AsyncIterator[Completion], timeout: float | None) -> None:
        self._thread: Final = thread
        self._completions: Final = completions
        self._timeout: Final = timeout
        self._unclaimed: Final[deque[Completion]] = deque()
        """What came for a thread that was interrupted in that very moment."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> BlockingCompletion:
        return self.next(self._timeout)

    def next(self, timeout: float | None = None) -> BlockingCompletion:
        """Return the next completion. Raises: StopIteration once the supervisor is closed; TimeoutError."""
        self._thread.check()
        if self._thread.over:
            raise StopIteration
        # The limit is on the loop, where nothing that was claimed can get lost between two threads.
        completion = self._thread.call(partial(self._within, timeout), undo=self._take_back)
        if completion is None:
            raise StopIteration
        return BlockingCompletion(completion, self._thread)

    async def _within(self, seconds: float | None) -> Completion | None:
        if self._unclaimed:
            return self._unclaimed.popleft()
        async with asyncio.timeout(seconds):
            return await anext(self._completions, None)

    def _take_back(self, completion: Completion | None) -> None:
        if completion is not None:
            self._unclaimed.append(completion)


class Subscription:
    """Gives each completion to a callback, one after the other, on a daemon thread of its own.

    A completion is acknowledged after the callback returned. One whose callback raised, or that could not be
    acknowledged, is reported by the logger `spoolvisor.blocking`; the next ones are given out all the same, and a later
    supervisor of the directory offers it again. It ends when the supervisor is closed.
    """

    def __init__(self, thread: LoopThread, completions: AsyncIterator[Completion], callback: Callback) -> None:
        self._loop_thread: Final = thread
        self._completions: Final = completions
        self._callback: Final = callback
        self._stopping: Final = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread: Final = threading.Thread(target=self._work, name="spoolvisor-completions", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """Return when no callback runs any more, and none will; what was not given out stays for others.

        From inside the callback it returns at once. Raises: TimeoutError: a callback runs still.
        """
        self._loop_thread.check()
        self.stop_soon()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise TimeoutError("a callback runs still")

    def stop_soon(self) -> None:
        """Let no callback begin from now on; return at once."""
        self._stopping.set()
        self._loop_thread.tell(self._wake)

    def _wake(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                completion = self._loop_thread.call(self._advance)
            except RuntimeError:  # the loop has ended
                return
            if completion is None:
                return
            capture_id = completion.receipt.capture_id
            try:
                handed = BlockingCompletion(completion, self._loop_thread)
                self._callback(handed)
                handed.acknowledge()
            except Exception:  # noqa: BLE001 -- a callback is somebody else's: the next ends are not its hostages
                log.exception("the completion of %s was not acknowledged", capture_id)

    async def _advance(self) -> Completion | None:
        """Return the next completion; None when there is none, or none is wanted any more."""
        loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._stopping.is_set():
            return None
        coming = loop.create_task(_next(self._completions))
        stopped = loop.create_task(self._stop.wait())
        try:
            await asyncio.wait({coming, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (coming, stopped):
                if not task.done():
                    task.cancel()
        await asyncio.wait({coming, stopped})
        return None if coming.cancelled() else coming.result()


async def _next(completions: AsyncIterator[Completion]) -> Completion | None:
    return await anext(completions, None)
