"""A published capture from which a copy is made [E10]. All functions block and run on a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..errors import StorageError, UnknownCapture
from ..sansio.routes import reached
from .contents import names_by_stream
from .descriptor import Descriptor
from .directory import check_directory, close_quietly
from .evidence import STREAMS, DamagedReceipt, open_stream, read_receipt
from .faults import UnsafeDirectoryError
from .recovery import is_still_there, lock_directory, site_of

if TYPE_CHECKING:
    from ..sansio.receipt import Receipt
    from ..sansio.words import StreamName
    from .directory import Rooms
    from .files import Files


@dataclass(frozen=True, slots=True)
class Text:
    """The open file of one stream."""

    file: Descriptor
    size: int
    """How much of it is to be copied: what its receipt says, or all there is where the receipt says nothing."""
    digest: str | None
    """What the receipt says that the digest of these bytes is."""


class Outgoing:
    """A capture whose directory is locked: nobody removes or recovers it until `close`."""

    def __init__(self, receipt: Receipt, directory: Descriptor, texts: dict[StreamName, Text]) -> None:
        self.receipt: Final = receipt
        """As it is true where the capture lies."""
        self.texts: Final = texts
        """The sanitised texts that are there, as long as the receipt says. Unsanitised copies are not copied [B8]."""
        self._directory: Final = directory

    def close(self) -> None:
        """Close the files and let go of the lock."""
        for text in self.texts.values():
            text.file.discard()
        self._directory.discard()


def open_outgoing(files: Files, rooms: Rooms, capture_id: str) -> Outgoing:
    """Open a published capture to be copied.

    Raises:
        UnknownCapture: there is none of that id, any more.
        StorageError: it has no receipt that can be used.
        OSError: in particular UnsafeDirectoryError.
    """
    with rooms.captures.borrow() as captures:
        try:
            number = files.open_directory(capture_id, parent=captures)
        except FileNotFoundError:
            raise _unknown(capture_id) from None
        try:
            check_directory(files, number, private=True)
            lock_directory(files, number)
            _check_name(files, number, capture_id, parent=captures)
            here, texts = _look_inside(files, rooms, capture_id, number)
        except BaseException:
            close_quietly(files, number)
            raise
    return Outgoing(here, Descriptor(files, number), texts)


def _check_name(files: Files, number: int, capture_id: str, *, parent: int) -> None:
    if not is_still_there(files, number, capture_id, parent=parent):
        raise _unknown(capture_id)


def _look_inside(files: Files, rooms: Rooms, capture_id: str, number: int) -> tuple[Receipt, dict[StreamName, Text]]:
    receipt = _receipt(files, number)
    receipt = reached(receipt, site_of(rooms.path, capture_id), names_by_stream(files, number, receipt))
    return receipt, _opened_texts(files, number, receipt)


def _opened_texts(files: Files, capture: int, receipt: Receipt) -> dict[StreamName, Text]:
    texts: dict[StreamName, Text] = {}
    try:
        for stream in STREAMS:
            facts = receipt.streams.get(stream)
            if facts is None or facts.access != "local":
                continue
            try:
                number, _ = open_stream(files, stream, parent=capture)
            except (FileNotFoundError, UnsafeDirectoryError):  # it is nobody's evidence, and the copy will say so
                continue
            file = Descriptor(files, number)
            size = files.status(number).st_size
            wanted = size if facts.retained.end is None else facts.retained.end
            if size < wanted:
                file.discard()
                continue
            texts[stream] = Text(file, wanted, facts.sha256)
    except OSError:
        for text in texts.values():
            text.file.discard()
        raise
    return texts


def _receipt(files: Files, capture: int) -> Receipt:
    try:
        receipt = read_receipt(files, capture)
    except DamagedReceipt as damage:
        raise StorageError(str(damage.args[0]), reason="io-error") from None
    if receipt is None:
        raise StorageError("the capture has no receipt", reason="io-error")
    return receipt


def _unknown(capture_id: str) -> UnknownCapture:
    return UnknownCapture(f"this conversation has no capture {capture_id}")
