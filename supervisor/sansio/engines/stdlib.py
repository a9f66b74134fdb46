"""The engine that is always there: `bytes.find`, after a filter that looks at one word in every stride.

An occurrence of a needle of `stride + 3` bytes or more covers a four-byte word that starts at a multiple of `stride`.
So it is enough to look at those words only and to see whether one of them is a word of a needle, at any of the
`stride` phases: one set intersection in C for all needles together. What it names is searched for with `find`.
Needles too short for the stride are searched for directly. A rule's leads are looked for where one of its literal heads
stands, in the text in lower case.

On clean text a word costs about 32 ns whatever the number of needles (2 ns a byte at stride 16), a `find` about
4 ns a byte divided by the needle's length; one alternation in `re` about 50. The stride is chosen by
these figures. A hex dump contains many four-byte words of hex, so where many needles are named, a second look at words
of eight bytes clears those that have them. Output full of one needle's words costs a `find` for that needle.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from ..escapes import nothing_to_strip
from . import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..needles import NeedleSet
    from ..rules import Rule, RuleSet
    from . import Lead, Occurrence

NAME: Final = "stdlib"
_COARSE: Final = struct.Struct("=I")
_FINE: Final = struct.Struct("=Q")
_FEW: Final = 8
"""Needles that are searched for without a second look; an estimate of where it pays, not a measured optimum."""
_WORD_COST: Final = 32.0
"""Nanoseconds to fetch a word and look it up."""
_FIND_COST: Final = 4.0
"""Nanoseconds a byte for `find`, to be divided by the needle's length."""
_STRIDES: Final = (4, 8, 16, 32)
"""Candidates, in bytes: multiples of the coarse word."""


class WordFilter:
    """Names the needles that may occur, by the words of one size at each multiple of the stride.

    `covered` are the indices of the needles that are long enough for it; of the others it says nothing.
    """

    def __init__(self, needles: Sequence[bytes], word: struct.Struct, stride: int) -> None:
        self._size: Final = word.size
        self._step: Final = stride // word.size
        self._format: Final = "I" if word is _COARSE else "Q"
        long_enough = [index for index, needle in enumerate(needles) if len(needle) >= stride + word.size - 1]
        owners: defaultdict[int, list[int]] = defaultdict(list)
        for index in long_enough:
            for phase in range(stride):
                owners[word.unpack_from(needles[index], phase)[0]].append(index)
        self.covered: Final = frozenset(long_enough)
        self._owners: Final = dict(owners)
        self._words: Final = frozenset(owners)

    def named(self, buffer: bytes) -> set[int]:
        """Return the covered needles of which a word was seen: all that occur, and perhaps others."""
        words = memoryview(buffer)[: len(buffer) - len(buffer) % self._size].cast(self._format)
        hits = self._words.intersection(words[:: self._step])
        return {index for word in hits for index in self._owners[word]}


class StdlibEngine:
    """Searches for `needles`, none of them empty, and for rules. Immutable once built, so threads may share it."""

    def __init__(self, needles: Sequence[bytes], rules: Sequence[Rule] = ()) -> None:
        self._needles: Final = tuple(needles)
        stride = cheapest_stride([len(needle) for needle in self._needles])
        self._coarse: Final = WordFilter(self._needles, _COARSE, stride) if stride else None
        self._fine: Final = WordFilter(self._needles, _FINE, max(stride, _FINE.size)) if stride else None
        covered = self._coarse.covered if self._coarse else frozenset[int]()
        self._direct: Final = tuple(index for index in range(len(self._needles)) if index not in covered)
        owners: defaultdict[bytes, list[tuple[int, Rule]]] = defaultdict(list)
        for index, rule in enumerate(rules):
            for head in rule.heads:
                owners[head].append((index, rule))
        self._heads: Final = tuple(owners.items())

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return NAME

    def is_clean(self, text: bytes) -> bool:
        """Whether `text` contains no control character or escape."""
        return nothing_to_strip(text)

    def scan(self, buffer: bytes, start: int) -> Findings:
        """Return the needles that begin at `start` or later, overlapping ones included, and the leads anywhere."""
        occurrences: list[Occurrence] = []
        for index in (*self._direct, *self._named(buffer)):
            needle = self._needles[index]
            length = len(needle)
            position = buffer.find(needle, start)
            while position >= 0:
                occurrences.append((position, position + length, index))
                position = buffer.find(needle, position + 1)
        return Findings(occurrences, self._leads(buffer))

    def _leads(self, buffer: bytes) -> list[Lead]:
        """Return where triggers match, head by head: of one rule no head is the beginning of another."""
        leads: list[Lead] = []
        lower = buffer.lower() if self._heads else b""
        for head, rules in self._heads:
            position = lower.find(head)
            while position >= 0:
                for index, rule in rules:
                    match = rule.trigger.match(buffer, position)
                    if match is not None:
                        leads.append((position, match.end(), index))
                position = lower.find(head, position + 1)
        return leads

    def _named(self, buffer: bytes) -> set[int]:
        """Return the covered needles that may occur in `buffer`."""
        if self._coarse is None or self._fine is None:
            return set()
        named = self._coarse.named(buffer)
        if len(named) > _FEW:
            named -= self._fine.covered - self._fine.named(buffer)
        return named


_built: Final[WeakKeyDictionary[NeedleSet, dict[RuleSet, StdlibEngine]]] = WeakKeyDictionary()


def engine_for(needles: NeedleSet, rules: RuleSet | None = None) -> StdlibEngine:
    """Return the engine of `needles` and `rules`, or theirs, built at the first call and kept as long as they are."""
    rules = rules or needles.rules
    built = _built.setdefault(needles, {})
    engine = built.get(rules)
    if engine is None:
        engine = built[rules] = StdlibEngine(needles.values, rules.rules)
    return engine


def cheapest_stride(lengths: Sequence[int]) -> int:
    """Return the stride with the least estimated cost a byte, or 0 where searching directly is cheaper."""

    def cost(stride: int) -> float:
        shortest = stride + _COARSE.size - 1 if stride else max(lengths, default=0) + 1
        searched = sum(_FIND_COST / length for length in lengths if length < shortest)
        return searched + (_WORD_COST / stride if stride else 0.0)

    return min((0, *_STRIDES), key=cost)
