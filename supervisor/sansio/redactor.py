"""Known values and secrets by form become markers, in text that arrives in pieces (contract C1-C7).

The meaning is that of the whole text: the union of all occurrences of all needles at all positions and of what every
rule says at every place where its lead stands. A leftmost-first search would show the tail of an overlap.

To give that meaning in pieces, the redactor decides the text up to a point, the *hold*, and keeps the rest. The hold is
the least of: where a needle may have begun, where a lead may have begun that is held with its value, where a value
begins whose rule is undecided, and where the rest of a value that has begun cannot be told yet. *Exact*, it is
computed from what the text ends with. *Flat*, when more is waiting anyway, the first two are not looked for: 63 bytes
before the end neither can have begun. Neither changes what is committed in the end, only when.

Before the hold lies the *context*, already committed, in which leads are found again whose values were still
to come: `Password: ` is shown at once, and what is typed after it is not. It is a part of one line.

Of a value that goes on nothing is kept but its `rest`, which says how much of later text belongs to it [C4].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .characters import first_border
from .rules.model import Text, Undecided
from .spans import NOWHERE, Span, Union

if TYPE_CHECKING:
    from .engines import Engine, Lead, Occurrence
    from .needles import NeedleSet
    from .rules import RuleSet
    from .rules.model import Rest

UNDECIDED: Final = b"[REDACTED:undecided]"
SHORTEST_PREFIX: Final = 8
"""Bytes from which the beginning of a known value is masked at the end of the text [C7]."""
SCAN_BYTES: Final = 256 * 1024
"""What is searched at once, so that the list of findings is bounded whatever a caller feeds [C4]."""


class Redactor:
    """One stream's redactor. `feed` takes valid UTF-8, whole characters, and returns the text decided by it."""

    __slots__ = (
        "_buffer",
        "_context",
        "_ended",
        "_engine",
        "_known",
        "_needles",
        "_rests",
        "_rules",
        "_union",
        "omitted",
    )

    def __init__(self, needles: NeedleSet, rules: RuleSet, engine: Engine) -> None:
        self._needles = needles
        self._rules: Final = rules
        self._engine = engine
        self._context = b""
        """The end of the committed text, as it was before redaction."""
        self._buffer = b""
        """What is held. The offsets below are relative to its beginning."""
        self._union: Final = Union()
        self._known: list[Span] = []
        """Spans in the held text that were decided already."""
        self._rests: list[tuple[int, Rest]] = []
        """Values that go on, and from where."""
        self._ended = False
        self.omitted = 0
        """Bytes that an abort left undecided."""

    @property
    def held(self) -> int:
        """Bytes fed and not decided; 0 after the end."""
        return len(self._buffer)

    @property
    def redactions(self) -> dict[str, int]:
        """Markers by name, without the undecided."""
        return self._union.redactions

    def use(self, needles: NeedleSet, engine: Engine) -> None:
        """Search for these needles from now on, in the held text too. What was returned stays [C2, C5].

        The engine is one of these needles and of the same rules.
        """
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
        self._ended = True
        decided = self._advance(b"", bulk=False, final=True)
        rest, following = self._buffer, self._union.following
        self._buffer = b""
        # 64 bytes of a long value and a few more: the few are the beginning of its next piece, and in the marker.
        return decided if any(text.startswith(rest) for text in following) else decided + rest

    def abort(self) -> bytes:
        """Return what is decided of the rest, and a marker for what is not, if the last marker does not touch it."""
        decided = self.feed(b"")
        self._ended = True
        cover = self._union.cover
        self.omitted += len(self._buffer) - max(cover, 0)
        marker = UNDECIDED if self._buffer and cover == NOWHERE else b""
        self._buffer = b""
        return decided + marker

    def _advance(self, data: bytes, *, bulk: bool, final: bool = False) -> bytes:
        base = len(self._context)
        buffer = b"".join((self._context, self._buffer, data))
        if len(buffer) == base:
            return b""
        found = self._engine.scan(buffer, base)
        spans = [span.moved(-base) for span in self._known]
        spans += self._occurrences(found.occurrences)
        text = Text(buffer, final=final)
        hold = len(buffer) if final else self._flat(buffer, base) if bulk else self._exact(buffer, base)
        rests = self._extended(text, base, spans)
        hold = min([hold, *(at for at, _ in rests)])
        hold = self._judged(text, base, found.leads, spans, rests, hold)
        if final:
            hold = self._whole(buffer, base, spans)
        spans.sort()
        self._union.move(-base)
        decided = self._union.settle(buffer, base, spans, hold)
        self._keep(buffer, hold, spans, rests)
        return decided

    def _occurrences(self, found: list[Occurrence]) -> list[Span]:
        needles = self._needles.needles
        return [Span(start, index, end, needles[index].name, needles[index].following) for start, end, index in found]

    def _extended(self, text: Text, base: int, spans: list[Span]) -> list[tuple[int, Rest]]:
        """Add how far the values go on that had begun; return where which of them go on still."""
        rests: list[tuple[int, Rest]] = []
        for start, rest in self._rests:
            stop, further = rest.extend(text, base + start)
            # It touches the value's own span, which starts before it and gives the name.
            spans.append(Span(base + start, len(self._needles.needles), stop, ""))
            if further is not None:
                rests.append((stop, further))
        return rests

    def _judged(
        self, text: Text, base: int, leads: list[Lead], spans: list[Span], rests: list[tuple[int, Rest]], hold: int
    ) -> int:
        """Add what the rules say of leads not decided before; return the hold, lower where one is undecided."""
        decided: list[tuple[int, Span, Rest | None]] = []
        first_order = len(self._needles.needles)
        for start, value, index in leads:
            rule = self._rules.rules[index]
            owned = rule.owned_from(start, value)
            if owned < base:
                continue
            verdict = rule.verdict(text, start, value)
            if verdict is Undecided.UNDECIDED:
                hold = min(hold, owned)
            elif verdict is not None:
                span = Span(verdict.start, first_order + index, verdict.stop, rule.name)
                decided.append((owned, span, verdict.rest))
                if verdict.rest is not None:
                    hold = min(hold, verdict.stop)
        for owned, span, rest in decided:
            if owned < hold:  # otherwise its lead is found again
                spans.append(span)
                if rest is not None and (span.stop, rest) not in rests:
                    rests.append((span.stop, rest))
        return hold

    def _exact(self, buffer: bytes, base: int) -> int:
        """Return where a needle, or a lead that is held, may have begun; the buffer's end if none has."""
        needle = len(buffer) - self._needles.partial(buffer[max(base, len(buffer) - self._needles.longest) :])
        return min(needle, self._rules.partial(buffer, base))

    def _flat(self, buffer: bytes, base: int) -> int:
        """Return a place after which both begin, without a look at what is there."""
        longest = max(self._needles.longest, self._rules.longest_held, 1)
        return first_border(buffer, max(base, len(buffer) - longest + 1))

    def _whole(self, buffer: bytes, base: int, spans: list[Span]) -> int:
        """Mask a known value's beginning at the end [C7]; return where the last marker's text ends, or the buffer."""
        end = len(buffer)
        tail = buffer[max(base, end - self._needles.longest) :]
        partial = self._needles.partial(tail)
        if partial >= SHORTEST_PREFIX:
            beginning = self._needles.first_beginning(buffer[end - partial :])
            spans.append(Span(end - partial, len(self._needles.needles), end, beginning.name))
        covers = [span.stop for span in spans]
        if self._union.cover != NOWHERE:
            covers.append(base + self._union.cover)
        return max(covers, default=end)

    def _keep(self, buffer: bytes, hold: int, spans: list[Span], rests: list[tuple[int, Rest]]) -> None:
        first_order = len(self._needles.needles)
        known = [span for span in spans if span.start >= hold and span.order >= first_order]
        self._known = [span.moved(hold) for span in self._union.absorb(known)]
        self._rests = [(at - hold, rest) for at, rest in rests]
        self._union.move(hold)
        self._buffer = buffer[hold:]
        context = self._rules.longest_lead + 1 if self._rules.rules else 0
        # A lead lies in one line; its line feed is kept, so that a border is judged the same.
        first = max(0, hold - context)
        self._context = buffer[max(first, buffer.rfind(b"\n", first, hold)) : hold]
