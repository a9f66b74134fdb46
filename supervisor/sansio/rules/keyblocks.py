r"""Private-key blocks: the BEGIN and END lines stay, everything between them goes (RFC 7468, RFC 1421, RFC 9580).

The line feeds may be written as `\n` and the lines be prefixed, quoted and numbered, so that a block in a diff, in JSON
or in source is found too. A BEGIN line alone is a mention: it takes 16 characters of base64 after it, between which and
the line only separators and RFC 1421 headers may stand, a blank line after the headers included.

The body lasts until an END, another BEGIN, or a line that does not look like a line of a key, since blocks are
truncated and logs go on. Such a line is judged by its first 128 bytes. On one physical line (JSON) there is no next
line to judge, so past `CAP_BYTES` the body lasts only as long as its bytes are those of base64 and of line ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .model import UNDECIDED, RunRest, Secret

if TYPE_CHECKING:
    from .model import Rest, Text, Undecided

CAP_BYTES: Final = 64 * 1024
"""Four times the PEM of the largest keys in use (RSA-16384, 12 KiB)."""
LINE_BYTES: Final = 128
"""How much of a line decides whether it is one of a key: 80 before a run of 40 (RFC 7468 lines have 64)."""
_OPENING_BYTES: Final = 1024
"""How far from the BEGIN line the base64 must begin."""

_SEPARATORS: Final = rb"""(?:\\[nrt]|[\s"'`+>|,#*\\]){0,64}+"""
_HEADERS: Final = _SEPARATORS + rb"(?:[A-Za-z-]{1,32}: [^\n\\]{0,128}+(?:\\[nr]|\n)" + _SEPARATORS + b"){0,4}+"
_OPENING: Final = re.compile(_HEADERS + rb"([A-Za-z0-9+/=]{33}|[A-Za-z0-9+/=]{16,32}+(?=--|[^A-Za-z0-9+/=:-]|\Z))")
"""Its base64 is no header's name: that has at most 32 letters, and a colon after them."""
_OPENING_BEGINS: Final = re.compile(
    _HEADERS + rb"(?:[A-Za-z0-9+/=]{0,32}-?|[A-Za-z-]{1,32}(?:: ?|: [^\n\\]{0,128}\\?)?|\\)\Z"
)
"""A text that has not come far enough to say whether it is an opening."""
_LINE: Final = re.compile(
    rb"[^\n]{0,80}?(?:[A-Za-z0-9+/]{40}|-----END)"  # a full line, or the last one
    rb"""|[ \t"'`+>|,#*0-9:.\[\]TZ-]{0,40}[A-Za-z0-9+/]{1,76}={0,2}[ \t"',\\nr)]{0,8}\n"""  # a short one
    rb"|[A-Za-z-]{1,32}: "  # a header
)
_BREAK: Final = re.compile(rb"-----(?:END|BEGIN)|\n")
_BREAK_BYTES: Final = len(b"-----BEGIN")
_PART_OF_BREAK: Final = re.compile(rb"-(?:-(?:-(?:-(?:-(?:E(?:ND?)?|B(?:E(?:G(?:IN?)?)?)?)?)?)?)?)?\Z")
_PAST_CAP: Final = re.compile(rb"[A-Za-z0-9+/=\\\n\x80-\xbf]*+")
"""Continuation bytes are in it so that the cap cuts no character."""


class KeyBlock:
    """Judges what comes after a BEGIN line."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:  # noqa: ARG002 - see `Judge`
        """Return the body with the separators around it, if there is one."""
        limit = value + _OPENING_BYTES
        if text.end < limit and not text.final and _OPENING_BEGINS.match(text.buffer, value):
            return UNDECIDED
        opening = _OPENING.match(text.buffer, value, limit)
        if opening is None:
            return None
        base64 = opening.end(1)
        stop, rest = KeyRest(base64 - value).extend(text, base64)
        return Secret(value, stop, rest)


@dataclass(frozen=True, slots=True)
class KeyRest:
    """More of a body, of which `passed` bytes are behind; the line that it is in was judged."""

    passed: int

    def extend(self, text: Text, at: int) -> tuple[int, Rest | None]:
        """Return where the body ends: before a line that is not of a key, or before what may be one or an END."""
        buffer, began = text.buffer, at
        while True:
            cap = began + CAP_BYTES - self.passed
            found = _BREAK.search(buffer, at)
            part = None if found or text.final else _PART_OF_BREAK.search(buffer, max(at, text.end - _BREAK_BYTES))
            ending = found or part
            stop = ending.start() if ending else text.end
            if stop > cap:
                end = text.run(_PAST_CAP, max(at, cap))
                return end, (RunRest(_PAST_CAP) if end == text.end and not text.final else None)
            here = KeyRest(self.passed + stop - began)
            if found is None:
                return stop, (None if text.final else here)
            if found[0] != b"\n":
                return stop, None
            if not _is_of_key(text, stop + 1):
                short = text.end - stop - 1 < LINE_BYTES and buffer.find(b"\n", stop + 1) < 0
                return stop, (here if short and not text.final else None)
            at = stop + 1


def _is_of_key(text: Text, line: int) -> bool:
    """Whether the line that begins there looks like one of a key, as far as it has come."""
    if text.final and text.end - line < LINE_BYTES and text.buffer.find(b"\n", line) < 0:
        return _LINE.match(text.buffer[line:] + b"\n") is not None
    return _LINE.match(text.buffer, line) is not None
