"""Which files a capture has. All functions block and run on a thread."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from ..sansio.routes import names_in
from .evidence import RAW_COPIES, STREAMS, opened_capture
from .faults import UnsafeDirectoryError
from .publish import LIVE, final_name

if TYPE_CHECKING:
    from ..sansio.receipt import Receipt
    from .directory import Rooms
    from .files import Files


def names_by_stream(files: Files, capture: int, receipt: Receipt) -> dict[str, str]:
    """Return the names of a capture's regular files by stream, `<stream>.raw` being an unsanitised copy.

    The name in the receipt, where a file has it: another may be somebody else's. Else the final one, if that is there.

    Raises:
        OSError: the directory cannot be listed.
    """
    there, known = set(files.names(capture)), names_in(receipt)
    found: dict[str, str] = {}
    for stream in (*STREAMS, *RAW_COPIES):
        both = (final_name(stream), stream + LIVE)
        names = [name for name in both if name in there and _is_regular(files, name, parent=capture)]
        if names:
            found[stream] = next((name for name in names if name in known), names[0])
    return found


def _is_regular(files: Files, name: str, *, parent: int) -> bool:
    try:
        return stat.S_ISREG(files.status_at(name, parent=parent).st_mode)
    except FileNotFoundError:  # renamed or removed meanwhile
        return False


def find_names(files: Files, rooms: Rooms, receipt: Receipt) -> dict[str, str] | None:
    """Return the names of the capture's files by stream; None if it is not there, or may not be opened.

    Raises:
        OSError: from the system.
    """
    with rooms.captures.borrow() as captures:
        try:
            with opened_capture(files, captures, receipt.capture_id) as capture:
                return names_by_stream(files, capture, receipt)
        except (FileNotFoundError, UnsafeDirectoryError):
            return None
