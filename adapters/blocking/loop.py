"""The one event loop of all blocking supervisors of a process, in a daemon thread that is there while one is open.

A fork has no thread but its own, so what was made before it refuses there; what is made in the fork gets a loop of its
own. At the interpreter's exit, after the last thread that is not a daemon, what is still open is closed: jobs are ended
and their receipts published.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")

EXIT_SECONDS: Final = 30.0
"""How long the interpreter's exit waits for jobs that end by TERM and their `kill_after`; then they are killed."""
KILLED_SECONDS: Final = 10.0
"""And how long for those that were killed."""

SETTLE_SECONDS: Final = 1.0
"""How long a loop that ends waits for calls whose result is there already; others get an error."""

log: Final = logging.getLogger("spoolvisor.blocking")


class WrongProcess(RuntimeError):
    """It belongs to the process that this one was forked from, and so do its jobs."""


class LoopThread:
    """An event loop and its thread."""

    def __init__(self) -> None:
        self._pid: Final = os.getpid()
        self._loop: Final = _new_loop()
        self._over = False
        self._forgotten: Final[set[asyncio.Task[Any]]] = set()
        self._lock: Final = threading.Lock()
        self._thread: Final = threading.Thread(target=self._work, name="spoolvisor-loop", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._over

    def call(
        self,
        function: Callable[[], Coroutine[Any, Any, T]],
        timeout: float | None = None,
        *,
        undo: Callable[[T], object] | None = None,
        goes_on: bool = False,
    ) -> T:
        """Return what the coroutine returns, run on the loop.

        When the caller is interrupted, or has waited for `timeout` seconds, it is cancelled; a result that comes all
        the same is given to `undo`, on the loop. With `goes_on`, a timeout cancels nothing.

        Raises:
            WrongProcess: in a fork of the process.
            RuntimeError: on the loop's own thread; or it ended meanwhile.
            TimeoutError: after `timeout`.
        """
        outcome: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(function()))
            tasks[0].add_done_callback(partial(_hand_over, outcome, undo))

        self._soon(begin)
        try:
            return outcome.result(timeout)
        except BaseException as error:
            if outcome.done():
                if outcome.exception(0) is error:
                    raise
                if isinstance(error, TimeoutError):  # it ended in this very moment
                    return outcome.result(0)
                if undo is not None and outcome.exception(0) is None:  # interrupted in that moment
                    self.tell(partial(undo, outcome.result(0)))
            elif not (goes_on and isinstance(error, TimeoutError)):
                self.tell(partial(_give_up, outcome, tasks, undo))
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"it takes longer than {timeout} s") from None
            raise

    def begin(self, function: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Start the coroutine on the loop, and return the future of its result. Raises: as `call`."""
        outcome: Future[T] = Future()
        self._soon(lambda: self._loop.create_task(function()).add_done_callback(partial(_hand_over, outcome, None)))
        return outcome

    def begin_here(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Start the coroutine, from the loop's own thread; nobody waits for it."""
        task = self._loop.create_task(function())
        self._forgotten.add(task)
        task.add_done_callback(self._forgotten.discard)

    def ask(self, function: Callable[[], T]) -> T:
        """Return what the function returns, called on the loop. Raises: as `call`."""

        async def asking() -> T:
            return function()

        return self.call(asking, None)

    def check(self) -> None:
        """Return if the loop can be waited for. Raises: WrongProcess, RuntimeError."""
        if os.getpid() != self._pid:
            raise WrongProcess("this belongs to the process that was forked; make a BlockingSupervisor in the fork")
        if threading.current_thread() is self._thread:
            raise RuntimeError("a blocking call on the supervisor's own loop would wait for itself")

    def tell(self, function: Callable[[], object]) -> None:
        """Have the function called on the loop, if there is one still; never waits, never raises."""
        if os.getpid() == self._pid:
            with self._lock:
                if not self._over:
                    self._loop.call_soon_threadsafe(function)

    def end(self) -> None:
        """Return when the thread has ended; calls that still wait there get an error."""
        with self._lock:
            first, self._over = not self._over, True
            if first:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:  # a collector may have come by there
            self._thread.join()

    def _soon(self, function: Callable[[], object]) -> None:
        self.check()
        with self._lock:
            if self._over:
                raise RuntimeError("the supervisor was closed meanwhile")
            self._loop.call_soon_threadsafe(function)

    def _work(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(_settled())
            loop.run_until_complete(loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            loop.close()


async def _settled() -> None:
    """Return when each other task has ended: those whose result is under way by themselves, the others cancelled."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=SETTLE_SECONDS)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _hand_over(outcome: Future[T], undo: Callable[[T], object] | None, task: asyncio.Task[T]) -> None:
    """Give a task's result to whoever waits, or undo it if nobody does any more."""
    wanted = outcome.set_running_or_notify_cancel()
    if task.cancelled():
        if wanted:
            outcome.set_exception(RuntimeError("the supervisor was closed meanwhile"))
        return
    error = task.exception()
    if not wanted:
        if error is None and undo is not None:
            undo(task.result())
    elif error is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(task.result())


def _give_up(outcome: Future[T], tasks: list[asyncio.Task[T]], undo: Callable[[T], object] | None) -> None:
    """Cancel what nobody waits for any more. On the loop, after it was begun."""
    if outcome.cancel():
        tasks[0].cancel()
    elif undo is not None and outcome.exception(0) is None:
        undo(outcome.result(0))


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's where there is one, else asyncio's own."""
    try:
        import uvloop  # noqa: PLC0415 -- not for every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Closing(Protocol):
    """What the exit needs of a supervisor."""

    def begin_closing(self) -> None:
        """Ask for its end; return at once."""
        ...

    def close(self, timeout: float | None = None) -> None:
        """Return when it is closed."""
        ...

    def kill(self) -> None:
        """Kill what TERM has not ended."""
        ...


def _close_until(supervisor: Closing, deadline: float) -> None:
    supervisor.close(max(0.0, deadline - time.monotonic()))


def _quietly(step: Callable[[], object]) -> bool:
    """Take a step of the exit, which has nobody to raise to; return whether it was taken."""
    try:
        step()
    except (RuntimeError, TimeoutError, OSError):
        return False
    return True


class Shared:
    """Lends the process's loop: it is made for the first borrower and ends with the last. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._borrowers = 0
        self._open: dict[int, Closing] = {}
        self._of_parents: Final[list[LoopThread]] = []

    def take(self) -> LoopThread:
        """Return the loop's thread; each call is matched by one of `give_back`."""
        with self._lock:
            self._thread = self._thread or LoopThread()
            self._borrowers += 1
            return self._thread

    def give_back(self, thread: LoopThread) -> None:
        """Return at once, or, for the last borrower, when the thread has ended."""
        with self._lock:
            if thread is not self._thread:  # of the process that was forked
                return
            self._borrowers -= 1
            if self._borrowers:
                return
            self._thread = None
        thread.end()

    @contextmanager
    def lent(self) -> Generator[LoopThread]:
        """Lend it for the block."""
        thread = self.take()
        try:
            yield thread
        finally:
            self.give_back(thread)

    def opened(self, supervisor: Closing) -> None:
        """Have it closed at the interpreter's exit, unless it is closed before.

        Registered anew each time: exit handlers run in the reverse order, and ours comes before those of what it needs.
        """
        atexit.unregister(self.exit)
        atexit.register(self.exit)
        with self._lock:
            self._open[id(supervisor)] = supervisor

    def closed(self, supervisor: Closing) -> None:
        """There is nothing to be closed at the exit."""
        with self._lock:
            self._open.pop(id(supervisor), None)

    def exit(self) -> None:
        """Close all that is open, side by side; return after `EXIT_SECONDS` and `KILLED_SECONDS` at the latest."""
        with self._lock:
            left = tuple(self._open.values())
        for each in left:
            _quietly(each.begin_closing)
        for patience in (EXIT_SECONDS, KILLED_SECONDS):
            deadline = time.monotonic() + patience
            left = tuple(each for each in left if not _quietly(partial(_close_until, each, deadline)))
            for each in left:
                _quietly(each.kill)
        if left:
            log.error("%d supervisors could not be closed at the exit", len(left))

    def forget_parent(self) -> None:
        """Start anew in a fork: no thread came along, and one of them may have held the lock."""
        self._lock = threading.Lock()
        if self._thread is not None:
            # Never collected: closing its loop would take the parent's descriptors out of the epoll that both share.
            self._of_parents.append(self._thread)
        self._thread, self._borrowers, self._open = None, 0, {}


shared: Final = Shared()


def anywhere(thread: LoopThread, function: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
    """Call it on that loop; after that one has ended, on the one that there is. Raises: as `LoopThread.call`."""
    thread.check()
    if not thread.over:
        return thread.call(function, timeout)
    with shared.lent() as other:
        return other.call(function, timeout)


def call(function: Callable[[], Coroutine[Any, Any, T]], timeout: float | None = None) -> T:
    """Return what a function of the library returns that is to be awaited: `call(lambda: list_captures(directory))`.

    It runs on the loop of the blocking supervisors, or one that is there for as long.
    Raises: TimeoutError: it was cancelled.
    """
    with shared.lent() as thread:
        return thread.call(function, timeout)


os.register_at_fork(after_in_child=shared.forget_parent)
