"""The engine on hyperscan, which searches for everything at once at the speed of memory.

It is used in *block* mode with the redactor's own carry. Hyperscan has no look-behind and reports each end of a match
with the leftmost start that leads there, so what it finds of rules are candidates: between that start and that end the
rule's own `trigger` decides, at every place, as it does in the engine on the standard library. Needles are literals,
of which the end tells the start.

A database carries the scratch space of a scan, and a scan lets other threads run, so an engine belongs to one thread.
Where hyperscan has no wheel this module cannot be imported; `supervisor.matching` falls back then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import hyperscan

from . import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rules import Rule
    from . import Lead, Occurrence

NAME: Final = "hyperscan"
HyperscanError = hyperscan.error
"""What hyperscan raises, for an expression that is too large above all."""
_CONTROLS: Final = rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]"
"""C0 except tab and line feed, DEL, and C1 in UTF-8."""


class HyperscanEngine:
    """Searches for `needles`, none of them empty, and for rules, on one thread. Raises: HyperscanError."""

    def __init__(self, needles: Sequence[bytes], rules: Sequence[Rule] = ()) -> None:
        self._lengths: Final = [len(needle) for needle in needles]
        self._rules: Final = tuple(rules)
        expressions = [*map(re.escape, needles), *(rule.filter for rule in rules)]
        starts = [0] * len(needles) + [hyperscan.HS_FLAG_SOM_LEFTMOST] * len(rules)
        self._database: Final = _compiled(expressions, starts) if expressions else None
        self._controls: Final = _compiled([_CONTROLS], [hyperscan.HS_FLAG_SINGLEMATCH])
        self._hits: Final[list[tuple[int, int, int]]] = []
        append = self._hits.append

        def found(expression: int, start: int, end: int, _flags: int, _context: object) -> None:
            append((expression, start, end))

        self._found: Final = found

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return NAME

    def is_clean(self, text: bytes) -> bool:
        """Whether `text` contains no control character or escape: what `escapes.nothing_to_strip` says of it."""
        self._hits.clear()
        self._controls.scan(text, match_event_handler=self._found)
        return not self._hits

    def scan(self, buffer: bytes, start: int) -> Findings:
        """Return the needles that begin at `start` or later, overlapping ones included, and the leads anywhere."""
        self._hits.clear()
        if self._database is not None:
            self._database.scan(buffer, match_event_handler=self._found)
        occurrences: list[Occurrence] = []
        if not self._hits:
            return Findings(occurrences, [])
        leads: set[Lead] = set()
        needles = len(self._lengths)
        searched = [0] * len(self._rules)
        for expression, leftmost, end in self._hits:
            if expression < needles:
                position = end - self._lengths[expression]
                if position >= start:
                    occurrences.append((position, end, expression))
                continue
            index = expression - needles
            rule = self._rules[index]
            candidate = rule.bare.search(buffer, max(leftmost, searched[index]), end)
            while candidate is not None:
                match = rule.trigger.match(buffer, candidate.start())
                if match is not None:
                    leads.add((*match.span(), index))
                candidate = rule.bare.search(buffer, candidate.start() + 1, end)
            # A lead that begins later may end after this match.
            searched[index] = max(searched[index], end - rule.longest_lead)
        return Findings(occurrences, list(leads))


def _compiled(expressions: list[bytes], flags: list[int]) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    count = len(expressions)
    database.compile(expressions=expressions, ids=list(range(count)), elements=count, flags=flags)
    return database
