"""Wakes whoever follows a capture of another process, when something in its directory changes.

inotify(7) through ctypes, because the standard library has none. Events are drained, not read: whatever happened, the
follower looks at the files. It is an accelerator and no more: where there is none, or no instance is left
(`fs.inotify.max_user_instances`, 128 by default), the follower's own deadline is what wakes it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .directory import close_quietly
from .reading import opened_capture

if TYPE_CHECKING:
    from pathlib import Path

    from .files import Files

_NON_BLOCKING: Final = os.O_NONBLOCK | os.O_CLOEXEC
"""IN_NONBLOCK and IN_CLOEXEC are these, by inotify_init1(2)."""
_MODIFIED: Final = 0x2
_CLOSED_AFTER_WRITING: Final = 0x8
"""A process that dies closes its spools: a dead owner is noticed at once."""
_MOVED: Final = 0x40 | 0x80
_CREATED: Final = 0x100
_DELETED: Final = 0x200 | 0x400
"""A file of the directory, or itself."""
EVENTS: Final = _MODIFIED | _CLOSED_AFTER_WRITING | _MOVED | _CREATED | _DELETED
DRAIN_BYTES: Final = 64 * 1024
"""More than a queue of 16,384 events is read in some steps; each one event at least (NAME_MAX + 17)."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_start: Final = getattr(_libc, "inotify_init1", None) if sys.platform == "linux" else None
_add: Final = getattr(_libc, "inotify_add_watch", None)


def open_watch(files: Files, directory: Path, capture_id: str) -> int | None:
    """Return an inotify descriptor that watches a capture's directory; None where that cannot be had. Blocks.

    Raises:
        UnknownCapture, OSError: the capture cannot be opened; see `opened_capture`.
    """
    with opened_capture(files, directory, capture_id) as place:
        if _start is None or _add is None:
            return None
        number: int = _start(_NON_BLOCKING)
        if number < 0:
            return None
        # By the open descriptor: the path could lead somewhere else by now [D2].
        if _add(number, f"/proc/self/fd/{place.capture}".encode(), EVENTS) < 0:
            close_quietly(files, number)
            return None
    return number


class Watch:
    """The loop's side of an inotify descriptor, which it owns; None: one that never wakes. Used by one task."""

    def __init__(self, number: int | None) -> None:
        self._number: Final = number
        self._closed = False

    def drain(self) -> None:
        """Forget what has happened so far. Call it before each look, so that nothing after the look is missed."""
        if self._number is not None:
            with suppress(BlockingIOError):
                while os.read(self._number, DRAIN_BYTES):
                    pass

    async def wait(self, seconds: float) -> None:
        """Return when something has happened since the last `drain`, or after `seconds`.

        Cancellation: nothing stays registered.
        """
        loop = asyncio.get_running_loop()
        happened: asyncio.Future[None] = loop.create_future()
        if self._number is not None:
            # For the time of the wait only: a busy capture costs a follower that is not waiting nothing.
            loop.add_reader(self._number, _wake, happened)
        try:
            await asyncio.wait({happened}, timeout=seconds)
        finally:
            if self._number is not None:
                loop.remove_reader(self._number)

    def close(self) -> None:
        """Close the descriptor. May be called again."""
        if self._number is not None and not self._closed:
            self._closed = True
            os.close(self._number)


def _wake(happened: asyncio.Future[None]) -> None:
    if not happened.done():
        happened.set_result(None)
