"""Removing captures, which only their owner asks for [D1].

A capture is first renamed to a name that no reader takes for one, so at any moment it is listed or gone, whole. What a
kill leaves under such a name still counts against the allowance until the next removal or recovery sweeps it away.
All functions block and run on a thread.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..errors import LiveCapture
from .allowance import RETAINED_SUFFIXES
from .directory import check_directory, close_quietly, sync_directory
from .evidence import Owners, read_launch
from .files import UNSUPPORTED, Files
from .recovery import is_still_there, lock_directory, look_at, site_of

if TYPE_CHECKING:
    from .directory import Rooms

ASIDE: Final = ".removed-"
ATTEMPTS: Final = 3
"""How often a directory is emptied: a claim or recovery that was on its way may still put a file into it, once."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A capture that is not there any more."""

    place: tuple[int, int]
    """The directory of captures that it was in: device and inode."""
    name: str
    """Its own there."""
    size: int
    """Bytes of retained text that this has freed."""
    owner: str | None
    """The owner file's name of who wrote it, where that is known."""


def remove_capture(files: Files, rooms: Rooms, capture_id: str) -> Removed | None:
    """Remove a capture that nobody writes any more; None if there is none.

    Raises:
        LiveCapture: its owner lives, or nobody can know; nothing was removed.
        OSError: it may be half removed, and is not listed then.
    """
    with rooms.captures.borrow() as captures, rooms.state.borrow() as state:
        try:
            number = files.open_directory(capture_id, parent=captures)
        except FileNotFoundError:
            return None
        try:
            check_directory(files, number, private=True)
            lock_directory(files, number)  # a recovery under way is finished first
            if not is_still_there(files, number, capture_id, parent=captures):
                return None
            check_removable(files, captures, Owners(files, state), rooms, capture_id)
            launch = read_launch(files, number)
            _set_aside(files, capture_id, parent=captures)
            sync_directory(files, captures)
        finally:
            close_quietly(files, number)
        owner = None if launch is None else launch.owner.get("name")
        size = _clear(files, ASIDE + capture_id, parent=captures)
        return Removed(_place(files, captures), capture_id, size, owner if isinstance(owner, str) else None)


def check_removable(files: Files, captures: int, owners: Owners, rooms: Rooms, capture_id: str) -> bool:
    """Return whether there is a capture of that id. Raises: LiveCapture, OSError."""
    found = look_at(files, captures, owners, site_of(rooms.path, capture_id))
    if found is not None and (found.state == "live" or (found.state == "left" and not found.recoverable)):
        raise LiveCapture(f"the capture {capture_id} is live, or nobody can know that it is not", capture_id=capture_id)
    return found is not None


def sweep(files: Files, rooms: Rooms) -> list[Removed]:
    """Finish removals that were interrupted. Raises: OSError."""
    with rooms.captures.borrow() as captures:
        place = _place(files, captures)
        names = [name for name in files.names(captures) if name.startswith(ASIDE)]
        return [Removed(place, name, _clear(files, name, parent=captures), None) for name in names]


def _place(files: Files, captures: int) -> tuple[int, int]:
    status = files.status(captures)
    return status.st_dev, status.st_ino


def _set_aside(files: Files, capture_id: str, *, parent: int) -> None:
    try:
        files.rename_exclusive(capture_id, ASIDE + capture_id, parent=parent)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        # A directory has no second link. Nothing is lost by this: only an empty directory would be replaced.
        files.rename(capture_id, ASIDE + capture_id, parent=parent)


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
