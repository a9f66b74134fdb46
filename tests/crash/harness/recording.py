"""System calls that write down what they changed, as a file system may or may not have brought it to the device."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Make:
    """A new name of a new file or directory."""

    directory: int
    name: str
    inode: int
    is_directory: bool


@dataclass(frozen=True, slots=True)
class Link:
    """A new name of an old file."""

    directory: int
    name: str
    inode: int


@dataclass(frozen=True, slots=True)
class Move:
    """A name that became another one, in one step."""

    directory: int
    name: str
    target: str
    inode: int


@dataclass(frozen=True, slots=True)
class Drop:
    """A name that is gone."""

    directory: int
    name: str


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a place of a file."""

    inode: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A size that was set."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A file's data, or a directory's names, are on the device."""

    inode: int


@dataclass(frozen=True, slots=True)
class FailedSync:
    """A file's sync that reported an error: what it was to bring to the device counts as written, and may be lost.

    Of a directory that is not so: its names are in a journal, which is written again or never.
    """

    inode: int


@dataclass(frozen=True, slots=True)
class Told:
    """What the world was told."""

    event: dict[str, Any]


Step = Make | Link | Move | Drop | Write | Cut | Sync | FailedSync | Told


class RecordingFiles(Files):
    """The real calls, one at a time, each written down once it is done. Syncs are written down only.

    Inodes get numbers of their own, because a file system uses one again; 0 is the conversation.

    Args:
        directory: The conversation.
        failing: Which sync fails, counted from 1; 0: none.
        linking: The file system has no `renameat2`.
    """

    def __init__(self, directory: Path, failing: int = 0, *, linking: bool = False) -> None:
        self.steps: list[Step] = []
        self.syncs = 0
        self.failed = ""
        """What the failed sync was of."""
        self.since = 0
        """How many steps were written down before it; 0 without one."""
        self._failing = failing
        self._linking = linking
        self._turn = threading.RLock()
        self._numbers = {directory.stat().st_ino: 0}
        self.before = self._found(directory, 0)

    def _found(self, directory: Path, number: int) -> list[Step]:
        """Return the steps that make what is there already."""
        steps: list[Step] = []
        for path in sorted(directory.iterdir()):
            inode = path.lstat().st_ino
            known = inode in self._numbers
            mine = self._numbers.setdefault(inode, len(self._numbers))
            steps.append(Link(number, path.name, mine) if known else Make(number, path.name, mine, path.is_dir()))
            if path.is_dir():
                steps += self._found(path, mine)
            elif not known:
                steps.append(Write(mine, 0, path.read_bytes()))
        return steps

    def told(self, event: dict[str, Any]) -> None:
        """Write down what the world was told."""
        with self._turn:
            self.steps.append(Told(event))

    def _number(self, descriptor: int) -> int:
        return self._numbers[os.fstat(descriptor).st_ino]

    def _number_at(self, name: str, parent: int) -> int:
        return self._numbers[os.stat(name, dir_fd=parent, follow_symlinks=False).st_ino]

    def _new(self, name: str, parent: int, *, is_directory: bool) -> None:
        inode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_ino
        self._numbers[inode] = len(self.steps) + 1_000_000
        self.steps.append(Make(self._number(parent), name, self._numbers[inode], is_directory))

    def make_directory(self, name: str, *, parent: int) -> None:
        """Make it."""
        with self._turn:
            super().make_directory(name, parent=parent)
            self._new(name, parent, is_directory=True)

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create it."""
        with self._turn:
            number = super().create(name, parent=parent, flags=flags)
            self._new(name, parent, is_directory=False)
            return number

    def remove_directory(self, name: str, *, parent: int) -> None:
        """Remove it."""
        with self._turn:
            super().remove_directory(name, parent=parent)
            self.steps.append(Drop(self._number(parent), name))

    def unlink(self, name: str, *, parent: int) -> None:
        """Remove it."""
        with self._turn:
            super().unlink(name, parent=parent)
            self.steps.append(Drop(self._number(parent), name))

    def link(self, source: str, target: str, *, parent: int) -> None:
        """Link it."""
        with self._turn:
            super().link(source, target, parent=parent)
            self.steps.append(Link(self._number(parent), target, self._number_at(target, parent)))

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Rename it, if there is such a call."""
        with self._turn:
            if self._linking:
                raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
            super().rename_exclusive(source, target, parent=parent)
            self.steps.append(Move(self._number(parent), source, target, self._number_at(target, parent)))

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write; one that appends does so at the end."""
        with self._turn:
            count = super().write(descriptor, buffers)
            end = os.lseek(descriptor, 0, os.SEEK_CUR)  # a write moves it, also one that appends (write(2))
            self.steps.append(Write(self._number(descriptor), end - count, b"".join(buffers)[:count]))
            return count

    def write_at(self, descriptor: int, data: bytes, *, offset: int) -> int:
        """Write there."""
        with self._turn:
            count = super().write_at(descriptor, data, offset=offset)
            self.steps.append(Write(self._number(descriptor), offset, data[:count]))
            return count

    def truncate(self, descriptor: int, size: int) -> None:
        """Set the size."""
        with self._turn:
            super().truncate(descriptor, size)
            self.steps.append(Cut(self._number(descriptor), size))

    def sync_file(self, descriptor: int) -> None:
        """Write it down, or fail."""
        self._sync(descriptor)

    def sync_directory(self, descriptor: int) -> None:
        """Write it down, or fail."""
        self._sync(descriptor)

    def _sync(self, descriptor: int) -> None:
        with self._turn:
            self.syncs += 1
            if self.syncs == self._failing:
                path = Path(f"/proc/self/fd/{descriptor}").readlink()
                self.failed, self.since = str(path), len(self.steps)
                if not path.is_dir():
                    self.steps.append(FailedSync(self._number(descriptor)))
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.steps.append(Sync(self._number(descriptor)))
