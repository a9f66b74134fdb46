"""One call of a writer as its caller waits for it: the call's future, and how long to wait."""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from .writers import Writers

P = ParamSpec("P")
T = TypeVar("T")


class Watched(Executor):
    """The executor of one call, which remembers the call's future: aiofiles does not hand it out."""

    def __init__(self, writers: Writers) -> None:
        self._writers: Final = writers
        self.future: Future[Any] | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Pass the call on."""
        future = self._writers.submit(fn, *args, **kwargs)
        self.future = future
        return future

    def queued(self) -> int | None:
        """Return what `Writers.queued` says of the call."""
        return None if self.future is None else self._writers.queued(self.future)

    def time_left(self, deadline: float, served: int | None) -> float:
        """Return what `Writers.time_left` says of the call."""
        return deadline if self.future is None else self._writers.time_left(self.future, deadline, served)

    def abandon(self) -> None:
        """Write off the thread, if the call has one by now."""
        if self.future is not None:
            self._writers.abandon(self.future)

    def undo_late(self, undo: Callable[[Any], object] | None) -> None:
        """Give a result that nobody waits for any more to `undo`, on a writer's thread."""
        if undo is None or self.future is None:
            return
        loop_thread = threading.get_ident()

        def take_back(done: Future[Any]) -> None:
            if done.cancelled() or done.exception() is not None:
                return
            if threading.get_ident() == loop_thread:  # it came back just now
                self._writers.submit(undo, done.result())
            else:
                undo(done.result())

        self.future.add_done_callback(take_back)


class Deadline:
    """Ends a scope once the call in it has no time left."""

    def __init__(self, watched: Watched, scope: asyncio.Timeout, seconds: float) -> None:
        self._watched: Final = watched
        self._scope: Final = scope
        self._seconds: Final = seconds
        self._served: int | None = None
        self._handle: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """End the scope, or look again when its time may be over."""
        if math.isinf(self._seconds):
            return
        loop = asyncio.get_running_loop()
        left = self._watched.time_left(self._seconds, self._served)
        self._served = self._watched.queued()
        if left > 0:
            self._handle = loop.call_later(left, self.look)
        else:
            self._scope.reschedule(loop.time())

    def cancel(self) -> None:
        """Look no more."""
        if self._handle is not None:
            self._handle.cancel()
