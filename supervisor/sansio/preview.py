"""The part of a text that is shown at once: its true beginning and a larger true end (contract E6).

The preview follows the text from byte 0 to its end, whatever becomes of the file, so that the last error is in it (B5).
It keeps two windows, the first and the last bytes of the text, each no longer than the most that can be shown; what a
feed costs beyond counting line feeds depends on the windows, not on the text, and no line is ever joined.

The head gets a quarter of the budget and the tail the rest, what the head did not need included: the end of an output
is where the outcome is. A cut moves to a line's border if one is near.

A carriage return in the text says that what follows is written over the line so far. Only the last state of a line is
shown, and the others, the frames of a progress bar, are counted. The text itself has all of them, so a preview that
left one out is not complete. Of the line that may still be written over a window of its own is kept, lest
one long state push out what was before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .characters import cut, first_border

if TYPE_CHECKING:
    from ..limits import Limits
    from .words import PreviewState

_HEAD_SHARE: Final = 4
"""One in this many of a budget goes to the head."""
_HEAD_SLACK: Final = 4
"""One in this many of the head may be given up for its last line's end."""
_TAIL_SLACK: Final = 8
"""One in this many of the tail may be given up for its first line's beginning."""
_LONGEST_CHARACTER: Final = 4
"""Bytes (RFC 3629)."""
_OVERWRITTEN: Final = re.compile(rb"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
"""All states of a line but its last one. A return at the end of the text is not known to be written over yet."""


@dataclass(frozen=True, slots=True)
class PreviewText:
    """A preview at one moment; its fields are those of the receipt's `PreviewFacts`."""

    state: PreviewState
    head: str
    tail: str
    returned_bytes: int
    budget_bytes: int
    omitted_bytes: int
    frames_dropped: int = 0


class Preview:
    """The preview of one stream, of at most `max_chars` characters and `max_bytes` bytes.

    A carriage return in the text stands for a line feed in the text that is kept, and counts as one.
    """

    def __init__(self, max_chars: int, max_bytes: int) -> None:
        self._max_chars: Final = max_chars
        self._max_bytes: Final = max_bytes
        self._window: Final = min(max_bytes, _LONGEST_CHARACTER * max_chars)
        self._head: Final = bytearray()
        self._tail = bytearray()
        """The end of the finished lines, what was overwritten left out."""
        self._line = bytearray()
        """The end of the last, unfinished line: its last state so far."""
        self._finished = 0
        """Bytes of all finished lines as they are shown."""
        self._line_size = 0
        self._returned = False
        """Whether the text ends with a carriage return, so that the next byte writes over the line."""
        self._ended_line = False
        self.frames_dropped = 0
        """States of a line that were written over, empty ones included."""
        self.total = 0
        """Bytes of the text so far."""
        self.lines = 0
        """Line feeds so far (contract A6)."""

    def feed(self, text: bytes) -> None:
        """Go on with the next bytes of the text, cut anywhere."""
        if not text:
            return
        self.total += len(text)
        self.lines += text.count(b"\n")
        self._ended_line = text[-1:] in {b"\n", b"\r"}
        # Looking is ten times as fast as counting, which takes a byte at a time before Python 3.13.
        if self._returned or b"\r" in text:
            self.lines += text.count(b"\r")
            text = self._without_frames(text)
        room = self._window - len(self._head)
        if room > 0:
            self._head.extend(text[:room])
        end = text.rfind(b"\n") + 1
        if end:
            self._tail += self._line
            self._keep_end(self._tail, text[:end] if end < self._window else text[end - self._window : end])
            self._finished += self._line_size + end
            self._line.clear()
            self._line_size = 0
        self._keep_end(self._line, text[max(end, len(text) - self._window) :])
        self._line_size += len(text) - end

    def _without_frames(self, text: bytes) -> bytes:
        """Return `text` without what it writes over, and take that out of the line that was there before."""
        if self._returned:
            text = b"\r" + text
        if _OVERWRITTEN.match(text):
            del self._head[self._finished :]
            self._line.clear()
            self._line_size = 0
        kept = _OVERWRITTEN.sub(b"", text)
        self._returned = kept.endswith(b"\r")
        self.frames_dropped += text.count(b"\r") - self._returned
        return kept.replace(b"\r", b"")

    def _keep_end(self, window: bytearray, text: bytes) -> None:
        """Add `text`, at most a window of it, and move on."""
        if len(text) == self._window:
            window[:] = text  # there may be a gap before it
            return
        window += text
        # Only at twice the window, so that small feeds do not move the whole window each.
        if len(window) > 2 * self._window:
            del window[: len(window) - self._window]

    @property
    def ends_with_newline(self) -> bool | None:
        """Whether the last line is finished; None for an empty text."""
        return self._ended_line if self.total else None

    @property
    def fits(self) -> bool:
        """The whole text is within both ceilings, so that its preview is complete."""
        return not self.frames_dropped and self._whole(self._max_chars, self._max_bytes) is not None

    def render(self, budget_chars: int, budget_bytes: int) -> PreviewText:
        """Return what fits both budgets and the preview's own ceilings.

        The bytes of a last character that is not complete yet are not counted as text.
        """
        chars, size = min(budget_chars, self._max_chars), min(budget_bytes, self._max_bytes)
        whole = self._whole(chars, size)
        if whole is not None:
            head, tail = whole, ""
        else:
            head = _prefix(_decoded(self._head), chars // _HEAD_SHARE, size // _HEAD_SHARE)
            head = _to_line_end(head)
            end = self._tail + self._line + self._last_feed
            # No overlap: the whole text exceeds one of the two budgets, and head and tail together do not.
            tail = _to_line_start(_suffix(_decoded(end[-self._window :]), chars - len(head), size - len(head.encode())))
        returned = len(head.encode()) + len(tail.encode())
        state: PreviewState = "complete" if whole is not None and not self.frames_dropped else "clipped"
        omitted = self.total - self._unfinished() - returned
        return PreviewText(state, head, tail, returned, size, omitted, self.frames_dropped)

    @property
    def _last_feed(self) -> bytes:
        """What a return that ends the text stands for."""
        return b"\n" if self._returned else b""

    def _unfinished(self) -> int:
        return len(self._line) - cut(self._line, len(self._line))

    def _whole(self, chars: int, size: int) -> str | None:
        """Return all that is shown, if it is within both bounds."""
        length = self._finished + self._line_size + self._returned
        if length > self._window or length - self._unfinished() > size:
            return None
        text = _decoded(self._head + self._last_feed)
        return text if len(text) <= chars else None


def share(
    stdout: Preview, stderr: Preview | None, limits: Limits, *, failed: bool
) -> tuple[PreviewText, PreviewText | None]:
    """Return both previews: each within its ceiling in characters, together within `preview_bytes`.

    Of a failed job stderr gets all it can use first. Otherwise stdout does, except for what stderr can use of its fair
    share, which is in proportion to the ceilings; what stdout leaves is stderr's.
    """
    out_chars, err_chars, size = limits.preview_stdout_chars, limits.preview_stderr_chars, limits.preview_bytes
    if stderr is None:
        return stdout.render(out_chars, size), None
    if failed:
        err = stderr.render(err_chars, size)
        return stdout.render(out_chars, size - err.returned_bytes), err
    fair = size * err_chars // (out_chars + err_chars)
    reserved = min(fair, stderr.render(err_chars, size).returned_bytes)
    out = stdout.render(out_chars, size - reserved)
    return out, stderr.render(err_chars, size - out.returned_bytes)


def _decoded(window: bytearray) -> str:
    """Return the whole characters of a window, which may begin and end in mid-character."""
    return window[first_border(window) : cut(window, len(window))].decode()


def _prefix(text: str, chars: int, size: int) -> str:
    encoded = text[:chars].encode()
    return encoded[: cut(encoded, size)].decode()


def _suffix(text: str, chars: int, size: int) -> str:
    encoded = text[max(0, len(text) - chars) :].encode()
    return encoded[first_border(encoded, max(0, len(encoded) - size)) :].decode()


def _to_line_end(head: str) -> str:
    feed = head.rfind("\n", len(head) - len(head) // _HEAD_SLACK)
    return head if feed < 0 else head[: feed + 1]


def _to_line_start(tail: str) -> str:
    feed = tail.find("\n", 0, len(tail) // _TAIL_SLACK)
    return tail[feed + 1 :]
