"""What a host's own files need: a line at the end, and another content in one step.

Blocking calls, on a directory that is open; `durable.py` says what stands behind them.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from typing import TYPE_CHECKING

from .directory import close_quietly, create_private_file, unlink_quietly
from .faults import UnsafeDirectoryError
from .files import UNSUPPORTED, Files, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable

APPENDING = os.O_RDWR | os.O_APPEND


def append_line(files: Files, name: str, line: bytes, *, parent: int) -> tuple[int, bytes]:
    """Append a line and its line feed; return where it begins, and all that was written for it.

    What a cut write left is closed by a line feed first, so that it spoils no line but its own.
    Raises: OSError; a part of the line may be there then.
    """
    data = line + b"\n"
    number = _open_or_create(files, name, parent=parent)
    try:
        size = files.status(number).st_size
        if size and files.read(number, 1, offset=size - 1) != b"\n":
            data = b"\n" + data
        write_all(files, number, data)
    except OSError:
        close_quietly(files, number)
        raise
    files.close(number)
    return size, data


def replace_file(files: Files, name: str, parts: Iterable[bytes], *, parent: int) -> None:
    """Put another content in the place of `name`, which need not exist; its mode stays, a new file is 0600.

    The new content is on the device before it gets the name; the name itself is there when the directory is synced.
    Raises: OSError; the old content is then untouched.
    """
    _sweep(files, name, parent=parent)
    temporary = f".{name}.{secrets.token_hex(8)}.new"
    mode = _mode(files, name, parent=parent)
    number = create_private_file(files, temporary, parent=parent, flags=os.O_WRONLY)
    try:
        try:
            _claim(files, number)
            for part in parts:
                write_all(files, number, part)
            files.set_mode(number, mode)
            files.sync_file(number)
        except BaseException:
            close_quietly(files, number)
            raise
        files.close(number)
        files.rename(temporary, name, parent=parent)
    except BaseException:
        unlink_quietly(files, temporary, parent=parent)
        raise


def read_file(files: Files, name: str, *, parent: int) -> bytes:
    """Return the whole content. Raises: OSError."""
    number = files.open_existing(name, parent=parent)
    try:
        parts: list[bytes] = []
        offset = 0
        while part := files.read(number, 1 << 20, offset=offset):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)
    finally:
        close_quietly(files, number)


def sync_existing(files: Files, name: str, *, parent: int) -> bool:
    """Return whether there is such a file; its data is then on the device. Raises: OSError."""
    try:
        number = files.open_existing(name, parent=parent)
    except FileNotFoundError:
        return False
    try:
        files.sync_file(number)
    finally:
        close_quietly(files, number)
    return True


def _open_or_create(files: Files, name: str, *, parent: int) -> int:
    try:
        return create_private_file(files, name, parent=parent, flags=APPENDING)
    except FileExistsError:
        number = files.open_existing(name, parent=parent, flags=APPENDING)
    if stat.S_ISREG(files.status(number).st_mode):
        return number
    close_quietly(files, number)
    raise UnsafeDirectoryError(errno.EINVAL, "not a regular file")


def _mode(files: Files, name: str, *, parent: int) -> int:
    try:
        status = files.status_at(name, parent=parent)
    except FileNotFoundError:
        return 0o600
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeDirectoryError(errno.EINVAL, "not a regular file")
    return stat.S_IMODE(status.st_mode)


def _claim(files: Files, number: int) -> None:
    """Lock a temporary file while it is written, so that nobody takes it for a leftover."""
    try:
        files.lock(number, exclusive=True)
    except OSError as error:
        if error.errno not in {*UNSUPPORTED, errno.ENOLCK}:
            raise


def _sweep(files: Files, name: str, *, parent: int) -> None:
    """Remove what replacements of this file left that were killed. What cannot be locked stays."""
    leftover = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}\.new")
    for found in files.names(parent):
        if not leftover.fullmatch(found):
            continue
        try:
            number = files.open_existing(found, parent=parent)
        except OSError:  # finished meanwhile, or nothing of ours
            continue
        try:
            files.lock(number, exclusive=True)
            files.unlink(found, parent=parent)
        except OSError:
            continue
        finally:
            close_quietly(files, number)
