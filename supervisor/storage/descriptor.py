"""A file descriptor that is not closed under a call which is still in the kernel.

A write that hangs in a dead file system keeps its descriptor's *number*. Closed meanwhile and opened again by anybody
else, that number would take the rest of the write when it comes back. So the last user closes.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

    from .files import Files


class Descriptor:
    """Owns one descriptor. Any thread may borrow it while it is not closed."""

    __slots__ = ("_closing", "_files", "_lock", "_number", "_users")

    def __init__(self, files: Files, number: int) -> None:
        self._files: Final = files
        self._number: Final = number
        self._lock: Final = threading.Lock()
        self._users = 0
        self._closing = False

    @contextmanager
    def borrow(self) -> Generator[int]:
        """Lend the number for the block. Raises: OSError (EBADF) once it was closed."""
        with self._lock:
            if self._closing:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._users += 1
        try:
            yield self._number
        finally:
            self._give_back()

    def close(self) -> None:
        """Close, or leave it to the last borrower. A second call does nothing.

        Raises:
            OSError: from close(2), which can report a failed write; the descriptor is gone all the same.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
            busy = self._users > 0
        if not busy:
            self._files.close(self._number)

    def discard(self) -> None:
        """Close as `close` does, where an error says nothing about evidence."""
        try:
            self.close()
        except OSError:
            return

    def close_copy(self) -> None:
        """Close the number in a forked process, where no other thread is left: not even one that has the lock.

        Does nothing once it was closed: the number may be anybody's by then.
        """
        if self._closing and not self._users:
            return
        self._closing = True
        with suppress(OSError):
            os.close(self._number)

    def _give_back(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._closing and not self._users
        if not last:
            return
        try:
            self._files.close(self._number)
        except OSError:
            # Its owner gave it up long ago: the receipt already calls the boundary unknown [D8].
            return
