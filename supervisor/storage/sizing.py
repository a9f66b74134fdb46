"""What lies there of each stream of a capture without a receipt. All functions block and run on a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sansio.leftover import RawLeft, StreamLeft
from .directory import close_quietly
from .evidence import STREAMS, open_stream
from .faults import UnsafeDirectoryError
from .owners import this_process
from .publish import RAW

if TYPE_CHECKING:
    from ..sansio.leftover import LaunchRecord, Streams
    from ..sansio.words import StreamName
    from .files import Files


def same_boot(launch: LaunchRecord | None) -> bool | None:
    """Return whether the machine has not been started anew since; then the page cache has every byte (facts 3)."""
    then = None if launch is None else launch.owner.get("boot_id")
    now = this_process()["boot_id"]
    return None if then is None or now is None else then == now


def _verified_end(size: int, verified: bool | None) -> int | None:  # noqa: FBT001 -- three values
    return None if verified is None else size if verified else 0


def _expected(launch: LaunchRecord | None, name: StreamName) -> bool:
    receipt = None if launch is None else launch.receipt
    return receipt is not None and receipt.streams.get(name) is not None


def sizes_of(files: Files, capture: int, launch: LaunchRecord | None, verified: bool | None) -> Streams:  # noqa: FBT001
    """Return what there is of each stream. Raises: OSError."""
    found: Streams = {}
    for stream in STREAMS:
        try:
            number, name = open_stream(files, stream, parent=capture)
        except FileNotFoundError:
            if _expected(launch, stream):
                found[stream] = None
        except UnsafeDirectoryError:
            found[stream] = None
        else:
            try:
                size = files.status(number).st_size
            finally:
                close_quietly(files, number)
            raw = _raw_copy(files, capture, stream)
            found[stream] = StreamLeft(name, size, _verified_end(size, verified), raw=raw)
    return found


def _raw_copy(files: Files, capture: int, stream: StreamName) -> RawLeft | None:
    try:
        number, name = open_stream(files, stream + RAW, parent=capture)
    except (FileNotFoundError, UnsafeDirectoryError):  # as the receipt will say, if there was to be one
        return None
    try:
        return RawLeft(name, files.status(number).st_size)
    finally:
        close_quietly(files, number)
