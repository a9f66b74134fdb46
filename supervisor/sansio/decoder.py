"""Bytes as a child wrote them become valid UTF-8, whatever the cuts (contract B8, C1).

An incomplete character at the end of a chunk, at most three bytes, is carried; everything else is decided at once.
Invalid bytes become U+FFFD, one for each maximal subpart (Unicode 15, section 3.9, "U+FFFD Substitution of Maximal
Subparts"), which is what CPython's decoder does and what makes the result independent of the cuts.

`binary` labels the stream and never alters its text. NUL bytes and invalid bytes are what text in UTF-8 does not
contain; git and perl's `-B` judge by the first block of a file, we by all of it, because a stream may start with a
banner. The share of one tenth is ours: a NUL-separated list (`find -print0`) and Latin-1 prose stay below it,
compressed data, object files and UTF-16 lie far above.
"""

from __future__ import annotations

import codecs
from typing import Final

REPLACEMENT: Final = "\ufffd".encode()
BINARY_SHARE: Final = 10
"""A stream is binary when more than one byte in this many is NUL or invalid."""


class Decoder:
    """One stream's incremental decoder. `feed` takes any bytes and returns whole characters only."""

    __slots__ = ("_carry", "_ended", "nul", "observed", "replaced")

    encoding: Final = "utf-8"

    def __init__(self) -> None:
        self._carry = b""
        self._ended = False
        self.observed = 0
        """Raw bytes fed."""
        self.replaced = 0
        """Raw bytes that U+FFFD stands for; a U+FFFD that the child wrote itself is not counted."""
        self.nul = 0
        """Raw NUL bytes fed. They are characters, so they are returned; the stripper drops them."""

    @property
    def pending(self) -> int:
        """Raw bytes of an incomplete character, at most 3."""
        return len(self._carry)

    @property
    def binary(self) -> bool:
        """Whether what was fed so far looks binary; settled once the stream has ended."""
        return (self.nul + self.replaced) * BINARY_SHARE > self.observed

    def feed(self, data: bytes) -> bytes:
        """Return the characters that `data` completes, U+FFFD for what cannot be one."""
        assert not self._ended, "fed after the end"
        self.observed += len(data)
        if 0 in data:
            self.nul += data.count(0)
        if not self._carry and data.isascii():
            return data
        return self._decode(self._carry + data, final=False)

    def finish(self) -> bytes:
        """Return what the carried bytes become at the end of the stream: U+FFFD or nothing."""
        self._ended = True
        return self._decode(self._carry, final=True)

    def abort(self) -> int:
        """Drop the carried bytes and return how many they were."""
        self._ended = True
        dropped = len(self._carry)
        self._carry = b""
        return dropped

    def _decode(self, data: bytes, *, final: bool) -> bytes:
        try:
            _, consumed = codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError:
            text, consumed = codecs.utf_8_decode(data, "replace", final)
        else:
            self._carry = data[consumed:]
            return data[:consumed]
        self._carry = data[consumed:]
        decoded = text.encode()
        # EF cannot be a continuation byte, so each EF BF BD in the input is a character of its own, even in rubbish.
        inserted = decoded.count(REPLACEMENT) - data.count(REPLACEMENT, 0, consumed)
        self.replaced += consumed - (len(decoded) - inserted * len(REPLACEMENT))
        return decoded
