"""The seam behind which known values are searched for; an engine is built from them and may be shared by streams.

An engine only *finds*. What an occurrence means (union, markers, hold-back) is the redactor's, so that every engine
gives the same text and the one on the standard library can be the oracle for a faster one.
"""

from __future__ import annotations

from typing import Protocol

Occurrence = tuple[int, int, int]
"""Start, end (exclusive) and the needle's index in the sequence that the engine was built from."""


class Engine(Protocol):
    """Finds needles in a buffer; keeps nothing between calls that a caller could notice."""

    def scan(self, buffer: bytes, start: int) -> list[Occurrence]:
        """Return all occurrences that lie in `buffer` and begin at `start` or later, overlapping ones included.

        The order is not specified.
        """
        ...
