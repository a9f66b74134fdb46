"""Removing captures, which only their owner asks for [D1].

A capture is first renamed to a name that no reader takes for one, so at any moment it is listed or gone, whole. What a
kill leaves under such a name still counts against the allowance until the next removal or recovery sweeps it away.
All functions block and run on a thread.
"""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING, Final

from ..errors import LiveCapture
from .directory import check_directory, close_quietly, sync_directory
from .files import Files, rename_directory
from .incoming import sweep_incoming
from .recovery import find_capture, is_still_there, lock_directory
from .retained import RETAINED_SUFFIXES

if TYPE_CHECKING:
    from .directory import Rooms

ASIDE: Final = ".removed-"
ATTEMPTS: Final = 3
"""How often a directory is emptied: a claim or recovery that was on its way may still put a file into it, once."""


def remove_capture(files: Files, rooms: Rooms, capture_id: str) -> int | None:
    """Remove a capture that nobody writes any more; return the bytes that this has freed, None if there is none.

    Raises:
        LiveCapture: its owner lives, or nobody can know; nothing was removed.
        OSError: it may be half removed, and is not listed then.
    """
    with rooms.captures.borrow() as captures:
        try:
            number = files.open_directory(capture_id, parent=captures)
        except FileNotFoundError:
            return None
        try:
            check_directory(files, number, private=True)
            lock_directory(files, number)  # a recovery under way is finished first
            if not is_still_there(files, number, capture_id, parent=captures):
                return None
            check_removable(files, rooms, capture_id)
            rename_directory(files, capture_id, ASIDE + capture_id, parent=captures)
            sync_directory(files, captures)
        finally:
            close_quietly(files, number)
        return _clear(files, ASIDE + capture_id, parent=captures)


def check_removable(files: Files, rooms: Rooms, capture_id: str) -> bool:
    """Return whether there is a capture of that id. Raises: LiveCapture, OSError."""
    found = find_capture(files, rooms, capture_id)
    if found is not None and (found.state == "live" or (found.state == "left" and not found.recoverable)):
        raise LiveCapture(f"the capture {capture_id} is live, or nobody can know that it is not", capture_id=capture_id)
    return found is not None


def sweep(files: Files, rooms: Rooms) -> int:
    """Finish removals and undo copies that were interrupted; return the bytes that this has freed. Raises: OSError."""
    with rooms.captures.borrow() as captures:
        names = [name for name in files.names(captures) if name.startswith(ASIDE)]
        freed = sum(_clear(files, name, parent=captures) for name in names)
    return freed + sweep_incoming(files, rooms)


def _clear(files: Files, name: str, *, parent: int) -> int:
    freed = 0
    for attempt in range(ATTEMPTS):
        try:
            freed += _empty(files, name, parent=parent)
            files.remove_directory(name, parent=parent)
        except FileNotFoundError:  # another one sweeps as well
            break
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or attempt == ATTEMPTS - 1:
                raise
        else:
            break
    return freed


def _empty(files: Files, name: str, *, parent: int) -> int:
    freed = 0
    directory = files.open_directory(name, parent=parent)
    try:
        for entry in files.names(directory):
            try:
                status = files.status_at(entry, parent=directory)
                if stat.S_ISDIR(status.st_mode):  # not ours: the directory stays, and says so by ENOTEMPTY
                    continue
                files.unlink(entry, parent=directory)
            except FileNotFoundError:
                continue
            if entry.endswith(RETAINED_SUFFIXES) and stat.S_ISREG(status.st_mode):
                freed += status.st_size
    finally:
        close_quietly(files, directory)
    return freed
