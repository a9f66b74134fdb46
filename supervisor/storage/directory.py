"""Private, contained directories, walked one component at a time by descriptor [D2].

The conversation's own directory belongs to the host: it must be ours and not world-writable, and *its* path is the
host's business, symlinks above it included. From there down no symlink is followed, and privacy (0700, no bit for
anybody else) starts at the first directory that we create ourselves. What exists is checked and never changed.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .descriptor import Descriptor
from .faults import UnsafeDirectoryError
from .files import UNSUPPORTED, Files

if TYPE_CHECKING:
    from pathlib import Path

TOOL_OUTPUTS: Final = "tool-outputs"
CAPTURES: Final = "captures"
STATE: Final = ".supervisor"
TWO_NAMES: Final = 2
GROUP_WRITABLE: Final = "group-writable-directory"
"""The limitation that is named where members of a group could replace what we store."""


def check_directory(files: Files, directory: int, *, private: bool) -> os.stat_result:
    """Return the status of a directory that is ours, and private or at least not writable for everybody.

    Raises:
        UnsafeDirectoryError: it is not.
    """
    status = files.status(directory)
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeDirectoryError(errno.ENOTDIR, "not a directory")
    if status.st_uid != os.geteuid():
        raise UnsafeDirectoryError(errno.EPERM, "the directory has another owner")
    if status.st_mode & (0o077 if private else 0o002):
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeDirectoryError(errno.EPERM, f"others have access to the directory (mode {mode:04o})")
    return status


def check_file(files: Files, descriptor: int) -> os.stat_result:
    """Return the status of a regular file that is ours alone: one name, no access for others.

    Raises:
        UnsafeDirectoryError: it is not.
    """
    status = files.status(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeDirectoryError(errno.EINVAL, "not a regular file")
    if status.st_uid != os.geteuid() or status.st_nlink != 1 or status.st_mode & 0o077:
        raise UnsafeDirectoryError(errno.EPERM, "the file has another owner, another name or is open to others")
    return status


def are_one(files: Files, number: int, twin: str, *, parent: int) -> bool:
    """Return whether the file is a private one of ours with exactly two names, of which `twin` is one."""
    status = files.status(number)
    try:
        other = files.status_at(twin, parent=parent)
    except FileNotFoundError:
        return False
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return ours and status.st_nlink == TWO_NAMES and os.path.samestat(status, other)


def create_private_directory(files: Files, name: str, *, parent: int) -> int:
    """Create `name`, which must not exist, as 0700 under any umask, and return its descriptor."""
    files.make_directory(name, parent=parent)
    try:
        directory = _open_new(files, name, parent=parent)
    except OSError:
        _remove_quietly(files, name, parent=parent)
        raise
    try:
        # Exactly 0700: gives back what the umask took, drops the set-group-id bit that a parent hands down.
        files.set_mode(directory, 0o700)
        check_directory(files, directory, private=True)
    except OSError:
        close_quietly(files, directory)
        _remove_quietly(files, name, parent=parent)
        raise
    return directory


def create_private_file(files: Files, name: str, *, parent: int, flags: int) -> int:
    """Create `name`, which must not exist, as 0600 under any umask, and return its descriptor."""
    descriptor = files.create(name, parent=parent, flags=flags)
    try:
        files.set_mode(descriptor, 0o600)
        check_file(files, descriptor)
    except OSError:
        close_quietly(files, descriptor)
        unlink_quietly(files, name, parent=parent)
        raise
    return descriptor


def open_or_create(files: Files, name: str, *, parent: int, private: bool) -> int:
    """Return a checked descriptor of the directory `name`, which is made if it is missing."""
    try:
        return create_private_directory(files, name, parent=parent)
    except FileExistsError:
        pass
    directory = files.open_directory(name, parent=parent)
    try:
        check_directory(files, directory, private=private)
    except OSError:
        close_quietly(files, directory)
        raise
    return directory


def close_quietly(files: Files, descriptor: int) -> None:
    """Close what holds no evidence."""
    try:
        files.close(descriptor)
    except OSError:
        return


def unlink_quietly(files: Files, name: str, *, parent: int) -> None:
    """Remove a name if it can be removed: the error that led here is the one to report."""
    try:
        files.unlink(name, parent=parent)
    except OSError:
        return


def _remove_quietly(files: Files, name: str, *, parent: int) -> None:
    try:
        files.remove_directory(name, parent=parent)
    except OSError:
        return


def _open_new(files: Files, name: str, *, parent: int) -> int:
    try:
        return files.open_directory(name, parent=parent)
    except PermissionError:  # the umask took our own bits
        files.unmask_directory(name, parent=parent)
        return files.open_directory(name, parent=parent)


@dataclass(frozen=True, slots=True)
class Rooms:
    """The open directories of one conversation, outermost first."""

    path: Path
    conversation: Descriptor
    tool_outputs: Descriptor
    captures: Descriptor
    state: Descriptor
    limitations: tuple[str, ...]

    def discard(self) -> None:
        """Close all of them."""
        for room in (self.state, self.captures, self.tool_outputs, self.conversation):
            room.discard()


def open_rooms(files: Files, directory: Path) -> Rooms:
    """Open the conversation's directory and open or make what we need below it. Blocks; leaves nothing open on error.

    Raises:
        OSError: in particular UnsafeDirectoryError, and ENOTDIR for a symlink in the place of a directory.
    """
    path = directory.absolute()  # `resolve` would follow the symlink that must be refused
    opened: list[int] = []
    try:
        opened.append(files.open_directory(str(path)))
        owned = check_directory(files, opened[0], private=False)
        opened.append(open_or_create(files, TOOL_OUTPUTS, parent=opened[0], private=False))
        shared = check_directory(files, opened[1], private=False)
        opened.append(open_or_create(files, CAPTURES, parent=opened[1], private=True))
        opened.append(open_or_create(files, STATE, parent=opened[1], private=True))
    except OSError:
        for descriptor in reversed(opened):
            close_quietly(files, descriptor)
        raise
    writable = (owned.st_mode | shared.st_mode) & stat.S_IWGRP
    conversation, tool_outputs, captures, state = (Descriptor(files, descriptor) for descriptor in opened)
    return Rooms(path, conversation, tool_outputs, captures, state, (GROUP_WRITABLE,) if writable else ())


def make_directory(files: Files, directory: Path, *, durable: bool) -> None:
    """Make `directory` and its missing parents, each 0700 under any umask. What exists is left as it is. Blocks.

    Raises:
        OSError: from the system; ENOTDIR if something else is in the way.
    """
    path = directory.absolute()
    missing: list[str] = []
    while not path.is_dir():
        missing.append(path.name)
        path = path.parent
    parent = files.open_directory(str(path.resolve()))
    try:
        for name in reversed(missing):
            child = _make_or_open(files, name, parent=parent)
            parent, above = child, parent
            try:
                if durable:
                    sync_directory(files, above)
            finally:
                close_quietly(files, above)
    finally:
        close_quietly(files, parent)


def _make_or_open(files: Files, name: str, *, parent: int) -> int:
    try:
        return create_private_directory(files, name, parent=parent)
    except FileExistsError:  # made by another process meanwhile
        return files.open_directory(name, parent=parent)


def sync_directory(files: Files, directory: int) -> tuple[int, int] | None:
    """Return None when the directory's names are on the device, else which one has no such barrier (device, inode).

    Raises:
        OSError: any error but "unsupported": a failure, which is never retried into success [D4].
    """
    try:
        files.sync_directory(directory)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        status = files.status(directory)
        return status.st_dev, status.st_ino
    return None
