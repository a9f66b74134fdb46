"""Known values become markers, in text that arrives in pieces (contract C1-C7).

The meaning is that of the whole text: the union of all occurrences of all needles at all positions, overlapping ones
included; occurrences that overlap or touch make one marker, named after the first by (start, needle order). A
leftmost-first search would show the tail of an overlap.

To give that meaning in pieces, the redactor decides the text up to a point before which no occurrence can begin that is
not complete already, and holds the rest. *Exact*: the hold begins where the longest end of the text that is a proper
prefix of a needle begins. *Flat*, when more is waiting anyway: it begins 63 bytes before the end, which costs
nothing to find. Neither changes what is committed in the end, only when. An occurrence that begins before the point
and ends after it leaves a *cover* behind: the part of the held text that its marker already stands for.

What another kind of detector has to give is a list of spans and a point before which it will add none; the
least of the points is the hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .characters import first_border

if TYPE_CHECKING:
    from .engines import Engine
    from .needles import NeedleSet

UNDECIDED: Final = b"[REDACTED:undecided]"
SHORTEST_PREFIX: Final = 8
"""Bytes from which the beginning of a known value is masked at the end of the text [C7]."""
SCAN_BYTES: Final = 256 * 1024
"""What is searched at once, so that the list of occurrences is bounded whatever a caller feeds [C4]."""

Span = tuple[int, int, str, tuple[bytes, ...]]
"""Start and end (exclusive) in the buffer, the marker's name, and what may follow as a part of the same secret."""


class Redactor:
    """One stream's redactor. `feed` takes valid UTF-8, whole characters, and returns the text decided by it."""

    __slots__ = ("_buffer", "_cover", "_ended", "_engine", "_following", "_needles", "omitted", "redactions")

    def __init__(self, needles: NeedleSet, engine: Engine) -> None:
        self._needles = needles
        self._engine = engine
        self._buffer = b""
        self._cover = -1
        """Where in the buffer the last marker's text ends: 0 if it touches the buffer, -1 if it does not."""
        self._following: tuple[bytes, ...] = ()
        """What goes on with the secrets that end at the cover."""
        self._ended = False
        self.omitted = 0
        """Bytes that an abort left undecided."""
        self.redactions: Final[dict[str, int]] = {}
        """Markers by name, without the undecided."""

    @property
    def held(self) -> int:
        """Bytes fed and not decided, at most 63; 0 after the end."""
        return len(self._buffer)

    def use(self, needles: NeedleSet, engine: Engine) -> None:
        """Search for these needles from now on, in the held text too. What was returned stays [C2, C5]."""
        self._needles = needles
        self._engine = engine

    def feed(self, data: bytes, *, bulk: bool = False) -> bytes:
        """Return the text that is decided now. With `bulk` up to 63 bytes are held flat; `b""` gives the exact hold."""
        assert not self._ended, "fed after the end"
        if len(data) <= SCAN_BYTES:
            return self._advance(data, bulk=bulk)
        starts = range(0, len(data), SCAN_BYTES)
        return b"".join(
            self._advance(data[start : start + SCAN_BYTES], bulk=bulk or start != starts[-1]) for start in starts
        )

    def finish(self) -> bytes:
        """Return the rest by the whole-text rule, with a known value's beginning at the very end masked [C7]."""
        buffer = self._buffer
        end = len(buffer)
        spans = self._occurrences(buffer)
        partial = self._needles.partial(buffer)
        if partial >= SHORTEST_PREFIX:
            beginning = self._needles.first_beginning(buffer[end - partial :])
            spans.append((end - partial, end, beginning.name, ()))
            spans.sort(key=lambda span: span[0])
        self._ended = True
        cover = max([self._cover, *(stop for _, stop, _, _ in spans)])
        decided = self._settle(buffer, spans, cover if cover >= 0 else end)
        rest = self._buffer
        self._buffer = b""
        # 64 bytes of a long value and a few more: the few are the beginning of its next piece, and in the marker.
        return decided if any(text.startswith(rest) for text in self._following) else decided + rest

    def abort(self) -> bytes:
        """Return what is decided of the rest, and a marker for what is not, if the last marker does not touch it."""
        decided = self.feed(b"")
        self._ended = True
        self.omitted += len(self._buffer) - max(self._cover, 0)
        marker = UNDECIDED if self._buffer and self._cover < 0 else b""
        self._buffer = b""
        return decided + marker

    def _advance(self, data: bytes, *, bulk: bool) -> bytes:
        buffer = self._buffer + data
        if not buffer:
            return b""
        if bulk:
            # An occurrence that the buffer cuts begins later than this, and at a character.
            hold = first_border(buffer, max(0, len(buffer) - max(0, self._needles.longest - 1)))
        else:
            hold = len(buffer) - self._needles.partial(buffer)
        return self._settle(buffer, self._occurrences(buffer), hold)

    def _occurrences(self, buffer: bytes) -> list[Span]:
        """Return all occurrences by start, those of one start in the needles' order."""
        found = sorted((start, index, end) for start, end, index in self._engine.scan(buffer, 0))
        needles = self._needles.needles
        return [(start, end, needles[index].name, needles[index].following) for start, index, end in found]

    def _settle(self, buffer: bytes, spans: list[Span], hold: int) -> bytes:
        """Return the text before `hold` with its markers, and keep the rest. `spans` are ordered by start."""
        cover, following = self._cover, self._following
        text: list[bytes] = []
        for start, end, name, after in spans:
            if start >= hold:
                break
            if start > cover:
                text += buffer[max(cover, 0) : start], b"[REDACTED:%s]" % name.encode()
                self.redactions[name] = self.redactions.get(name, 0) + 1
            if end >= cover:
                following = after if end > cover else following + after
                cover = end
        text.append(buffer[max(cover, 0) : hold])
        touching = cover >= hold
        self._cover, self._following = (cover - hold, following) if touching else (-1, ())
        self._buffer = buffer[hold:]
        return b"".join(text)
