"""The files of one capture, made and removed as a whole. All functions block and run on a writer's thread."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .directory import close_quietly, create_private_directory, create_private_file, unlink_quietly
from .files import UNSUPPORTED, Files, rename_noreplace, write_all
from .publish import LAUNCH, LIVE, RECEIPT, RESERVED, final_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .descriptor import Descriptor

RESERVED_BYTES: Final = 64 * 1024
"""The most that a receipt has (design, "The public API"); on a full disk a longer one may fail."""
HIDDEN_LAUNCH: Final = ".launch.unfinished"


@dataclass(frozen=True, slots=True)
class Opened:
    """The descriptors of a new capture."""

    directory: int
    receipt: int
    spools: tuple[int, ...]
    reserved: bool


def open_capture(files: Files, captures: Descriptor, capture_id: str, streams: Sequence[str]) -> Opened:
    """Make a capture's directory, its empty live files and the file of its receipt, with its space.

    Raises:
        OSError: nothing of it is left.
    """
    opened: list[int] = []
    with captures.borrow() as parent:
        directory = create_private_directory(files, capture_id, parent=parent)
        try:
            # Not O_APPEND: the receipt is written from byte 0 of its reservation.
            opened.append(create_private_file(files, RESERVED, parent=directory, flags=os.O_WRONLY))
            reserved = _reserve(files, opened[0])
            for stream in streams:
                flags = os.O_WRONLY | os.O_APPEND
                opened.append(create_private_file(files, stream + LIVE, parent=directory, flags=flags))
        except OSError:
            for number in opened:
                close_quietly(files, number)
            remove_names(files, directory, streams)
            close_quietly(files, directory)
            _remove_directory(files, capture_id, parent=parent)
            raise
    return Opened(directory, opened[0], tuple(opened[1:]), reserved)


def undo_open(files: Files, captures: Descriptor, capture_id: str, streams: Sequence[str], opened: Opened) -> None:
    """Remove a capture that was made too late for anybody to use it."""
    for number in (*opened.spools, opened.receipt):
        close_quietly(files, number)
    remove_names(files, opened.directory, streams)
    close_quietly(files, opened.directory)
    try:
        with captures.borrow() as parent:
            _remove_directory(files, capture_id, parent=parent)
    except OSError:
        return


def discard_capture(
    files: Files, captures: Descriptor, capture_id: str, directory: Descriptor, streams: Sequence[str]
) -> None:
    """Remove all files that a capture can have, and its directory.

    Raises:
        OSError: in particular ENOTEMPTY, if something that is not ours lies there.
    """
    with directory.borrow() as number:
        remove_names(files, number, streams)
    directory.discard()
    with captures.borrow() as parent:
        try:
            files.remove_directory(capture_id, parent=parent)
        except FileNotFoundError:  # somebody was faster
            return


def remove_names(files: Files, directory: int, streams: Sequence[str]) -> None:
    """Remove every file that a capture can have, and no other; what cannot be removed makes the rmdir fail."""
    names = [name for stream in streams for name in (stream + LIVE, final_name(stream))]
    for name in (*names, HIDDEN_LAUNCH, LAUNCH, RESERVED, RECEIPT):
        unlink_quietly(files, name, parent=directory)


def _remove_directory(files: Files, name: str, *, parent: int) -> None:
    try:
        files.remove_directory(name, parent=parent)
    except OSError:
        return


def _reserve(files: Files, number: int) -> bool:
    try:
        files.reserve(number, RESERVED_BYTES)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return False
    return True


def write_launch(files: Files, directory: Descriptor, record: bytes) -> None:
    """Make `launch.json`, whole as soon as it is visible.

    Not synced: it is for readers while the machine is up, and after a power loss a capture without it is a leftover
    like any other [D6]; a sync here would delay the first byte of every command by a disk's latency.
    """
    with directory.borrow() as parent:
        number = create_private_file(files, HIDDEN_LAUNCH, parent=parent, flags=os.O_WRONLY)
        try:
            try:
                write_all(files, number, record)
            finally:
                files.close(number)
            rename_noreplace(files, HIDDEN_LAUNCH, LAUNCH, parent=parent)
        except OSError:
            unlink_quietly(files, HIDDEN_LAUNCH, parent=parent)
            raise
