"""Threads for readers, apart from those of any writer: a reader on a dead file system must not hold up a spool [E1].

All readers of the process share a few, which are there only while somebody reads.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .writers import Writers

if TYPE_CHECKING:
    from collections.abc import Generator

THREADS: Final = 4
"""Reads at one time, further ones queue: they come from the page cache mostly, and two cores serve them all."""


class Lending:
    """Makes `Writers` for the first borrower and ends them after the last. Safe from any thread."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._borrowers = 0
        self._writers: Writers | None = None

    @contextmanager
    def borrow(self) -> Generator[Writers]:
        """Lend the threads for the block. After the last block they end, a stuck one when it comes back."""
        with self._lock:
            self._borrowers += 1
            writers = self._writers = self._writers or Writers(threads=THREADS)
        try:
            yield writers
        finally:
            with self._lock:
                self._borrowers -= 1
                last = not self._borrowers
                if last:
                    self._writers = None
            if last:
                writers.shutdown(wait=False)


reading_threads: Final = Lending()
