"""The seam behind which a text is searched; an engine is built from needles and rules.

An engine only *finds*: where needles occur, and where leads of rules stand. What that means (judges, union, markers,
hold-back) is the redactor's, so that every engine gives the same text and the one on the standard library can be the
oracle for a faster one.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

Occurrence = tuple[int, int, int]
"""Start, end (exclusive) and the needle's index in the sequence that the engine was built from."""
Lead = tuple[int, int, int]
"""Where a rule's `trigger` matches: start, end (exclusive) and the rule's index."""


class Findings(NamedTuple):
    """All that a buffer contains, in no order; nothing twice."""

    occurrences: list[Occurrence]
    leads: list[Lead]


class Engine(Protocol):
    """Searches a buffer; keeps nothing between calls that a caller could notice."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    def is_clean(self, text: bytes) -> bool:
        """Whether `text` contains no control character or escape: what `escapes.nothing_to_strip` says of it."""
        ...

    def scan(self, buffer: bytes, start: int) -> Findings:
        """Return the needles that begin at `start` or later, overlapping ones included, and the leads anywhere."""
        ...
