"""Daemon threads that start processes, so that a slow exec stops neither the loop nor the interpreter's exit.

`fork` or `vfork` of a large host and an exec from a stuck file system block the calling thread. A thread exists
only while something is queued: nothing has to be shut down, and a host that forks inherits nothing. One thread is
the rule (two spawns at once gain nothing); another one joins only when an exec has been stuck for a while, and they
are daemons, which a ThreadPoolExecutor's threads are not: those are joined at exit (contract D8 asks the same of
the disk).
"""

from __future__ import annotations

import collections
import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

STUCK_AFTER: Final = 0.5
"""Seconds without a start being taken up after which the threads count as stuck: a hundred times the usual 5 ms. A long
queue alone calls for nobody: more threads would only take turns with the loop's."""
MAX_THREADS: Final = 16


class Spawner:
    """Runs functions one after the other on a daemon thread. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: collections.deque[Callable[[], None]] = collections.deque()
        self._threads = 0
        self._taken_at = time.monotonic()

    def submit(self, function: Callable[[], None]) -> None:
        """Queue `function`, which must not raise. Raises RuntimeError, with nothing queued, if no thread can start.

        Whoever waits for it calls `relieve()` every STUCK_AFTER seconds.
        """
        with self._lock:
            self._queue.append(function)
            if self._threads == 0:
                try:
                    self._add_thread()
                except RuntimeError:
                    self._queue.pop()
                    raise

    def relieve(self) -> None:
        """Add a thread if something is queued and nothing has been taken up for STUCK_AFTER: those there are stuck."""
        with self._lock:
            stuck = time.monotonic() - self._taken_at >= STUCK_AFTER
            if self._queue and stuck and self._threads < MAX_THREADS:
                try:
                    self._add_thread()
                except RuntimeError:
                    return  # no thread to be had; the queue stays with those that exist

    def forget(self) -> None:
        """Start anew in a forked process: no thread came along, and one of them may have held the lock."""
        self._lock = threading.Lock()
        self._queue.clear()
        self._threads = 0

    def _add_thread(self) -> None:
        threading.Thread(target=self._work, name="supervisor-spawner", daemon=True).start()
        self._threads += 1

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                function = self._queue.popleft()
                self._taken_at = time.monotonic()
            function()


shared = Spawner()
"""The process's own: starts of all loops queue here."""


os.register_at_fork(after_in_child=shared.forget)
