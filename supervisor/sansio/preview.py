"""The part of a text that is shown at once: its true beginning and a larger true end (contract E6).

The preview follows the text from byte 0 to its end, whatever becomes of the file, so that the last error is in it (B5).
It keeps two windows, the first and the last bytes of the text, each no longer than the most that can be shown; what a
feed costs beyond counting line feeds depends on the windows, not on the text, and no line is ever joined.

The head gets a quarter of the budget and the tail the rest, what the head did not need included: the end of an output
is where the outcome is. A cut moves to a line's border if one is near.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class PreviewText:
    """A preview at one moment; its fields are those of the receipt's `PreviewFacts`."""

    state: PreviewState
    head: str
    tail: str
    returned_bytes: int
    budget_bytes: int
    omitted_bytes: int


class Preview:
    """The preview of one stream, of at most `max_chars` characters and `max_bytes` bytes."""

    def __init__(self, max_chars: int, max_bytes: int) -> None:
        self._max_chars: Final = max_chars
        self._max_bytes: Final = max_bytes
        self._window: Final = min(max_bytes, _LONGEST_CHARACTER * max_chars)
        self._head: Final = bytearray()
        self._tail = bytearray()
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
        room = self._window - len(self._head)
        if room > 0:
            self._head.extend(text[:room])
        if len(text) >= self._window:
            self._tail = bytearray(text[len(text) - self._window :])
            return
        self._tail += text
        # Only at twice the window, so that small feeds do not move the whole window each.
        if len(self._tail) > 2 * self._window:
            del self._tail[: len(self._tail) - self._window]

    @property
    def ends_with_newline(self) -> bool | None:
        """Whether the last line is finished; None for an empty text."""
        return self._tail.endswith(b"\n") if self.total else None

    @property
    def fits(self) -> bool:
        """The whole text is within both ceilings, so that its preview is complete."""
        return self._whole(self._max_chars, self._max_bytes) is not None

    def render(self, budget_chars: int, budget_bytes: int) -> PreviewText:
        """Return what fits both budgets and the preview's own ceilings.

        The bytes of a last character that is not complete yet are not counted as text.
        """
        chars, size = min(budget_chars, self._max_chars), min(budget_bytes, self._max_bytes)
        whole = self._whole(chars, size)
        if whole is not None:
            return PreviewText("complete", whole, "", len(whole.encode()), size, 0)
        head = _prefix(_decoded(self._head), chars // _HEAD_SHARE, size // _HEAD_SHARE)
        head = _to_line_end(head)
        in_head = len(head.encode())
        # No overlap: the whole text exceeds one of the two budgets, and head and tail together do not.
        tail = _to_line_start(_suffix(_decoded(self._tail), chars - len(head), size - in_head))
        returned = in_head + len(tail.encode())
        return PreviewText("clipped", head, tail, returned, size, self.total - self._unfinished() - returned)

    def _unfinished(self) -> int:
        return len(self._tail) - cut(self._tail, len(self._tail))

    def _whole(self, chars: int, size: int) -> str | None:
        if self.total > self._window or self.total - self._unfinished() > size:
            return None
        text = _decoded(self._head)
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
