"""Daemon threads for calls that may never return [D8].

A `ThreadPoolExecutor` joins its threads at exit, so one write blocked in a dead file system keeps the program alive for
ever, and a few of them starve everything else that shares the pool (facts 1). Here a stuck thread is *written off*: it
no longer counts against the limit, another takes its place, and it ends by itself if its call ever returns.

Accounting: `backlog` is the number of queued calls that no idle thread was promised to. A thread that ends a call
takes one from the backlog or becomes idle; `submit` promises its call to an idle thread or starts a new one.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import math
import threading
import time
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from aiofiles.base import wrap

from ..errors import StorageError
from .faults import storage_error
from .watched import Deadline, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 16
"""Threads at work at one time (design, "On disk"); further calls queue."""
CAP: Final = 64
"""All threads, written-off ones included: past it calls queue until their deadline."""
JOIN_SECONDS: Final = 1.0
"""How long a clean end waits for threads that are neither stuck nor written off; they need microseconds."""

THREAD_NAME: Final = "spoolvisor-writer"
_numbers: Final = itertools.count(1)
_in_flight: Final[set[_Call]] = set()
"""The calls of all writers whose results their loops have not been told of. Adding and removing is atomic."""


def threads_at_work() -> frozenset[int | None]:
    """Return the idents of the threads that make a call now, None among them if one is queued.

    For a clock that is moved by hand: while the machine is at work, no time should pass. When nothing is returned, each
    loop that waited for a call has been told, though it may not have looked yet.
    """
    return frozenset(None if call.thread is None else call.thread.ident for call in tuple(_in_flight))


class _Call:
    """One submitted call and the future of its result."""

    __slots__ = ("began", "function", "future", "thread")

    def __init__(self, function: Callable[[], object], future: Future[Any]) -> None:
        self.function: Final = function
        self.future: Final = future
        self.thread: threading.Thread | None = None
        self.began: float | None = None
        """When the thread took it, by `time.monotonic`."""

    def run(self, settle: Callable[[], None]) -> None:
        """Run the function; `settle` is called before its result is visible."""
        try:
            result = self.function()
        except BaseException as error:  # noqa: BLE001 - an executor's contract: whatever it is, it goes to the caller
            settle()
            self.future.set_exception(error)
        else:
            settle()
            self.future.set_result(result)


class Writers(Executor):
    """An executor of daemon threads, started on demand, whose stuck ones can be written off.

    Safe from any thread. `concurrent.futures` semantics: a queued call can be cancelled, a running one cannot.
    """

    def __init__(self, *, threads: int = THREADS, cap: int = CAP) -> None:
        self._limit: Final = threads
        self._cap: Final = cap
        self._lock: Final = threading.Lock()
        self._queue: Final[SimpleQueue[_Call | None]] = SimpleQueue()
        self._calls: dict[Future[Any], _Call] = {}
        self._counted: set[threading.Thread] = set()
        self._written_off: set[threading.Thread] = set()
        self._late: set[Future[Any]] = set()
        self._idle = 0
        self._backlog = 0
        self._served = 0
        self._closing = False
        self._ended: Final[Future[None]] = Future()

    @property
    def stuck(self) -> int:
        """Threads that were written off and have not come back."""
        with self._lock:
            return len(self._written_off)

    def queued(self, future: Future[Any]) -> int | None:
        """Return how many calls were served so far, if `future` still waits for a thread; None if it does not."""
        with self._lock:
            call = self._calls.get(future)
            return self._served if call is not None and call.thread is None else None

    def time_left(self, future: Future[Any], deadline: float, served: int | None) -> float:
        """Return how many of the `deadline` seconds a call still has, which begin when a thread takes it.

        One that is queued has them anew as long as other calls are served: as of when `served` of them were. A crowd
        is no stuck disk, and threads that are stuck serve nobody.
        """
        with self._lock:
            call = self._calls.get(future)
            if call is None:  # it is back
                return deadline
            if call.began is None:
                return 0.0 if self._served == served else deadline
            return call.began + deadline - time.monotonic()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run the call on a thread, soon. Where no thread can be had, the future carries OSError (EAGAIN).

        Raises:
            RuntimeError: after `shutdown`.
        """
        future: Future[T] = Future()
        call = _Call(lambda: fn(*args, **kwargs), future)
        with self._lock:
            if self._closing:
                raise RuntimeError("the writers are closed")
            if self._idle:
                self._idle -= 1
            elif not self._start_thread():
                if not (self._counted or self._written_off):
                    future.set_exception(OSError(errno.EAGAIN, "no thread can be started"))
                    return future
                self._backlog += 1
            self._calls[future] = call
            _in_flight.add(call)
        self._queue.put(call)
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Write off the thread that runs `future`, and let another take its place; a queued or done one is left."""
        with self._lock:
            call = self._calls.get(future)
            if call is None or call.thread is None or call.thread in self._written_off:
                return
            self._counted.discard(call.thread)
            self._written_off.add(call.thread)
            self._serve_backlog()
            self._check_ended()

    async def run(
        self,
        action: str,
        function: Callable[..., T],
        *args: object,
        deadline: float,
        undo: Callable[[T], object] | None = None,
    ) -> T:
        """Return the result of the call, made on a thread; `action` names it in errors.

        Cancellation: a call that was already running goes on; `undo` gets its late result, on its thread.

        Raises:
            StorageError: the call failed, or did not return for `deadline` seconds (inf: for ever) after a thread took
                it, which writes that off (`writer-stuck`); or no thread took it while nobody else was served.
        """
        watched = Watched(self)
        scope = asyncio.timeout(None)
        watch = Deadline(watched, scope, deadline)
        try:
            async with scope:
                watch.look()
                return await wrap(function)(*args, executor=watched)
        except asyncio.CancelledError:
            if undo is not None and watched.future is not None:
                self._late.add(watched.future)
                watched.undo_late(undo)
                watched.future.add_done_callback(self._late.discard)
            raise
        except OSError as error:
            # ETIMEDOUT of a network file system is a TimeoutError too, and comes from the call.
            if not scope.expired():
                raise storage_error(action, error) from error
            watched.undo_late(undo)
            watched.abandon()
            raise StorageError(f"{action}: the call did not return in time", reason="writer-stuck") from None
        finally:
            watch.cancel()

    async def settle_late(self, deadline: float) -> None:
        """Return when what cancelled calls made was undone, or after `deadline` seconds."""
        waiting = {asyncio.wrap_future(future) for future in self._late}
        if waiting:
            await asyncio.wait(waiting, timeout=None if math.isinf(deadline) else deadline)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - Executor
        """Take no more calls and let each thread end after the calls that are queued.

        Joins, if asked to, the threads that are not written off, for `JOIN_SECONDS` each at most.
        """
        with self._lock:
            first, self._closing = not self._closing, True
            threads = list(self._counted)
            if cancel_futures:
                for future in list(self._calls):
                    future.cancel()
            self._check_ended()
        if first:
            for _ in threads:
                self._queue.put(None)
        if wait:
            for thread in threads:
                thread.join(JOIN_SECONDS)

    async def close(self) -> None:
        """Return when every thread that is not written off has ended, or after `JOIN_SECONDS`."""
        with self._lock:
            threads = list(self._counted)
        self.shutdown(wait=False)
        await asyncio.wait({asyncio.wrap_future(self._ended)}, timeout=JOIN_SECONDS)
        if self._ended.done():
            for thread in threads:
                if thread not in self._written_off:
                    thread.join(JOIN_SECONDS)  # past its last line: this waits for the interpreter's own bookkeeping

    def _start_thread(self) -> bool:
        """Start a thread if the limit, the cap and the system allow. Called with the lock."""
        if len(self._counted) >= self._limit or len(self._counted) + len(self._written_off) >= self._cap:
            return False
        thread = threading.Thread(target=self._work, name=f"{THREAD_NAME}-{next(_numbers)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # RLIMIT_NPROC, or the interpreter is ending
            return False
        self._counted.add(thread)
        return True

    def _work(self) -> None:
        thread = threading.current_thread()
        while (call := self._queue.get()) is not None:
            with self._lock:
                call.thread = thread
                call.began = time.monotonic()
            if call.future.set_running_or_notify_cancel():
                call.run(partial(self._settle, call))
            else:
                self._settle(call)
            _in_flight.discard(call)
            del call  # an idle thread keeps no result and no argument alive
            with self._lock:
                if thread in self._written_off:
                    break
        with self._lock:
            self._counted.discard(thread)
            self._written_off.discard(thread)
            self._serve_backlog()
            self._check_ended()

    def _settle(self, call: _Call) -> None:
        """Take the thread off the call, so that whoever sees the result finds the thread free."""
        with self._lock:
            del self._calls[call.future]
            self._served += 1
            if call.thread in self._written_off:
                return
            if self._backlog:
                self._backlog -= 1
            else:
                self._idle += 1

    def _serve_backlog(self) -> None:
        """Let a new thread take a queued call, if there is one. Called with the lock."""
        if self._backlog and not self._closing and self._start_thread():
            self._backlog -= 1

    def _check_ended(self) -> None:
        """Say so once no counted thread is left after `shutdown`. Called with the lock."""
        if self._closing and not self._counted and not self._ended.done():
            self._ended.set_result(None)
