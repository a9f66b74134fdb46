"""What a consumer is shown of a job's output: the newest text up to a limit, and exactly what it is not shown.

Each consumer has a cursor of its own, a value that nobody else moves. A part that is shown says how many bytes between
the cursor and its first character were left out; they are in the file. Nothing is skipped without a word (E1, E3).
"""

from __future__ import annotations

import codecs
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from supervisor import Cursor, CursorError, StorageError

if TYPE_CHECKING:
    from adapters.blocking import BlockingJob
    from supervisor import Receipt

    StreamName = Literal["stdout", "stderr"]

READ_SECONDS: Final = 10.0
"""After which a disk that does not answer is not waited for."""
LONGEST_CHARACTER: Final = 4
"""Bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stream, shown to one consumer."""

    text: str = ""
    skipped: int = 0
    """Bytes between the consumer's place and `text`."""
    end: int = 0
    """The consumer's new place, in bytes of the text."""
    error: str | None = None
    """Why there may be more that could not be read."""


class Tail:
    """The last text of a stream that is in no file, for a job without a usable directory.

    Args:
        capacity: Bytes kept; older ones are counted only.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity: Final = capacity
        self._lock: Final = threading.Lock()
        self._kept = bytearray()
        self._end = 0

    def add(self, text: bytes, skipped: int = 0) -> None:
        """Take more text, and the number of bytes before it that nobody has."""
        with self._lock:
            if skipped:
                self._kept.clear()
            self._kept += text
            self._end += skipped + len(text)
            del self._kept[: max(0, len(self._kept) - self._capacity)]

    def part(self, start: int, characters: int) -> Part:
        """Return the newest text since `start`, at most so many characters."""
        with self._lock:
            kept, end = bytes(self._kept), self._end
        first = end - len(kept)
        text = codecs.decode(kept[max(0, start - first) :], "utf-8", "replace")
        return _newest(Part(text, max(0, first - start), end), characters)


def part(job: BlockingJob, stream: StreamName, start: int, characters: int) -> Part:
    """Return the newest committed text since byte `start`, at most so many characters; it never raises.

    Where the file cannot be read, it is the end of the receipt's preview, with the reason.
    """
    receipt = job.receipt
    facts = receipt.streams.get(stream)
    if facts is None:
        return Part(end=start)
    end = facts.committed if facts.retained.end is None else facts.retained.end
    if end is None or facts.state in {"unavailable", "disabled"}:
        return _from_preview(receipt, stream, start, characters, facts.reason or facts.state)
    first = max(start, end - LONGEST_CHARACTER * characters)
    if first >= end:
        return Part(end=max(start, end))
    try:
        text, begin, after = _read(job, Cursor(job.capture_id, stream, facts.retained.generation, first), end)
    except CursorError as error:
        return Part(skipped=end - start, end=end, error=f"bytes {error.start} to {error.end} of it can be read")
    except (StorageError, TimeoutError) as error:
        return _from_preview(receipt, stream, start, characters, str(error) or "the disk does not answer")
    return _newest(Part(text, max(0, begin - start), after), characters)


def _read(job: BlockingJob, cursor: Cursor, end: int) -> tuple[str, int, int]:
    """Return the text from the cursor to `end`, where it begins and where it ends."""
    texts: list[str] = []
    begin: int | None = None
    while cursor.offset < end:
        page = job.read(cursor.stream, cursor, max(LONGEST_CHARACTER, end - cursor.offset), READ_SECONDS)
        begin = page.start.offset if begin is None else begin
        if not page.text:
            break
        texts.append(page.text)
        cursor = page.cursor
    return "".join(texts), cursor.offset if begin is None else begin, cursor.offset


def _newest(shown: Part, characters: int) -> Part:
    if len(shown.text) <= characters:
        return shown
    text = shown.text[-characters:]
    cut = len(shown.text[:-characters].encode())
    return replace(shown, text=text, skipped=shown.skipped + cut)


def _from_preview(receipt: Receipt, stream: StreamName, start: int, characters: int, reason: str) -> Part:
    facts = receipt.streams[stream]
    preview = None if facts is None else facts.preview
    if preview is None:
        return Part(end=start, error=reason)
    end = preview.returned_bytes + preview.omitted_bytes
    if start >= end:
        return Part(end=start, error=reason)
    text = preview.head + preview.tail if preview.state == "complete" else preview.tail
    text = text.encode()[start - end :].decode("utf-8", "replace") if end - start < len(text.encode()) else text
    return _newest(Part(text, end - start - len(text.encode()), end, reason), characters)
