"""Bounded patterns: what may stand before a secret, and everything that is generated from it.

A lead is written as a regular expression of which each match has a greatest length: literals, classes, `?`, `{m}`,
`{m,n}`, `(?:...)`, `(?i:...)` and `|`. There is no `*`, `+`, `{m,}` or `.`, no line feed and nothing outside printable
ASCII; such a lead is refused when it is written, not when it meets a text. From the parsed form are
generated, so that they cannot disagree:

- the expression for `re` and for hyperscan, which read this subset alike;
- the longest match, which bounds the context that the redactor keeps;
- an expression for each beginning of a match, which is what has to be held at the end of the text;
- the literal heads, one of which every match begins with, which the engine on the standard library searches for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Final

TAB: Final = 0x09
ASCII: Final = frozenset((TAB, *range(0x20, 0x7F)))
"""What a lead may consist of: control characters were dropped before, and characters are never cut."""
MOST_HEADS: Final = 64
"""Literals that a lead is expanded to at most; each costs the engine on the standard library a search."""

_QUANTIFIER: Final = re.compile(r"\?|\{([0-9]{1,3})(?:,([0-9]{1,3}))?\}")
_CLASS: Final = re.compile(r"\[(\^?)((?:[^\]\\]|\\.)+)\]")
_MEMBER: Final = re.compile(r"(\\.|[^\\])(?:-(\\.|[^\\]))?")
_ESCAPES: Final = {"t": {TAB}, "d": set(range(0x30, 0x3A)), "s": {TAB, 0x20}}


@dataclass(frozen=True, slots=True)
class Byte:
    """One byte of these."""

    choices: frozenset[int]


@dataclass(frozen=True, slots=True)
class Sequence:
    """All of these, one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first of these that fits."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """As many as possible from `least` to `most`."""

    part: Node
    least: int
    most: int


Node = Byte | Sequence | Choice | Repeat


def parse(pattern: str) -> Node:
    """Return the parsed form. Raises: ValueError for what is not of this subset, unbounded repeats above all."""
    parser = _Parser(pattern)
    node = parser.choice(fold=False)
    if parser.at < len(pattern):
        raise ValueError(f"unexpected {pattern[parser.at]!r} in {pattern!r}")
    return node


def expression(node: Node) -> str:
    """Return the expression that matches what `node` does."""
    match node:
        case Byte(choices):
            return _byte(choices)
        case Sequence(parts):
            return "".join(map(expression, parts))
        case Choice(options):
            return f"(?:{'|'.join(map(expression, options))})"
        case _:
            return f"(?:{expression(node.part)}){{{node.least},{node.most}}}"


def beginnings(node: Node) -> str:
    """Return an expression for each beginning of a match, the empty and the whole one included, longest first."""
    match node:
        case Byte(choices):
            return f"{_byte(choices)}?"
        case Sequence(parts):
            grown = ""
            for part in reversed(parts):
                grown = f"(?:{expression(part)}{grown}|{beginnings(part)})" if grown else beginnings(part)
            return grown
        case Choice(options):
            return f"(?:{'|'.join(map(beginnings, options))})"
        case _:
            return f"(?:{expression(node.part)}){{0,{node.most - 1}}}{beginnings(node.part)}"


def longest(node: Node) -> int:
    """Return the bytes of the longest match."""
    match node:
        case Byte():
            return 1
        case Sequence(parts):
            return sum(map(longest, parts))
        case Choice(options):
            return max(map(longest, options))
        case _:
            return longest(node.part) * node.most


def heads(node: Node) -> frozenset[bytes]:
    """Return lower-case literals, one of which each match begins with, whatever its case. Raises: ValueError."""
    found = {bytes(head).lower() for head, _ in _heads(node, MOST_HEADS)}
    # A head of which another is the beginning finds nothing that the other does not.
    shortest = {head for head in found if not any(head[:length] in found for length in range(len(head)))}
    if b"" in shortest:
        raise ValueError("a lead begins with literal text")
    return frozenset(shortest)


def _heads(node: Node, most: int) -> list[tuple[tuple[int, ...], bool]]:
    """Return the beginnings of all matches, and for each whether it is a whole match; at most `most` of them."""
    match node:
        case Byte(choices):
            # Folding the case first makes one of the two that `(?i:...)` allows.
            folded = sorted({byte + 0x20 if 0x41 <= byte <= 0x5A else byte for byte in choices})  # noqa: PLR2004
            return [((byte,), True) for byte in folded] if len(folded) <= most else [((), False)]
        case Choice(options):
            return [head for option in options for head in _heads(option, most)]
        case Repeat(part, least, upper):
            found = _heads(Sequence((part,) * least), most) if least else [((), True)]
            return [(head, whole and least == upper) for head, whole in found]
        case _:
            grown: list[tuple[tuple[int, ...], bool]] = [((), True)]
            for part in node.parts:
                ends = [head for head, whole in grown if whole]
                room = most // max(1, len(grown))
                after = _heads(part, room) if ends else []
                if not ends or len(after) > room:
                    return [(head, False) for head, _ in grown]
                grown = [(head, False) for head, whole in grown if not whole] + [
                    (head + rest, whole) for head, (rest, whole) in product(ends, after)
                ]
            return grown


def _byte(choices: frozenset[int]) -> str:
    """Return a class of exactly these bytes."""
    codes = sorted(choices)
    if len(codes) == 1:
        return f"\\x{codes[0]:02x}"
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    spans = (f"\\x{low:02x}" if low == high else f"\\x{low:02x}-\\x{high:02x}" for low, high in ranges)
    return f"[{''.join(spans)}]"


class _Parser:
    """Recursive descent over one pattern; `at` is where it is."""

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern
        self.at = 0

    def choice(self, *, fold: bool) -> Node:
        options = [self.sequence(fold=fold)]
        while self.taken("|"):
            options.append(self.sequence(fold=fold))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, *, fold: bool) -> Node:
        parts: list[Node] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self.quantified(self.atom(fold=fold)))
        if not parts:
            raise ValueError(f"an empty alternative in {self.pattern!r}; write `?`")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def quantified(self, node: Node) -> Node:
        quantifier = _QUANTIFIER.match(self.pattern, self.at)
        if quantifier is None:
            return node
        self.at = quantifier.end()
        if quantifier[0] == "?":
            return Repeat(node, 0, 1)
        least = int(quantifier[1])
        most = least if quantifier[2] is None else int(quantifier[2])
        if not least <= most or not most:
            raise ValueError(f"{quantifier[0]} in {self.pattern!r} repeats nothing")
        return Repeat(node, least, most)

    def atom(self, *, fold: bool) -> Node:
        for opening, folds in (("(?:", fold), ("(?i:", True)):
            if self.taken(opening):
                node = self.choice(fold=folds)
                if not self.taken(")"):
                    raise ValueError(f"a group without its end in {self.pattern!r}")
                return node
        char = self.pattern[self.at]
        members = _CLASS.match(self.pattern, self.at)
        if members is not None:
            self.at = members.end()
            named = frozenset(code for member in _MEMBER.finditer(members[2]) for code in _member(member))
            return Byte(_folded(ASCII - named, fold=fold) if members[1] else _folded(named, fold=fold))
        if char in "*+.^$({[]}?":
            raise ValueError(
                f"{char!r} in {self.pattern!r}: a lead is bounded and consists of literals, classes, groups"
            )
        text = self.pattern[self.at : self.at + 2] if char == "\\" else char
        self.at += len(text)
        return Byte(_folded(_codes(text), fold=fold))

    def taken(self, text: str) -> bool:
        """Return whether `text` comes next, and go past it."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found


def _member(member: re.Match[str]) -> frozenset[int]:
    """Return the bytes of one member of a class: a character, an escape or a range."""
    first = _codes(member[1])
    if member[2] is None:
        return first
    low, high = min(first), min(_codes(member[2]))
    if low > high:
        raise ValueError(f"the range {member[0]!r} is empty")
    return frozenset(range(low, high + 1))


def _codes(text: str) -> frozenset[int]:
    """Return the bytes that a character or an escape stands for. Raises: ValueError for what no lead may contain."""
    if text[0] == "\\" and text[1:] in _ESCAPES:
        return frozenset(_ESCAPES[text[1:]])
    char = text[-1]
    if ord(char) not in ASCII or text == "\\" or (len(text) > 1 and char.isalnum()):
        raise ValueError(f"{text!r} may not stand in a lead")
    return frozenset((ord(char),))


def _folded(codes: frozenset[int], *, fold: bool) -> frozenset[int]:
    """Return the bytes, with the other case of each letter where case does not count."""
    return codes.union(*(chr(code).swapcase().encode() for code in codes)) if fold else codes
