"""The usual encodings in which a known value turns up in output (contract C5, facts part 4).

They are those that a program applies without being asked: a URL, a JSON document, a Python `repr`, a shell's trace, a
dump in hex, a header in base64. Encodings of encodings, and base64 broken into lines, are not among them (C9).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN: Final = re.compile(rb"[A-Za-z0-9_.-]*")
"""What every textual encoding below leaves as it is."""
_PERCENT: Final = re.compile(r"%[0-9A-F]{2}")
_SHELL_SPECIAL: Final = re.compile(r"([ \t!\"$&'()*,;<>?\[\\\]^`{|}])")
"""What bash's `printf %q` puts a backslash before (`sh_backslash_quote`, lib/sh/shquote.c)."""
_QUOTED_SPECIAL: Final = re.compile(r"([\"$\\`])")
"""What keeps a meaning between double quotes (POSIX XCU 2.2.3), as `declare -p` and `export -p` print it."""
_DOLLAR_QUOTED: Final = {
    **{code: f"\\{code:03o}" for code in [*range(0x20), 0x7F]},
    **{ord(char): f"\\{letter}" for char, letter in zip("\a\b\x1b\f\n\r\t\v\\'", "abEfnrtv\\'", strict=True)},
}
"""Bash's `$'...'`, which `bash -x` uses for what is not printable (`ansic_quote`, lib/sh/strtrans.c)."""


def raw_bytes(value: str | bytes) -> bytes:
    """Return the bytes behind a string that the system handed over (PEP 383); any other lone surrogate as WTF-8."""
    if isinstance(value, bytes):
        return value
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def encoded_forms(value: bytes) -> list[bytes]:
    """Return `value` and what it becomes in each encoding, without repetitions, `value` first."""
    forms = [value]
    if not _PLAIN.fullmatch(value):
        text = value.decode("utf-8", "surrogateescape")
        forms += map(raw_bytes, (*_percent(value), *_json(text), *_python(text, value), *_shell(text)))
    forms += [value.hex().encode(), value.hex().upper().encode(), *_base64(value)]
    return list(dict.fromkeys(forms))


def json_pairs(value: bytes) -> list[bytes]:
    """Return the texts of a JSON document, each with its name, with a space between them and without.

    A program prints a document in a layout and an order of its own; these are what no layout takes apart. Names alone,
    numbers and words such as `true` are no secrets. Empty for what is no object and no array.
    """
    if value[:1] not in {b"{", b"["}:
        return []
    try:
        document = json.loads(value)
        layouts = [
            json.dumps(document, indent=0, separators=("", colon), ensure_ascii=ascii_only)
            for colon in (": ", ":")
            for ascii_only in (True, False)
        ]
    except (ValueError, RecursionError):  # of nesting too deep
        return []
    lines = (raw_bytes(line) for layout in layouts for line in layout.split("\n") if line.endswith('"'))
    return list(dict.fromkeys(lines))


def _percent(value: bytes) -> Iterator[str]:
    """RFC 3986, in a path, a form (`+` for a space) and as JavaScript's `encodeURIComponent`; both cases of hex."""
    for form in (quote(value, safe=""), quote(value, safe="/"), quote_plus(value), quote(value, safe="!'()*")):
        yield form
        yield _PERCENT.sub(lambda escape: escape[0].lower(), form)


def _json(text: str) -> Iterator[str]:
    r"""RFC 8259, ASCII only or not; with `\/` as PHP writes it, and `<`, `>`, `&` as Go does."""
    for ascii_only in (True, False):
        form = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield form
        yield form.replace("/", "\\/")
        yield form.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _python(text: str, value: bytes) -> Iterator[str]:
    """The inside of `repr` and `ascii`; the quote is escaped only where the whole literal has both kinds."""
    for literal in (repr(text), ascii(text), repr(value)[1:]):
        inside = literal[1:-1]
        yield inside
        plain = inside.replace("\\'", "'")
        yield plain
        yield plain.replace("'", "\\'")


def _shell(text: str) -> Iterator[str]:
    """Between single quotes (two ways to write one), between double quotes, with backslashes, `$'...'`, and `$$`."""
    yield text.replace("'", "'\\''")
    yield text.replace("'", "'\"'\"'")
    yield _QUOTED_SPECIAL.sub(r"\\\1", text)
    yield _SHELL_SPECIAL.sub(r"\\\1", text)
    yield text.translate(_DOLLAR_QUOTED)
    yield text.replace("$", "$$")  # as make, compose files and CI systems keep it from being a reference


def _base64(value: bytes) -> Iterator[bytes]:
    """RFC 4648 in both alphabets, at each alignment: the characters that no neighbouring byte has a part in."""
    for before in range(3):
        determined = slice((before * 8 + 5) // 6, (before + len(value)) * 8 // 6)
        form = b64encode(bytes(before) + value)[determined]
        yield form
        yield form.translate(bytes.maketrans(b"+/", b"-_"))
