"""Bytes as a child wrote them become valid UTF-8, whatever the cuts (contract B8, C1).

An incomplete character at the end of a chunk, at most three bytes, is carried; everything else is decided at once.
Invalid bytes become U+FFFD, one for each maximal subpart (Unicode 15, section 3.9, "U+FFFD Substitution of Maximal
Subparts"), which is what CPython's decoder does and what makes the result independent of the cuts.

A stream that begins with the byte order mark of UTF-16 is decoded as that (RFC 2781, section 3.2): the mark is two
bytes that no UTF-8 contains, so that waiting for the second one delays no text. UTF-16 without a mark is taken for
UTF-8: nothing short of a window, which would delay a prompt, tells the two apart. Its ASCII range is whole all the same
once the stripper has dropped the NULs.

`binary` labels the stream and never alters its text. NUL characters and invalid bytes are what text does not
contain; git and perl's `-B` judge by the first block of a file, we by all of it, because a stream may start with a
banner. The share of one tenth is ours: a NUL-separated list (`find -print0`) and Latin-1 prose stay below it,
compressed data, object files and UTF-16 without a mark lie far above.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be"]

REPLACEMENT: Final = "\ufffd".encode()
BINARY_SHARE: Final = 10
"""A stream is binary when more than one byte in this many is NUL or invalid."""


class _Decode(Protocol):
    def __call__(self, data: bytes, errors: str, final: bool, /) -> tuple[str, int]: ...  # noqa: FBT001 - as in codecs


_MARKS: Final[Mapping[bytes, tuple[Encoding, _Decode]]] = {
    codecs.BOM_UTF16_LE: ("utf-16-le", codecs.utf_16_le_decode),
    codecs.BOM_UTF16_BE: ("utf-16-be", codecs.utf_16_be_decode),
}
_MARK_BYTES: Final = 2
_MARKS_BEGIN: Final = frozenset({b"", *(mark[:1] for mark in _MARKS)})
"""What may still become a mark."""


class Decoder:
    """One stream's incremental decoder. `feed` takes any bytes and returns whole characters only.

    Args:
        marks: Whether a byte order mark at the start is heeded. Only a stream has a start that says what follows: a
            single value or argument is UTF-8.
    """

    __slots__ = ("_carry", "_decode16", "_ended", "_step", "encoding", "nul", "observed", "replaced")

    def __init__(self, *, marks: bool = False) -> None:
        self._carry = b""
        self._ended = False
        self._step: Callable[[bytes, bool], bytes] = self._begin if marks else self._utf8
        self._decode16: _Decode = codecs.utf_16_le_decode
        self.encoding: Encoding = "utf-8"
        """Of the raw bytes; what `feed` returns is UTF-8 in any case."""
        self.observed = 0
        """Raw bytes fed."""
        self.replaced = 0
        """Raw bytes that U+FFFD stands for; a U+FFFD that the child wrote itself is not counted."""
        self.nul = 0
        """Raw bytes of NUL characters, which are returned; the stripper drops them."""

    @property
    def pending(self) -> int:
        """Raw bytes of an incomplete character or mark, at most 3."""
        return len(self._carry)

    @property
    def binary(self) -> bool:
        """Whether what was fed so far looks binary; settled once the stream has ended."""
        return (self.nul + self.replaced) * BINARY_SHARE > self.observed

    def feed(self, data: bytes) -> bytes:
        """Return the characters that `data` completes, U+FFFD for what cannot be one."""
        assert not self._ended, "fed after the end"
        self.observed += len(data)
        return self._step(self._carry + data, False)  # noqa: FBT003 - `final` of the codecs

    def finish(self) -> bytes:
        """Return what the carried bytes become at the end of the stream: U+FFFD or nothing."""
        self._ended = True
        return self._step(self._carry, True)  # noqa: FBT003 - as above

    def abort(self) -> int:
        """Drop the carried bytes and return how many they were."""
        self._ended = True
        dropped = len(self._carry)
        self._carry = b""
        return dropped

    def _begin(self, data: bytes, final: bool) -> bytes:  # noqa: FBT001 - as above
        """Look for a mark at the stream's start; then the step is the encoding's."""
        if data in _MARKS_BEGIN and not final:
            self._carry = data
            return b""
        found = _MARKS.get(data[:_MARK_BYTES])
        if found is None:
            self._step = self._utf8
            return self._utf8(data, final)
        self.encoding, self._decode16 = found
        self._step = self._utf16
        return self._utf16(data[_MARK_BYTES:], final)

    def _utf8(self, data: bytes, final: bool) -> bytes:  # noqa: FBT001 - as above
        if 0 in data:
            self.nul += data.count(0)
        if data.isascii():
            self._carry = b""
            return data
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

    def _utf16(self, data: bytes, final: bool) -> bytes:  # noqa: FBT001 - as above
        try:
            text, consumed = self._decode16(data, "strict", final)
        except UnicodeDecodeError:
            text, consumed = self._decode16(data, "replace", final)
            valid, _ = self._decode16(data, "ignore", final)
            self.replaced += consumed - len(valid.encode(self.encoding))
        self._carry = data[consumed:]
        self.nul += 2 * text.count("\0")
        return text.encode()
