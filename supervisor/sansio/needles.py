"""The known values that are searched for, cut into needles of at most 64 bytes (contract C5).

A secret is found in the encodings of `encodings.py`. Each form is passed through the decoder and the stripper, since
that is what the output went through, and a form longer than 64 bytes is cut in pieces, the last of which is its last
64 bytes: pieces found side by side make one marker, a part of a long secret is found alone, and at most 63 bytes of
output are ever held. Pieces are cut between characters, so a marker never replaces half of one.

A secret of several lines is also looked for line by line, because output is indented and quoted, and a JSON document
text by text, because it is printed in another layout. Not everything that a variable contains can be searched for: a
value that ordinary text contains would hide the text and nothing else, and so is refused, by name and with a reason.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

from .characters import cut, first_border
from .decoder import Decoder
from .encodings import encoded_forms, json_pairs, raw_bytes
from .escapes import EscapeStripper
from .rules import DEFAULT_RULES, NO_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .rules import RuleSet

PIECE_BYTES: Final = 64
"""The longest needle; what must be held back is one byte less."""
SHORTEST_CHARACTERS: Final = 8
"""Below this a value is refused: facts part 4, and what hosted CI systems advise."""
SHORTEST_LINE: Final = 12
"""Characters from which a line of a secret is a needle: braces and short keys of a JSON secret are not."""
LARGEST_BYTES: Final = 16 * 1024
"""What of a value is searched for; an environment string on Linux may be eight times this. The rest is named."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COMMON: Final = frozenset(
    {"password", "password1", "passw0rd", "changeme", "username", "localhost", "anonymous", "undefined", "disabled"}
    | {"required", "optional", "postgres", "postgresql", "rabbitmq", "database", "production", "development"}
)
"""Values of eight characters or more that stand in configuration without being secret; compared in lower case."""
_SHORT_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")
_PLAIN_PATH: Final = re.compile(r"~?(?:/\.?[A-Za-z]?[a-z._-]+[0-9.]{0,4}){2,}/?")
"""Lower-case words between slashes, such as `/usr/bin`; random base64 that starts with a slash is not like that."""

_CREDENTIAL: Final = re.compile(
    r"api_?key|secret|token|password|passwd|pass_?phrase|credential|(?:private|priv|access|auth|encryption|signing)_?key"
    r"|_pass$|^pass$|_pwd$|sshpass|(?:^|_)auth$"
)
_NO_CREDENTIAL: Final = re.compile(
    # Model and limit settings, then names of what points to a secret and is none: a socket, a file, an address.
    r"tokeni[sz]|tokens?_(?:limit|count|budget|per|window)|(?:max|min|num|total|context)_(?:[a-z]+_)*tokens?$"
    r"|_(?:sock|socket|file|path|dir|url|uri|endpoint|type|name|ttl|expiry|expires_in|length|enabled|timeout)$"
    r"|^(?:old)?pwd$"
)
_WORD_BORDER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Needle:
    """A value to search for, 8 to 64 bytes of UTF-8, and the name that its marker gets."""

    value: bytes = field(repr=False)
    name: str
    following: tuple[bytes, ...] = field(default=(), repr=False)
    """Up to 63 bytes that follow it where it is a piece of a longer form; one entry for each such place."""


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True, repr=False)
class NeedleSet:
    """What is searched for: all needles of some secrets, in the order in which these were given, and rules beside them.

    Immutable; shared by streams.
    """

    needles: tuple[Needle, ...]
    refused: tuple[str, ...]
    """`name: reason` of each value that is not, or not wholly, searched for; never a value."""
    rules: RuleSet = DEFAULT_RULES
    """By what other secrets are known."""
    values: tuple[bytes, ...] = field(init=False)
    """The needles' values, in the same order: what an engine is built from."""
    longest: int = field(init=False)
    """The longest needle in bytes, at most 64; 0 without needles."""
    _sorted: tuple[bytes, ...] = field(init=False)
    _heads: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        values = tuple(needle.value for needle in self.needles)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "longest", max(map(len, values), default=0))
        object.__setattr__(self, "_sorted", tuple(sorted(values)))
        object.__setattr__(self, "_heads", frozenset(value[:length] for value in values for length in (1, 2, 3)))

    @classmethod
    def build(cls, *sources: Mapping[str, str | bytes], rules: RuleSet = DEFAULT_RULES) -> Self:
        """Return the needles of all values of `sources`; a name may stand in several, with different values.

        A name that is no plain word of at most 64 characters, or that contains a value, is replaced by `secret`.
        """
        found: dict[bytes, Needle] = {}
        refused: list[tuple[str, str]] = []
        for name, given in (item for source in sources for item in source.items()):
            value = raw_bytes(given).strip()
            text = _normalised(value).decode()
            safe_name = name if _NAME.fullmatch(name) and not _gives_away(name, text) else "secret"
            reason = refusal(text)
            if reason is None and len(value) > LARGEST_BYTES:
                refused.append((safe_name, f"only the first {LARGEST_BYTES} bytes are searched for"))
            if reason is not None:
                refused.append((safe_name, reason))
                continue
            for needle in _needles_of(safe_name, value[:LARGEST_BYTES]):
                known = found.setdefault(needle.value, needle)
                if not set(needle.following) <= set(known.following):
                    found[needle.value] = replace(known, following=known.following + needle.following)
        names = {needle.name for needle in found.values()} | {name for name, _ in refused}
        unsafe = {name for name in names if any(value in name.encode() for value in found)}
        return cls(
            tuple(replace(needle, name="secret") if needle.name in unsafe else needle for needle in found.values()),
            tuple(f"{'secret' if name in unsafe else name}: {reason}" for name, reason in refused),
            rules,
        )

    def partial(self, text: bytes) -> int:
        """Return the length of the longest end of `text` that is a proper prefix of a needle; 0 if none is."""
        tail = text[max(0, len(text) - self.longest + 1) :] if self.longest else b""
        for start in range(len(tail)):
            if tail[start : start + 3] in self._heads and self._grows(tail[start:]):
                return len(tail) - start
        return 0

    def first_beginning(self, prefix: bytes) -> Needle:
        """Return the first needle of which `prefix` is a proper prefix. Raises: StopIteration if there is none."""
        longer = (needle for needle in self.needles if len(needle.value) > len(prefix))
        return next(needle for needle in longer if needle.value.startswith(prefix))

    def _grows(self, text: bytes) -> bool:
        """Whether a needle begins with `text` and goes on: such needles sort directly after it."""
        after = bisect_right(self._sorted, text)
        return after < len(self._sorted) and self._sorted[after].startswith(text)


def credential_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose names say that the value is a credential; empty values are left out."""
    return {name: value for name, value in environ.items() if value.strip() and _is_credential_name(name)}


def refusal(text: str) -> str | None:
    """Return why a value cannot be searched for, without quoting it, or None if it can."""
    if len(text) < SHORTEST_CHARACTERS:
        return f"shorter than {SHORTEST_CHARACTERS} characters"
    if len(set(text)) == 1:
        return "one repeated character"
    if text.lower() in _COMMON:
        return "a common word"
    if _SHORT_NUMBER.fullmatch(text):
        return "a number of fewer than 10 digits"
    if _PLAIN_PATH.fullmatch(text):
        return "a plain path"
    return None


@functools.lru_cache(maxsize=1024)  # each job asks it of the whole environment again, some 100 names
def _is_credential_name(name: str) -> bool:
    words = _WORD_BORDER.sub("_", name).lower()
    return _CREDENTIAL.search(words) is not None and _NO_CREDENTIAL.search(words) is None


def _gives_away(name: str, text: str) -> bool:
    """Whether a name shows its own value; one of up to three characters is a coincidence, and no needle."""
    return len(text) > 3 and text in name  # noqa: PLR2004 - see above


def _needles_of(name: str, value: bytes) -> Iterator[Needle]:
    """Yield the needles of one secret, the plain value first; the same value may come twice."""
    for form in (*map(_normalised, encoded_forms(value)), *_lines(_normalised(value)), *_pairs(value)):
        for piece, following in _pieces(form):
            if len(set(piece.decode().strip())) > 1:  # a run of one character inside a secret is no secret
                yield Needle(piece, name, (following,) if following else ())


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a secret that are worth looking for, none for a secret of one line."""
    lines = text.decode().split("\n")
    for line in map(str.strip, lines if len(lines) > 1 else ()):
        # A key block's BEGIN and END lines are the same in every file and stand in prose.
        if len(line) >= SHORTEST_LINE and refusal(line) is None and not line.startswith("-----"):
            yield line.encode()


def _pairs(value: bytes) -> Iterator[bytes]:
    """Yield the texts of a JSON document that are long enough, with their names, to be looked for."""
    for pair in map(_normalised, json_pairs(value)):
        if len(pair.decode()) >= SHORTEST_LINE:
            yield pair


def _normalised(value: bytes) -> bytes:
    """Return `value` as output shows it, without an incomplete character at its end: that depends on what follows."""
    return EscapeStripper().feed(Decoder().feed(value))


def _pieces(form: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield consecutive pieces of at most 64 bytes, whole characters, and what follows; the last is the form's end."""
    start = 0
    while len(form) - start > PIECE_BYTES:
        length = cut(form[start : start + PIECE_BYTES + 4], PIECE_BYTES)
        piece = form[start : start + length]
        start += length
        yield piece, form[start : start + PIECE_BYTES - 1]
    yield form[first_border(form, max(0, len(form) - PIECE_BYTES)) :], b""


NOTHING: Final = NeedleSet.build(rules=NO_RULES)
"""To search for nothing at all."""
