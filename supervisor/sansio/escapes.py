r"""Terminal escapes and control characters are taken out before anything is searched for (contract C1, C4).

A secret with a colour change in its middle must be whole again when the redactor sees it, so sequences are dropped
*whole*: CSI with its parameters, the strings OSC, DCS, APC, SOS and PM up to their end, two- and three-byte escapes
such as charset selections (ECMA-48 5.4 and 5.6, ECMA-35 13.2). The parser is that of the VT500
(vt100.net/emu/dec_ansi_parser): an ESC starts a new sequence wherever it comes, CAN and SUB cancel one, most other C0
controls inside one are ignored. Two deliberate differences: a line end closes a sequence, lest one stray `ESC ]`
swallow the rest of a log, and where a sequence turns out malformed, the offending character is shown.

Of what remains, C0 except tab and line feed, DEL and C1 are dropped. Line ends, two ways: `\r+\n?` becomes one line
feed, emitted at the first `\r`; or, for who shows states that are written over one another, `\r+\n` becomes a line feed
and any other `\r+` one `\r`, emitted when what follows tells. A run of `\r` of any length needs no memory either way.

An unfinished sequence is carried as the shortest one that leaves the parser in the same state, at most three bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT: Final = b"\t\n"
_CONTROLS: Final = bytes(code for code in [*range(0x20), 0x7F] if code not in _KEPT)
_IN_SEQUENCES: Final = b"\x07\x18\x1a"
"""BEL ends a string, CAN and SUB cancel a sequence: they are dropped after the sequences, not before."""
_IGNORED: Final = bytes(code for code in _CONTROLS if code not in _IN_SEQUENCES + b"\x1b\r")
_STRING: Final = rb"[\]PX^_][^\x07\x18\x1a\x1b\r\n]*"
# ST needs no place here: its ESC ends the string, and `ESC \` is an escape like any other.
_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[0-?]*+[@-~]"  # nearly all of them: by itself it saves a tenth of the time
    rb"|\[[0-?]*+[ -/]*[@-~]?|" + _STRING + rb"\x07?|[ -/]*[0-~]?)"
)
_RESETS: Final = (b"\x1b[0m", b"\x1b[m")
"""Half of the sequences of a coloured log are one of these."""
_CANCEL: Final = b"\x18"
_SAMPLE_BYTES: Final = 4096
"""What is looked at to tell a text that is full of them."""
_MANY: Final = _SAMPLE_BYTES // 40
"""Resets in it from which one `replace` for all costs less than the expression for each (measured)."""
_UNFINISHED: Final = re.compile(
    rb"(?:(\x1b\[)[0-?]*([ -/]?)[ -/]*"  # CSI
    rb"|(?=(\x1b[\]PX^_]))\x1b" + _STRING + rb"|(\x1b[ -/]?)[ -/]*)\Z"
)
"""A sequence that the end cuts; the groups that matched make the shortest one in the same state."""
_C1: Final = re.compile(rb"\xc2[\x80-\x9f]")
_SEVEN_BIT: Final = {bytes((0xC2, final + 0x40)): bytes((0x1B, final)) for final in rb"PX[\]^_"}
"""The C1 controls that open or close sequences, as their seven-bit forms (ECMA-48 5.3)."""
_RETURNS: Final = re.compile(rb"\r+\n?")
_REST_OF_RETURN: Final = re.compile(rb"\r*\n?")
_RETURN_RUN: Final = re.compile(rb"\r{2,}")


class EscapeStripper:
    """One stream's stripper. `feed` takes valid UTF-8, whole characters only, and returns the same.

    `returns`: carriage returns that are no part of a line end are returned too.
    """

    __slots__ = ("_after_return", "_carry", "_ended", "_line_ends", "_return", "removed")

    def __init__(self, *, returns: bool = False) -> None:
        self._carry = b""
        self._return = b""
        r"""A `\r` of which the next byte will tell what it is."""
        self._line_ends: Callable[[bytes], bytes] = self._told_apart if returns else self._joined
        self._after_return = False
        self._ended = False
        self.removed = 0
        r"""Bytes dropped so far; a `\r\n` that became a line feed counts one."""

    @property
    def pending(self) -> int:
        r"""Bytes of the carried form of an unfinished sequence, at most 3, and a `\r` that waits.

        What was shortened of a sequence is in `removed`.
        """
        return len(self._carry) + len(self._return)

    def feed(self, data: bytes, is_clean: Callable[[bytes], bool] | None = None) -> bytes:
        """Return the text in `data` that no sequence, begun here or earlier, takes in.

        `is_clean` is a faster way to tell whether `data` contains nothing that can be dropped or changed.
        """
        assert not self._ended, "fed after the end"
        if not self._carry and not self._after_return and not self._return and (is_clean or nothing_to_strip)(data):
            return data
        fed = self.pending + len(data)
        text = self._line_ends(_without(self._without_sequences(self._carry + data), _IN_SEQUENCES))
        self.removed += fed - len(text) - self.pending
        return text

    def finish(self) -> bytes:
        r"""Drop an unfinished sequence, which is never shown, however the stream ended; return a `\r` that waits."""
        self._ended = True
        self.removed += len(self._carry)
        self._carry = b""
        last, self._return = self._return, b""
        return last

    def _without_sequences(self, text: bytes) -> bytes:
        """Return `text` without sequences and ignored controls; sets the carry."""
        self._carry = b""
        if b"\xc2" in text:
            text = _C1.sub(lambda match: _SEVEN_BIT.get(match[0], b""), text)
        text = _without(text, _IGNORED)
        last = text.rfind(b"\x1b")
        if last < 0:
            return text
        unfinished = _UNFINISHED.match(text, last)
        if unfinished is not None:
            self._carry = b"".join(group for group in unfinished.groups() if group is not None)
            text = text[:last]
        for reset in _RESETS:
            if text.count(reset, 0, _SAMPLE_BYTES) >= _MANY:
                # Not by nothing: a CAN ends a malformed sequence before it, as the ESC does that it stands for.
                text = text.replace(reset, _CANCEL)
        return b"".join(_SEQUENCE.split(text))  # a fifth faster than `sub`

    def _told_apart(self, text: bytes) -> bytes:
        r"""Return `text` with `\r+\n` as a line feed and any other `\r+` as one `\r`; keep one at the end."""
        text = self._return + text
        if b"\r" not in text:
            self._return = b""
            return text
        self._return = b"\r" if text.endswith(b"\r") else b""
        if self._return:
            text = text.rstrip(b"\r")
        if b"\r\r" in text:
            text = _RETURN_RUN.sub(b"\r", text)
        return text.replace(b"\r\n", b"\n")

    def _joined(self, text: bytes) -> bytes:
        r"""Return `text` with every `\r+\n?` as one line feed, also when the run began in an earlier chunk."""
        if self._after_return:
            rest = _REST_OF_RETURN.match(text)
            assert rest is not None, "the pattern matches the empty string"
            self._after_return = rest.end() == len(text) and not text.endswith(b"\n")
            text = text[rest.end() :]
        if b"\r" not in text:
            return text
        self._after_return = text.endswith(b"\r")
        joined = text.replace(b"\r\n", b"\n")
        if b"\r" not in joined:
            return joined
        return _RETURNS.sub(b"\n", text) if b"\r\r" in text else joined.replace(b"\r", b"\n")


def _without(text: bytes, codes: bytes) -> bytes:
    """Return `text` without these bytes. A memchr for each is half the cost of one `translate` (measured)."""
    return text.translate(None, codes) if any(code in text for code in codes) else text


def nothing_to_strip(data: bytes) -> bool:
    """Whether nothing in `data` can be dropped or changed."""
    if any(code in data for code in _CONTROLS):
        return False
    return b"\xc2" not in data or _C1.search(data) is None
