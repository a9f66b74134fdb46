r"""Searching text that comes in pieces, from its beginning on, without ever going back.

What is found does not depend on where the pieces end. A literal is found as soon as its last character is there, in an
unfinished line too, and over line ends. A regular expression is searched for line by line, and in a line once all of it
is there: in half of a line `port (\d+)` would find half of a number, and `$` an end that is none. That is also why `^`
and `$` mean a line's begin and end without a flag.

What is kept meanwhile is bounded, however long a line is: one character less than the literal, or one and a half times
`SPAN_CHARACTERS`. A line that is longer is searched by windows of that many characters, each half a window on from the
one before, which answers for the matches that begin in its first half. So each character is searched twice at most. A
buffer that is searched from its beginning whenever something came is quadratic (pexpect/pexpect#438).

The end of the output ends its last line. Where the text was cut instead, `finish` is not to be called: nobody knows how
that line went on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from .cursor import Cursor

SPAN_CHARACTERS: Final = 4096
"""The longest line that a regular expression sees as a whole, and the longest literal: what a terminal takes as one
line (N_TTY_BUF_SIZE of Linux). A pattern that tries each end from each beginning (`.*ready`) needs some 50 ms for it,
and four times as long for twice as much."""


@dataclass(frozen=True, slots=True)
class Match:
    """What was found in a stream's text. It is untrusted data, as the text is [E8]."""

    text: str
    """What matched."""
    groups: tuple[str | None, ...]
    """The pattern's groups, the first one first; None for one that took no part. A literal has none."""
    start: Cursor
    """Where `text` begins."""
    cursor: Cursor
    """Where `text` ends; read or wait on from here."""


class Search(Protocol):
    """One search, which ends with its first match."""

    def feed(self, text: str) -> Match | None:
        """Take the next text; return the match if it is there now."""
        ...

    def finish(self) -> Match | None:
        """No text follows; return the match if there is one in an unfinished last line."""
        ...


def check_pattern(pattern: str | re.Pattern[str]) -> None:
    """Return if it can be searched for. The messages do not repeat it.

    Raises:
        TypeError: it is neither text nor compiled from text.
        ValueError: it is empty, matches an empty text, or is a literal of more than `SPAN_CHARACTERS`.
    """
    if isinstance(pattern, str):
        if not pattern:
            raise ValueError("the pattern is empty")
        if len(pattern) > SPAN_CHARACTERS:
            raise ValueError(f"a literal pattern has at most {SPAN_CHARACTERS} characters")
    elif not _of_text(pattern):
        raise TypeError("a pattern is a string, or a re.Pattern of one")
    elif pattern.search("") is not None:
        raise ValueError("the pattern matches an empty text, so it would be found before anything is written")


def search_for(pattern: str | re.Pattern[str], start: Cursor) -> Search:
    """Return a search for a pattern that was checked, in the text that begins at `start`."""
    return LiteralSearch(pattern, start) if isinstance(pattern, str) else LineSearch(pattern, start)


class LiteralSearch:
    """Searches for the first occurrence of a text."""

    def __init__(self, pattern: str, start: Cursor) -> None:
        self._pattern: Final = pattern
        self._cursor: Final = start
        self._carry = ""
        self._offset = start.offset
        """Where the carry begins."""

    def feed(self, text: str) -> Match | None:
        """See `Search`."""
        text = self._carry + text
        at = text.find(self._pattern)
        if at >= 0:
            return _match(self._cursor, self._offset + _size(text[:at]), self._pattern, ())
        done = max(0, len(text) - len(self._pattern) + 1)
        self._offset += _size(text[:done])
        self._carry = text[done:]
        return None

    def finish(self) -> Match | None:
        """See `Search`: an occurrence was found when it was complete."""
        return None


class LineSearch:
    """Searches for the first line in which a regular expression matches."""

    def __init__(self, pattern: re.Pattern[str], start: Cursor, *, span: int = SPAN_CHARACTERS) -> None:
        self._pattern: Final = pattern
        self._span: Final = span
        self._half: Final = span // 2
        self._cursor: Final = start
        self._line = ""
        """What is kept of the unfinished line."""
        self._offset = start.offset
        """Where that begins."""
        self._done = 0
        """Up to which character of it no match begins."""

    def feed(self, text: str) -> Match | None:
        """See `Search`."""
        *lines, rest = (self._line + text).split("\n")
        for line in lines:
            found = self._search(line, ended=True)
            if found is not None:
                return found
            self._offset += _size(line) + 1
            self._done = 0
        found = self._search(rest, ended=False)
        context = max(0, self._done - self._half)
        self._offset += _size(rest[:context])
        self._line = rest[context:]
        self._done -= context
        return found

    def finish(self) -> Match | None:
        """See `Search`."""
        return self._search(self._line, ended=True)

    def _search(self, line: str, *, ended: bool) -> Match | None:
        """Search what can be decided of the line."""
        while len(line) - self._done > self._span:
            match, base = self._window(line, self._done + self._span)
            if match is not None and base + match.start() < self._done + self._half:
                return self._found(line, base, match)
            self._done += self._half
        if not ended:
            return None
        match, base = self._window(line, len(line))
        return None if match is None else self._found(line, base, match)

    def _window(self, line: str, end: int) -> tuple[re.Match[str] | None, int]:
        """Return the first match between what is done and `end`, and where in the line its window begins."""
        # Not `search(line, done, end)`: a lookbehind would see as much before it as the pieces happened to bring.
        base = max(0, self._done - self._half)
        return self._pattern.search(line[base:end], self._done - base), base

    def _found(self, line: str, base: int, match: re.Match[str]) -> Match:
        offset = self._offset + _size(line[: base + match.start()])
        return _match(self._cursor, offset, match[0], match.groups())


def _match(cursor: Cursor, offset: int, text: str, groups: tuple[str | None, ...]) -> Match:
    return Match(text, groups, cursor.at(offset), cursor.at(offset + _size(text)))


def _size(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _of_text(pattern: object) -> bool:
    source: object = getattr(pattern, "pattern", None)
    return isinstance(pattern, re.Pattern) and isinstance(source, str)
