"""A capture seen from its files alone, whoever wrote them and whether or not it lives [E2-E4].

A capture is found by its id and each file of it by a walk that follows no symlink; a foreign owner, a second name or
anything but a regular file is refused [D2]. All functions block, run on a thread, and leave nothing open.

The order of the looks is what makes an end an end: first whether there is a receipt or a live owner, then the file. So
text that was committed before its owner ended cannot be missed.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..errors import StorageError, UnknownCapture
from ..sansio.page import ABSENT, PENDING, Standing, settled
from .directory import CAPTURES, TOOL_OUTPUTS, check_directory, close_quietly
from .evidence import (
    DamagedReceipt,
    OverlongRecordError,
    asked_owners,
    open_stream,
    pieces,
    read_launch,
    read_receipt,
)

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from ..sansio.leftover import LaunchRecord
    from ..sansio.receipt import Receipt
    from ..sansio.words import StreamName
    from .files import Files

LOST: Final = Standing("partial", "supervisor-lost", ended=True)
"""No receipt, and nobody who could still write one [D6]."""
GONE: Final = Standing("failed", "supervisor-lost", ended=True)
"""Nor the file that was launched with it."""


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
        try:
            launch = read_launch(files, place.capture)
            standing = _standing(files, place, launch, capture_id, stream)
        except (DamagedReceipt, OverlongRecordError) as fault:
            raise StorageError(str(fault.args[-1]), reason="io-error") from None
        if standing is ABSENT:
            return Look(standing, NOTHING)
        piece = _piece(files, place.capture, stream, offset=offset, count=count)
        if piece is None and launch is not None and not standing.ended:
            _missing(stream)
    if piece is None and launch is not None and standing is LOST:
        standing = GONE
    # Without a file: it was not kept, or the capture is just being made, or was left so. A receipt's end convicts it.
    return Look(standing, piece or NOTHING)


def _standing(files: Files, place: Place, launch: LaunchRecord | None, capture_id: str, stream: StreamName) -> Standing:
    receipt = _receipt(files, place, capture_id)
    if receipt is None:
        if launch is not None and launch.receipt is not None and launch.receipt.streams.get(stream, ...) is None:
            return ABSENT
        with asked_owners(files, place.tool_outputs) as owners:
            if owners.lives(None if launch is None else launch.owner):
                return PENDING
        # Its owner may have published it and ended between the two looks.
        receipt = _receipt(files, place, capture_id)
        if receipt is None:
            return LOST
    return settled(receipt.streams.get(stream))


def _receipt(files: Files, place: Place, capture_id: str) -> Receipt | None:
    receipt = read_receipt(files, place.capture)
    if receipt is not None and receipt.capture_id != capture_id:
        raise StorageError("the receipt is of another capture", reason="io-error")
    return receipt


def _piece(files: Files, capture: int, stream: StreamName, *, offset: int, count: int) -> Piece | None:
    try:
        number, _ = open_stream(files, stream, parent=capture)
    except FileNotFoundError:
        return None
    try:
        status = files.status(number)
        wanted = max(0, min(count, status.st_size - offset))
        data = b"".join(pieces(files, number, wanted, offset=offset))
    finally:
        close_quietly(files, number)
    if len(data) < wanted:
        raise StorageError(f"{stream} became shorter while it was read", reason="io-error")
    return Piece(data, status.st_size, (status.st_dev, status.st_ino))


def _missing(stream: StreamName) -> Piece:
    raise StorageError(f"the file of {stream} is gone", reason="io-error")
