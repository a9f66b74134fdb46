"""The union of spans, and the text that it leaves: one marker for each run of spans that overlap or touch [C6].

A marker is named by the first of its spans: the one that starts first, and among those the one of the lowest order.
What lies before a point is settled, the rest later, so a run may go on past the point. Then its marker was written
already, and a *cover* says up to where it stands for the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

NOWHERE: Final = -1


class Span(NamedTuple):
    """Part of a text that is not shown; sorted by start, then by order."""

    start: int
    order: int
    stop: int
    name: str
    following: tuple[bytes, ...] = ()
    """What goes on with the same secret where this is a piece of it; one entry for each place."""

    def moved(self, distance: int) -> Span:
        """Return the span of the same text in a buffer that begins `distance` later."""
        return self._replace(start=self.start - distance, stop=self.stop - distance)


class Union:
    """The settled part's markers, and the cover that reaches into the rest; offsets are in the caller's buffer."""

    __slots__ = ("cover", "following", "redactions")

    def __init__(self) -> None:
        self.cover = NOWHERE
        """Where the text ends that the last marker stands for, if it touches what is not settled; else `NOWHERE`."""
        self.following: tuple[bytes, ...] = ()
        """What goes on with the secrets that end at the cover."""
        self.redactions: Final[dict[str, int]] = {}
        """Markers by name."""

    def settle(self, buffer: bytes, base: int, spans: Iterable[Span], hold: int) -> bytes:
        """Return the text from `base` up to `hold`. `spans` are sorted and start at `base` or later."""
        cover, following = self.cover, self.following
        text: list[bytes] = []
        for span in spans:
            if span.start >= hold:
                break
            if span.start > cover:
                text += buffer[max(cover, base) : span.start], b"[REDACTED:%s]" % span.name.encode()
                self.redactions[span.name] = self.redactions.get(span.name, 0) + 1
            if span.stop >= cover:
                following = span.following if span.stop > cover else following + span.following
                cover = span.stop
        text.append(buffer[max(cover, base) : hold])
        self.cover, self.following = (cover, following) if cover >= hold else (NOWHERE, ())
        return b"".join(text)

    def absorb(self, spans: Iterable[Span]) -> list[Span]:
        """Extend the cover by the spans that it touches, sorted as for `settle`; return the others."""
        others: list[Span] = []
        for span in spans:
            if self.cover < span.start or self.cover == NOWHERE:
                others.append(span)
            elif span.stop > self.cover:
                self.cover, self.following = span.stop, span.following
        return others

    def move(self, distance: int) -> None:
        """The buffer begins `distance` later from now on."""
        if self.cover != NOWHERE:
            self.cover -= distance
