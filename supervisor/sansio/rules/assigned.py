r"""Values that are assigned to a name which says that they are credentials.

The name alone proves little: `token: str`, `password=None`, `API_KEY=$VAR` and `secret = get_secret()` assign nothing
secret. So a value is judged by its shape, of which the first 64 bytes are enough:

- *quoted*: anything of three bytes or more that is no placeholder, up to the closing quote or the end of the line. A
  backslash takes the next byte with it. Inside a string that is itself quoted (`{\"token\": \"x\"}`) the quotes carry a
  backslash, and one of those ends the value.
- *unquoted*: up to white space or punctuation. Where the spelling is that of an environment (`TOKEN=`), a form
  (`&token=`) or a flag (`--token=`), code is unlikely and any value counts that is no placeholder and no number.
  Elsewhere it takes six bytes, a digit, and a shape that is neither a number nor an identifier, nor called or indexed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .model import SHAPE_BYTES, UNDECIDED, RunRest, Secret

if TYPE_CHECKING:
    from .model import Rest, Text, Undecided

SHORTEST_QUOTED: Final = 3
SHORTEST_LOOSE: Final = 3
SHORTEST_STRICT: Final = 6

PLACEHOLDER: Final = re.compile(
    rb"""(?ix) (?: none|null|nil|true|false|undefined|str|string|int|bool|bytes|optional|any|required|redacted|hidden
    | basic\s?|bearer\s?|masked|empty|unset|default|example|placeholder|changeme|secret|password|passwd|token|n/?a
    | (?:[a-z]{2,4}[_-])?(?:test|testing|dummy|fake|mock|sample)
      (?:[_-]?(?:key|token|secret|password|value))*(?:[_-]?[0-9]{1,3})?
    | [$%{<\[&].* | \*+ | x{3,} | \.{2,}.* | .{0,24}\.{3} | [-=_]+ | \\[nrt].*
    | (?:your|my|the|some|insert|enter|a|an)[_ -].*
    | (?:self|this|args|opts?|options|os|config|settings|cfg|env|process|params?|secrets|vars|var|data|local)\..* )?""",
    re.DOTALL,
)
"""What stands for a value: words of types and templates, references, fillings; compared whole, in any case."""
_TEMPLATE: Final = re.compile(rb"[^%{$<]{0,24}(?:(?:%s|%r|%\(\w+\)s|\$?\{[^{}]*\}|<[\w -]+>)[^%{$<]{0,24})+")
"""A value with a part that is filled in elsewhere, such as `Basic %s`."""
_NAME: Final = re.compile(
    rb"[A-Za-z]+(?:[_ -][A-Za-z]+)*(?:[_ -](?i:token|password|secret|key|credential)|Token|Password|Secret|Key)s?"
)
"""The name of a credential, such as `next_token`: what is assigned to a key of a schema."""
_PATH: Final = re.compile(rb"(?:~|\.{1,2})?(?:/\.?[A-Za-z][A-Za-z._-]*[0-9.]{0,4}){1,}/?")
_NUMBER: Final = re.compile(rb"[+-]?[0-9][0-9_.:,]*(?:[a-z%]{1,3})?")
_DIGIT: Final = re.compile(rb"[0-9]")
_IDENTIFIER: Final = re.compile(rb"[@*&!]*[A-Za-z_][A-Za-z_]*[0-9]{0,2}(?:(?:\.|->|::|/)[A-Za-z_]+[0-9]{0,2})*[.:?!*]*")
"""Names in code, such as `obj.token2`; a generated secret of six bytes or more is hardly ever like that."""
_NO_VALUES: Final = (PLACEHOLDER, _TEMPLATE, _NAME, _PATH)
_CALLED: Final = frozenset((b"(", b"[", b"{"))
_AFTER_QUOTE: Final = b" ,;)]}+%.:"
"""What follows a string that ends in `Password: `, whose quote only looks like an opening one."""
_QUOTED_NAME: Final = re.compile(rb"[\"'`]\]?\s*[:=]")
VALUE_BYTE: Final = r"""[^\s"'`<>|;,&(){}\[\]\\]"""
"""What an unquoted value consists of."""
_UNQUOTED: Final = re.compile(f"{VALUE_BYTE}*+".encode())


@dataclass(frozen=True, slots=True)
class Quote:
    """How a quoted value goes on, and before which bytes it ends."""

    body: re.Pattern[bytes]
    ends: bytes


def _quote(mark: bytes, *, escaped: bool) -> Quote:
    kept = rb"\\[^\n" + (mark if escaped else b"") + b"]"
    return Quote(re.compile(b"[^" + mark + rb"\\\n]*+(?:" + kept + b"[^" + mark + rb"\\\n]*+)*+"), mark + b"\n")


_QUOTES: Final = {mark: (_quote(mark, escaped=False), _quote(mark, escaped=True)) for mark in (b'"', b"'", b"`")}


@dataclass(frozen=True, slots=True)
class QuotedRest:
    """More of a quoted value."""

    quote: Quote

    def extend(self, text: Text, at: int) -> tuple[int, Rest | None]:
        """Return where the quote or the line ends; before a backslash if what it takes with it has not come."""
        end = _body_end(self.quote, text.buffer, at)
        return end, (self if not text.final and not _is_closed(self.quote, text, end) else None)


def _body_end(quote: Quote, buffer: bytes, at: int) -> int:
    body = quote.body.match(buffer, at)
    assert body is not None, "the pattern matches the empty string"
    return body.end()


def _is_closed(quote: Quote, text: Text, end: int) -> bool:
    """Whether the value ends at `end` whatever comes: a quote, a line feed, or a backslash that takes nothing."""
    return end < text.end and (text.buffer[end] in quote.ends or end + 1 < text.end)


class QuotedValue:
    """Judges a value whose opening quote is the last byte of the lead."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:
        """Return the value without its quotes, if it is no placeholder."""
        buffer = text.buffer
        escaped = value - lead > 1 and buffer[value - 2 : value - 1] == b"\\"
        quote = _QUOTES[buffer[value - 1 : value]][escaped]
        end = _body_end(quote, buffer, value)
        closed = text.final or _is_closed(quote, text, end)
        if end - value < SHAPE_BYTES:
            if not closed:
                return UNDECIDED
            shown = buffer[value:end]
            if len(shown) < SHORTEST_QUOTED or any(form.fullmatch(shown) for form in _NO_VALUES):
                return None
        if buffer[value] in _AFTER_QUOTE and not _QUOTED_NAME.search(buffer, lead, value - 1):
            return None
        return Secret(value, end, None if closed else QuotedRest(quote))


@dataclass(frozen=True, slots=True)
class UnquotedValue:
    """Judges a value without quotes."""

    loose: bool
    """Whether the lead makes code unlikely."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:  # noqa: ARG002 - see `Judge`
        """Return the value, if its shape is that of a secret."""
        end = text.run(_UNQUOTED, value)
        open_ended = end == text.end and not text.final
        if end - value < SHAPE_BYTES:
            if open_ended:
                return UNDECIDED
            shown = text.buffer[value:end]
            if not _looks_secret(shown, text.buffer[end : end + 1], loose=self.loose):
                return None
        elif text.buffer[value : value + 1] in {b"$", b"/", b"%"}:
            return None
        return Secret(value, end, RunRest(_UNQUOTED) if open_ended else None)


def _looks_secret(shown: bytes, after: bytes, *, loose: bool) -> bool:
    if any(form.fullmatch(shown) for form in (*_NO_VALUES, _NUMBER)):
        return False
    if loose:
        return len(shown) >= SHORTEST_LOOSE and after not in _CALLED
    if len(shown) < SHORTEST_STRICT or not _DIGIT.search(shown) or after in _CALLED:
        return False
    return not _IDENTIFIER.fullmatch(shown)
