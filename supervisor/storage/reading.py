"""A capture seen from its files alone, whoever wrote them and whether or not it lives [E2-E4].

A capture is found by its id and each file of it by a walk that follows no symlink; a foreign owner, a second name or
anything but a regular file is refused [D2]. All functions block, run on a thread, and leave nothing open.

The order of the looks is what makes an end an end: first whether there is a receipt or a live owner, then the file. So
text that was committed before its owner ended cannot be missed.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from ..errors import StorageError, UnknownCapture
from ..sansio.page import ABSENT, PENDING, Standing, settled
from ..sansio.receipt import Receipt
from .creation import HIDDEN_LAUNCH
from .directory import CAPTURES, STATE, TOOL_OUTPUTS, check_directory, check_file, close_quietly
from .faults import UnsafeDirectoryError
from .owners import SUFFIX, is_live, start_time, this_process
from .publish import FINAL, LAUNCH, LIVE, RECEIPT, RESERVED

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from ..sansio.words import StreamName
    from .files import Files

RECORD_BYTES: Final = 1024 * 1024
"""The most that is read of a record. A receipt has 64 KiB, a launch record little more; longer ones are not ours."""
LOOKS: Final = 3
"""How often a file's two names are tried: it is renamed once in its life, so the second time finds it."""
LOST: Final = Standing("partial", "supervisor-lost", ended=True)
"""No receipt, and nobody who could still write one [D6]."""


@dataclass(frozen=True, slots=True)
class Place:
    """The open directories of one capture; the numbers are good inside `opened_capture`."""

    tool_outputs: int
    capture: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of one stream's file, and the file's length at that moment."""

    data: bytes
    size: int
    identity: tuple[int, int] | None
    """The file itself (device, inode), whatever its name; None where there is none."""


NOTHING: Final = Piece(b"", 0, None)


@dataclass(frozen=True, slots=True)
class Look:
    """One stream of a capture at one moment."""

    standing: Standing
    piece: Piece


@contextmanager
def opened_capture(files: Files, directory: Path, capture_id: str) -> Generator[Place]:
    """Lend the directories of a capture of the conversation `directory`. The id must have been checked.

    Raises:
        UnknownCapture: the conversation has none of that id.
        OSError: in particular UnsafeDirectoryError; ENOENT for a conversation that does not exist.
    """
    opened: list[int] = []
    try:
        opened.append(files.open_directory(str(directory.absolute())))
        check_directory(files, opened[0], private=False)
        try:
            for name, private in ((TOOL_OUTPUTS, False), (CAPTURES, True), (capture_id, True)):
                opened.append(files.open_directory(name, parent=opened[-1]))
                check_directory(files, opened[-1], private=private)
        except FileNotFoundError:
            raise UnknownCapture(f"this conversation has no capture {capture_id}") from None
        yield Place(tool_outputs=opened[1], capture=opened[3])
    finally:
        for number in reversed(opened):
            close_quietly(files, number)


def read_piece(files: Files, directory: Path, capture_id: str, stream: StreamName, offset: int, count: int) -> Piece:
    """Return up to `count` bytes of a stream's file from `offset` on, whatever its name is now.

    Raises:
        UnknownCapture, OSError: as `opened_capture`.
        StorageError: the file is gone, or became shorter under the call.
    """
    with opened_capture(files, directory, capture_id) as place:
        piece = _piece(files, place.capture, stream, offset=offset, count=count)
    return piece or _missing(stream)


def look(files: Files, directory: Path, capture_id: str, stream: StreamName, offset: int, count: int) -> Look:
    """Return how a stream stands and up to `count` of its bytes from `offset` on, from the files alone.

    Raises:
        UnknownCapture, OSError: as `opened_capture`.
        StorageError: a record cannot be used, or the file is gone or became shorter under the call.
    """
    with opened_capture(files, directory, capture_id) as place:
        launch = _record(files, LAUNCH, HIDDEN_LAUNCH, parent=place.capture)
        standing = _standing(files, place, launch, capture_id, stream)
        if standing is ABSENT:
            return Look(standing, NOTHING)
        piece = _piece(files, place.capture, stream, offset=offset, count=count)
        if piece is None and launch is not None and not standing.ended:
            _missing(stream)
    # Without a file: it was not kept, or the capture is just being made, or was left so. A receipt's end convicts it.
    return Look(standing, piece or NOTHING)


def _standing(files: Files, place: Place, launch: object, capture_id: str, stream: StreamName) -> Standing:
    receipt = _receipt(files, place, capture_id)
    if receipt is None:
        if _never_was(launch, stream):
            return ABSENT
        if _is_owned(files, place.tool_outputs, launch):
            return PENDING
        # Its owner may have published it and ended between the two looks.
        receipt = _receipt(files, place, capture_id)
        if receipt is None:
            return LOST
    return settled(receipt.streams.get(stream))


def _receipt(files: Files, place: Place, capture_id: str) -> Receipt | None:
    data = _bytes_of(files, RECEIPT, RESERVED, parent=place.capture)
    if data is None:
        return None
    try:
        receipt = Receipt.parse(data)
    except ValueError:
        raise StorageError(
            "the receipt cannot be read: it is damaged or of a newer version", reason="io-error"
        ) from None
    if receipt.capture_id != capture_id:
        raise StorageError("the receipt is of another capture", reason="io-error")
    return receipt


def _record(files: Files, name: str, other: str, *, parent: int) -> Any | None:  # noqa: ANN401 - JSON of any shape
    """Return a record that is not evidence: one that cannot be read is as good as none."""
    data = _bytes_of(files, name, other, parent=parent)
    try:
        return None if data is None else from_json(data)
    except ValueError:
        return None


def _field(record: object, *names: str) -> object:
    """Return what lies at a path of names in a record; None if nothing does."""
    for name in names:
        if not isinstance(record, dict) or name not in record:
            return None
        record = record[name]  # pyright: ignore[reportUnknownVariableType] -- JSON
    return record  # pyright: ignore[reportUnknownVariableType] -- JSON


def _never_was(launch: object, stream: StreamName) -> bool:
    streams = _field(launch, "receipt", "streams")
    return isinstance(streams, dict) and stream in streams and streams[stream] is None


def _is_owned(files: Files, tool_outputs: int, launch: object) -> bool:
    """Return whether somebody lives who could still add to the capture and publish it [D6].

    A capture without a usable launch record may be just being made: then any live owner of the conversation counts.
    """
    try:
        state = files.open_directory(STATE, parent=tool_outputs)
    except FileNotFoundError:
        return False
    try:
        check_directory(files, state, private=True)
        name = _field(launch, "owner", "name")
        if not isinstance(name, str) or "/" in name or not name.endswith(SUFFIX):
            return any(is_live(state, found, files) for found in files.names(state) if found.endswith(SUFFIX))
        live = is_live(state, name, files)
    finally:
        close_quietly(files, state)
    return _is_running(_field(launch, "owner")) if live is None else live


def _is_running(identity: object) -> bool:
    """Return whether the process that a launch record names still runs here: for a lock that cannot be asked."""
    here = this_process()
    pid = _field(identity, "pid")
    same_machine = all(_field(identity, name) == here[name] for name in ("boot_id", "pid_namespace"))
    if not same_machine or not isinstance(pid, int) or here["boot_id"] is None:
        return False
    started = start_time(pid)
    return started is not None and started == _field(identity, "start_time")


def _piece(files: Files, capture: int, stream: StreamName, *, offset: int, count: int) -> Piece | None:
    number = _open_stream(files, stream, parent=capture)
    if number is None:
        return None
    try:
        status = files.status(number)
        wanted = max(0, min(count, status.st_size - offset))
        data = _read(files, number, wanted, offset=offset)
    finally:
        close_quietly(files, number)
    if len(data) < wanted:
        raise StorageError(f"{stream} became shorter while it was read", reason="io-error")
    return Piece(data, status.st_size, (status.st_dev, status.st_ino))


def _open_stream(files: Files, stream: StreamName, *, parent: int) -> int | None:
    live, final = stream + LIVE, stream + FINAL
    for _ in range(LOOKS):
        for name, other in ((final, live), (live, final)):
            try:
                return _open(files, name, other, parent=parent)
            except FileNotFoundError:
                continue
    return None


def _bytes_of(files: Files, name: str, other: str, *, parent: int) -> bytes | None:
    try:
        number = _open(files, name, other, parent=parent)
    except FileNotFoundError:
        return None
    try:
        data = _read(files, number, RECORD_BYTES + 1, offset=0)
    finally:
        close_quietly(files, number)
    if len(data) > RECORD_BYTES:
        raise StorageError(f"{name} is longer than any that we write", reason="io-error")
    return data


def _open(files: Files, name: str, other: str, *, parent: int) -> int:
    """Return a checked descriptor of a file that is ours alone; `other` is the name that it has before or after."""
    number = files.open_existing(name, parent=parent)
    try:
        try:
            check_file(files, number)
        except UnsafeDirectoryError:
            if not _is_half_named(files, number, other, parent=parent):
                check_file(files, number)  # the renaming may have been finished between the two looks
    except BaseException:
        close_quietly(files, number)
        raise
    return number


def _is_half_named(files: Files, number: int, other: str, *, parent: int) -> bool:
    """Return whether the file has two names because a no-clobber rename by link and unlink is half done [D2]."""
    status = files.status(number)
    try:
        twin = files.status_at(other, parent=parent)
    except FileNotFoundError:
        return False
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return ours and status.st_nlink == 2 and os.path.samestat(status, twin)  # noqa: PLR2004 - two names


def _read(files: Files, number: int, count: int, *, offset: int) -> bytes:
    """Return `count` bytes, or as many as there are (read(2) may give fewer than asked for before the end)."""
    parts: list[bytes] = []
    while count and (part := files.read(number, count, offset=offset)):
        parts.append(part)
        count -= len(part)
        offset += len(part)
    return b"".join(parts)


def _missing(stream: StreamName) -> Piece:
    raise StorageError(f"the file of {stream} is gone", reason="io-error")
