"""Where UTF-8 may be cut. The text is valid UTF-8 as a whole; a piece of it may begin and end in mid-character.

A character is a lead byte and up to three continuation bytes, `10xxxxxx` (RFC 3629, section 3), so looking at four
bytes is always enough and no call here depends on how long the text is.
"""

from __future__ import annotations

from typing import Final

_CONTINUATIONS: Final = 3
"""The most that follow a lead byte."""
_LEADS: Final = (0xC0, 0xE0, 0xF0)
"""From these on a lead byte begins a character of two, three and four bytes."""


def continues(byte: int) -> bool:
    """Return whether this byte goes on with a character that an earlier one began."""
    return byte >> 6 == 0b10  # noqa: PLR2004 - the two bits that RFC 3629 gives


def cut(text: bytes | bytearray, at_most: int) -> int:
    """Return the largest length up to `at_most` (and up to the text's) that ends with a whole character.

    A text that begins in mid-character counts as beginning at a border: only 0 is left where nothing else fits.
    """
    end = min(at_most, len(text))
    for back in range(min(_CONTINUATIONS, end) + 1):
        at = end - back
        if at == len(text):
            if _ends_whole(text):
                return at
        elif not continues(text[at]):
            return at
    return 0


def first_border(text: bytes | bytearray, start: int = 0) -> int:
    """Return where the first character at or after `start` begins, or the text's length if none does."""
    while start < len(text) and continues(text[start]):
        start += 1
    return start


def _ends_whole(text: bytes | bytearray) -> bool:
    """Return whether the last character is complete; True where its lead byte lies before this piece."""
    for back in range(1, min(_CONTINUATIONS, len(text)) + 1):
        lead = text[-back]
        if not continues(lead):
            return back >= _length(lead)
    return True


def _length(lead: int) -> int:
    """Return how many bytes the character has that this byte begins."""
    return 1 + sum(lead >= bound for bound in _LEADS)
