"""A host's own files: lines that are appended, contents that are replaced in one step, and a barrier for both.

What a call of `write` leaves is in the page cache: it survives this process, not the machine. `DurableFiles.sync`
brings it to the device. A sync that failed may be followed by one that succeeds although the data is lost (fsync(2)),
so a file whose sync has failed is written anew, from what can be read of it, and only if that is what was appended.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .errors import StorageError
from .request import conversation_path
from .storage import (
    Files,
    append_line,
    make_directory,
    read_file,
    replace_file,
    storage_error,
    sync_directory,
    sync_existing,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from hashlib import _Hash as HASH  # pyright: ignore[reportPrivateUsage] -- its only name before Python 3.12

CLOSED_TO_US: Final = frozenset({errno.EACCES, errno.EPERM})
"""A directory in which a file may be found and replaced, but which cannot be opened, has no barrier for us either."""


@dataclass(slots=True)
class _Piece:
    """What was appended in one row: where, and its digest."""

    start: int
    size: int = 0
    digest: HASH = field(default_factory=hashlib.sha256)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.digest.update(data)

    def is_in(self, content: bytes) -> bool:
        found = content[self.start : self.start + self.size]
        return hashlib.sha256(found).digest() == self.digest.digest()


@dataclass(slots=True)
class _Unsynced:
    """What was appended to a file since its last sync."""

    pieces: list[_Piece] = field(default_factory=list[_Piece])
    failed: bool = False
    """A sync of it has failed."""

    def check(self, content: bytes) -> None:
        """Return if all of it is there. Raises: StorageError."""
        if not all(piece.is_in(content) for piece in self.pieces):
            text = "what was appended before a sync that failed is lost"
            raise StorageError(text, reason="io-error", errno=errno.EIO)


class DurableFiles:
    """Appends to, replaces and syncs files of the host's own. Every call blocks, and may come from any thread.

    Names are relative to `directory`, or absolute; a symlink is followed, to its own last target. Directories are made
    as they are needed, 0700, and files 0600; those that exist keep their mode. One process at a time may replace a
    file: what another one appends meanwhile is lost.

    Args:
        directory: Where most of the files are; it need not exist.
        files: The system calls; a seam for tests.
    """

    def __init__(self, directory: str | os.PathLike[str], *, files: Files | None = None) -> None:
        self._path: Final = conversation_path(directory)
        self._files: Final = files or Files()
        self._root: Final = _real(self._path)
        self._known: Final = {self._root: _existing(self._root)}
        self._unsynced: Final[dict[Path, _Unsynced]] = {}
        self._warned: Final[set[Path]] = set()
        self._lock: Final = threading.RLock()

    @property
    def directory(self) -> Path:
        """The directory, absolute."""
        return self._path

    def append_line(self, path: str | os.PathLike[str], line: bytes) -> None:
        r"""Append a line; it is on the device after the next `sync` of the file, and in no order before that.

        A line that a crash has cut is left as it is, on a line of its own.

        Raises:
            ValueError: the line has a line feed in it.
            StorageError: it could not be written, or not all of it.
        """
        if b"\n" in line:
            raise ValueError("a line has no line feed in it")
        place = self._place(path)
        with self._lock, self._typed("appending"), self._opened(place.parent) as parent:
            start, data = append_line(self._files, place.name, line, parent=parent)
            pieces = self._unsynced.setdefault(place, _Unsynced()).pieces
            if not pieces or pieces[-1].start + pieces[-1].size != start:
                pieces.append(_Piece(start))
            pieces[-1].add(data)

    def replace(self, path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
        """Return when the file has the new content, on the device: a crash at any moment leaves the old one or this.

        Raises:
            StorageError: the content is the old one; or, if a directory could not be synced, either of them.
        """
        place = self._place(path)
        with self._lock, self._typed("replacing"):
            with self._opened(place.parent) as parent:
                replace_file(self._files, place.name, parts, parent=parent)
            self._unsynced.pop(place, None)
            without = self._sync_directories([place.parent, self._beside(path)])
        self._warn(without)

    def sync(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Return when these files are on the device, with all that was appended to them by now, and can be found there.

        Files first, then their directories, innermost first; of `directory`, and of those that were made on the way to
        a file, also the ancestors that were made since, up to the one that was there before. A file that is not there
        is left out. Where a file system cannot sync a directory, a `UserWarning` says so, once for each directory.

        Raises:
            StorageError: a file or directory could not be synced, or what was appended before a sync that failed is
                lost; that is raised until the file is replaced.
        """
        with self._lock, self._typed("syncing"):
            directories: list[Path] = []
            for path in dict.fromkeys(paths):
                place = self._place(path)
                self._sync_file(place)
                directories += [place.parent, self._beside(path)]
            without = self._sync_directories(directories)
        self._warn(without)

    def read(self, path: str | os.PathLike[str]) -> bytes:
        """Return a file's content; nothing of one that is not there. Raises: StorageError."""
        place = self._place(path)
        with self._typed("reading"):
            try:
                with self._opened(place.parent, make=False) as parent:
                    return read_file(self._files, place.name, parent=parent)
            except FileNotFoundError:
                return b""

    def _place(self, path: str | os.PathLike[str]) -> Path:
        return _real(self._path / path)

    def _beside(self, path: str | os.PathLike[str]) -> Path:
        """Return the directory of the name that was given, which may be that of a symlink."""
        return _real((self._path / path).parent)

    @contextmanager
    def _typed(self, action: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(f"{action} a file", error) from error

    @contextmanager
    def _opened(self, directory: Path, *, make: bool = True) -> Generator[int]:
        if make and not directory.is_dir():
            if not directory.is_relative_to(self._root):
                self._known.setdefault(directory, _existing(directory))
            make_directory(self._files, directory, durable=False)
        number = self._files.open_directory(str(directory))
        try:
            yield number
        finally:
            self._files.close(number)

    def _sync_file(self, place: Path) -> None:
        unsynced = self._unsynced.get(place, _Unsynced())
        try:
            with self._opened(place.parent, make=False) as parent:
                if unsynced.failed:
                    content = read_file(self._files, place.name, parent=parent)
                    unsynced.check(content)
                    replace_file(self._files, place.name, (content,), parent=parent)
                else:
                    sync_existing(self._files, place.name, parent=parent)
        except FileNotFoundError:
            pass
        except OSError:
            unsynced.failed = True
            self._unsynced[place] = unsynced
            raise
        self._unsynced.pop(place, None)

    def _sync_directories(self, directories: Iterable[Path]) -> list[Path]:
        """Sync them and what was made above them; return those that have no barrier."""
        wanted = {one for directory in directories for one in self._chain(directory)}
        without: list[Path] = []
        for directory in sorted(wanted, key=lambda each: len(each.parts), reverse=True):
            try:
                number = self._files.open_directory(str(directory))
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in CLOSED_TO_US:
                    raise
                without.append(directory)
                continue
            try:
                if sync_directory(self._files, number) is not None:
                    without.append(directory)
            finally:
                self._files.close(number)
        return without

    def _chain(self, directory: Path) -> list[Path]:
        """Return the directory, those above it that were made since we first heard of it, and what they are in."""
        top = self._known.get(self._root if directory.is_relative_to(self._root) else directory, directory)
        chain = [directory]
        while chain[-1] != top and top in chain[-1].parents:
            chain.append(chain[-1].parent)
        return chain

    def _warn(self, directories: Iterable[Path]) -> None:
        """Say which directories have no barrier. Done last, for a filter may make an exception of it."""
        fresh = [directory for directory in directories if directory not in self._warned]
        self._warned.update(fresh)
        for directory in fresh:
            warnings.warn(
                f"the directory {directory} cannot be synced: its names may be lost", UserWarning, stacklevel=3
            )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # never raises on a loop of symlinks: opening does


def _existing(path: Path) -> Path:
    """Return the nearest directory, `path` itself or above it, that is there."""
    while not path.is_dir():
        path = path.parent
    return path
