"""One page of a stream: whole characters, from a cursor on.

A page is cut out of bytes that somebody else has read from a file, or has in memory. Two rules make pages of any size
fit together [E3]: a page begins at the border of a character (a cursor inside one is moved back, and `Page.start` says
so) and ends at one. So whoever reads takes up to three bytes before the cursor too, and the least page is four bytes,
the longest character of UTF-8 (RFC 3629, section 3).

The end of the bytes is not always a border: a write in flight shows in part, a full disk or a crash cuts anywhere. What
is left of such a character is never part of a page; where nothing more will come, the text ends before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..errors import CursorError, StorageError
from .characters import cut
from .cursor import Cursor, align_back

if TYPE_CHECKING:
    from .receipt import StreamFacts
    from .words import CaptureReason, CaptureState, StreamName

PAGE_BYTES: Final = 65536
"""What a page holds at most unless its reader says otherwise: a pipe's size, some 800 lines."""
LONGEST_CHARACTER: Final = 4
"""The least that `max_bytes` may be: below it a page could stay empty for ever."""


@dataclass(frozen=True, slots=True)
class Page:
    """A range of a stream's committed text. It is untrusted data, whoever reads it back [E8]."""

    text: str
    """Whole characters; empty only if there is nothing at the cursor."""
    start: Cursor
    """Where `text` begins: the cursor that was asked for, or up to three bytes before it."""
    cursor: Cursor
    """Where `text` ends; read on from here."""
    state: CaptureState
    """The stream's, when the page was read: `pending` while text may still come."""
    reason: CaptureReason | None
    eof: bool
    """Nothing follows at `cursor`, now or later."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a stream besides its bytes."""

    state: CaptureState
    reason: CaptureReason | None = None
    ended: bool = False
    """Whether nothing will be added."""
    start: int = 0
    """Where the retained range begins."""
    end: int | None = None
    """Where it ends; None: where the bytes end."""
    generation: int = 0


PENDING: Final = Standing("pending")
ABSENT: Final = Standing("complete", ended=True)
"""A stream that does not exist, because another one carries its text [B7]: nothing of it is missing."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The page that a reader asks for. Made by `wanted`."""

    cursor: Cursor
    max_bytes: int

    @property
    def offset(self) -> int:
        """From where on bytes are needed."""
        return max(0, self.cursor.offset - (LONGEST_CHARACTER - 1))

    @property
    def count(self) -> int:
        """How many bytes are needed from `offset` on."""
        return self.cursor.offset - self.offset + self.max_bytes

    @property
    def place(self) -> tuple[str, StreamName, int, int]:
        """Capture, stream, offset and count: what is asked of whoever reads the file."""
        return self.cursor.capture_id, self.cursor.stream, self.offset, self.count

    def after(self, page: Page) -> Wanted:
        """Return the request for the page that follows."""
        return Wanted(page.cursor, self.max_bytes)


def wanted(capture_id: str, stream: StreamName, cursor: Cursor | None, max_bytes: int) -> Wanted:
    """Return a request for the page at `cursor`; None: at the beginning.

    Raises:
        ValueError: no capture has such an id, no stream that name, the cursor is of another capture or stream, or
            `max_bytes` is below 4. The message repeats none of them.
    """
    beginning = Cursor(capture_id, stream)
    if max_bytes < LONGEST_CHARACTER:
        raise ValueError("max_bytes must be at least 4, the longest character of UTF-8")
    if cursor is None:
        return Wanted(beginning, max_bytes)
    if (cursor.capture_id, cursor.stream) != (capture_id, stream):
        raise ValueError("the cursor is of another capture or stream")
    return Wanted(cursor, max_bytes)


def settled(facts: StreamFacts | None) -> Standing:
    """Return how a stream of a final receipt stands; None is a stream that does not exist."""
    if facts is None:
        return ABSENT
    retained = facts.retained
    return Standing(
        facts.state, facts.reason, ended=True, start=retained.start, end=retained.end, generation=retained.generation
    )


def page_of(request: Wanted, data: bytes, size: int, standing: Standing) -> Page:
    """Return the page that `data`, the bytes from `request.offset` on, holds. `size` is the length of the whole.

    Raises:
        CursorError: the cursor is of another generation, or outside the retained range.
        StorageError: the bytes are fewer than the receipt says, or not the text that was written. A page ends before
            zeros, and the one that would begin with them is this error.
    """
    end = size if standing.end is None else standing.end
    if size < end:
        raise StorageError("the text is shorter than its receipt says", reason="io-error")
    cursor, base = request.cursor, request.offset
    if cursor.generation != standing.generation or not standing.start <= cursor.offset <= end:
        raise CursorError(
            f"the cursor is outside the retained range {standing.start}-{end} of generation {standing.generation}",
            start=standing.start,
            end=end,
            generation=standing.generation,
        )
    data = data[: end - base]
    first = align_back(data, cursor.offset - base)
    last = max(first, cut(data, first + request.max_bytes))
    hole = data.find(0, first, last)
    if hole >= 0:  # no text has a NUL [B8]: what lay there never reached the disk
        last = hole
    text = _decoded(data[first:last])
    if not text and (hole >= 0 or len(data) - first >= LONGEST_CHARACTER):
        raise _damaged()
    whole = base + len(data) == end and last >= cut(data, len(data))
    return Page(
        text,
        start=cursor.at(base + first),
        cursor=cursor.at(base + last),
        state=standing.state,
        reason=standing.reason,
        eof=standing.ended and whole,
    )


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _damaged() from None


def _damaged() -> StorageError:
    return StorageError("the bytes are not the text that was written: somebody else changed them", reason="io-error")
