"""What a rule is: a bounded lead, what must come after it, and a judge of the value (contract C5).

A rule is asked about each place in the text where its lead stands. The answer is a secret, nothing, or *undecided*,
and it depends on the text from the byte before the lead to the end of what was read. An answer that is
not *undecided* is final: no text that comes later changes it. That is what makes redaction independent of chunks, and
what every judge must keep to. How far a judge may look before it decides is bounded, so what is held is bounded.

A value that has no bound is a secret with a `rest`: something that says of later text how much of it belongs to
the same value. Nothing of the value need be kept for that [C4].

Two kinds of lead. That of a token format (`ghp_`) is held with the token, and a beginning of it too. That of a
header or an assignment (`Password: `) is committed at once, and only the value is held [C3].
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from .pattern import beginnings, expression, heads, longest, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_LEAD: Final = 256
"""Bytes. The context that is kept and searched again at each call is hardly longer."""
LARGEST_MINIMUM: Final = 128
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Border(Enum):
    """What may not stand directly before a lead, as a look-behind."""

    ANY = ""
    """Nothing is excluded."""
    WORD = "(?<![A-Za-z0-9])"
    """The lead begins a word; an underscore counts as a border, as in `token_ghp_...`."""


class Undecided(Enum):
    """The answer that only more text can replace."""

    UNDECIDED = "undecided"


UNDECIDED: Final = Undecided.UNDECIDED


class Text:
    """The text that judges look at: `buffer`, complete if `final`. It remembers how far each run of a class reaches."""

    __slots__ = ("_runs", "buffer", "end", "final")

    def __init__(self, buffer: bytes, *, final: bool) -> None:
        self.buffer: Final = buffer
        self.end: Final = len(buffer)
        self.final: Final = final
        self._runs: dict[re.Pattern[bytes], tuple[int, int]] = {}

    def run(self, members: re.Pattern[bytes], start: int) -> int:
        """Return where the run of one class that includes `start` ends; a run is searched once, not for each lead."""
        first, end = self._runs.get(members, (0, -1))
        if first <= start <= end:
            return end
        found = members.match(self.buffer, start)
        end = found.end() if found else start
        self._runs[members] = (start, end)
        return end


class Rest(Protocol):
    """What is still to come of a value. Equal rests at one place say the same of all later text."""

    def extend(self, text: Text, at: int) -> tuple[int, Rest | None]:
        """Return up to where the value goes on from `at`, and the rest after that; None if the value ends there.

        An end before the text's is undecided if a rest is returned too: it is held from there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Secret:
    """A value from `start` up to `stop`, and the rest of it if the text ended first."""

    start: int
    stop: int
    rest: Rest | None = None


class Judge(Protocol):
    """Decides what follows a lead."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:
        """Return the verdict about a lead that begins at `lead` and ends at `value`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One form of secret. Raises: ValueError for a name, lead, class or minimum that cannot be used.

    Without a `judge` the value is `minimum` or more bytes of the class `value`: the form for a caller's own rules.
    """

    name: str
    """What its marker says; lower-case letters, digits and hyphens."""
    lead: str
    """A bounded pattern; see `pattern`."""
    value: str
    """The class of bytes that the value begins with, such as `[A-Za-z0-9_-]`."""
    minimum: int
    """Bytes of that class that must follow the lead."""
    source: str
    """Where the format is described."""
    example: str = field(repr=False)
    """A text in which something is a secret of this form."""
    near_miss: str
    """A text that looks like it and contains no secret."""
    border: Border = Border.WORD
    commits_lead: bool = False
    judge: Judge | None = None
    ahead: str | None = None
    r"""Instead of `minimum` bytes of `value`: a bounded expression for what must follow, `\Z` where the text ends."""
    sketch: str | None = None
    """What the filter has for `ahead`: it matches wherever that does, perhaps elsewhere too, and is small to build."""
    longest_lead: int = field(init=False)
    heads: frozenset[bytes] = field(init=False, repr=False)
    trigger: re.Pattern[bytes] = field(init=False, repr=False)
    """The lead, after its border and before `minimum` bytes of the class, or what the end left of them."""
    filter: bytes = field(init=False, repr=False)
    """The same without look-around, for an engine that has none: it begins up to one byte earlier."""
    bare: re.Pattern[bytes] = field(init=False, repr=False)
    """The lead alone."""
    beginning: str = field(init=False, repr=False)
    """An expression for what may still become the lead, the border included."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not 1 <= self.minimum <= LARGEST_MINIMUM:
            raise ValueError(f"{self.name!r}: a name of small letters, a minimum from 1 to {LARGEST_MINIMUM}")
        lead = parse(self.lead)
        length = longest(lead)
        if length > LONGEST_LEAD:
            raise ValueError(f"{self.name}: a lead of up to {length} bytes; {LONGEST_LEAD} are the most")
        if self.judge is None:
            if longest(parse(self.value)) != 1:
                raise ValueError(f"{self.name}: the value is a class of bytes")
            object.__setattr__(self, "judge", Run(re.compile(self.value.encode() + b"*+"), self.minimum))
        fewer = f"{self.value}{{0,{self.minimum - 1}}}" if self.minimum > 1 else ""
        ahead = self.ahead or rf"{self.value}{{{self.minimum}}}|{fewer}\Z"
        before = "(?:^|[^A-Za-z0-9])" if self.border is Border.WORD else ""
        filtered = f"{before}{expression(lead)}(?:{self.sketch or ahead})".replace(r"\Z", r"\z")
        object.__setattr__(self, "longest_lead", length)
        object.__setattr__(self, "heads", heads(lead))
        object.__setattr__(self, "bare", re.compile(expression(lead).encode()))
        object.__setattr__(self, "trigger", re.compile(f"{self.border.value}{expression(lead)}(?={ahead})".encode()))
        object.__setattr__(self, "filter", filtered.encode())
        object.__setattr__(self, "beginning", f"{self.border.value}{beginnings(lead)}")

    def verdict(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:
        """Return what the judge says of a lead that `trigger` found."""
        assert self.judge is not None, "set when the rule was made"
        return self.judge.judge(text, lead, value)

    def owned_from(self, lead: int, value: int) -> int:
        """Return from where the text must be held while the verdict is undecided."""
        return value if self.commits_lead else lead


@dataclass(frozen=True, slots=True)
class Run:
    """A value of one class, without an end. With `evidence`, each must occur within the first `SHAPE_BYTES`."""

    members: re.Pattern[bytes]
    """The class, any number of times, possessive."""
    minimum: int
    evidence: tuple[re.Pattern[bytes], ...] = ()
    other: bytes = b""
    """With what the values of another rule begin, shorter than `minimum`; not judged here."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:  # noqa: ARG002 - see `Judge`
        """Return the run, or undecided as long as what there is of it is short or without evidence."""
        end = text.run(self.members, value)
        open_ended = end == text.end and not text.final
        shown = min(end, value + SHAPE_BYTES)
        if end - value < self.minimum or not all(sign.search(text.buffer, value, shown) for sign in self.evidence):
            return UNDECIDED if open_ended and end - value < max(self.minimum, SHAPE_BYTES) else None
        if self.other and text.buffer.startswith(self.other, value):
            return None
        return Secret(value, end, RunRest(self.members) if open_ended else None)


SHAPE_BYTES: Final = 64
"""How much of a value its shape is judged by; no shorter value that goes on is decided without its end."""


@dataclass(frozen=True, slots=True)
class RunRest:
    """More of the same class."""

    members: re.Pattern[bytes]

    def extend(self, text: Text, at: int) -> tuple[int, Rest | None]:
        """Return where the class ends."""
        end = text.run(self.members, at)
        return end, (self if end == text.end and not text.final else None)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class RuleSet:
    """Rules in the order of precedence that decides a marker's name among secrets of one start. Immutable."""

    rules: tuple[Rule, ...]
    longest_lead: int = field(init=False)
    longest_held: int = field(init=False)
    """The longest lead of a rule that does not commit it."""
    _beginnings: re.Pattern[bytes] | None = field(init=False)

    def __post_init__(self) -> None:
        held = [rule for rule in self.rules if not rule.commits_lead]
        object.__setattr__(self, "longest_lead", max((rule.longest_lead for rule in self.rules), default=0))
        object.__setattr__(self, "longest_held", max((rule.longest_lead for rule in held), default=0))
        alternatives = "|".join(rule.beginning for rule in held)
        object.__setattr__(self, "_beginnings", re.compile(rf"(?:{alternatives})\Z".encode()) if held else None)

    def with_rules(self, rules: Iterable[object]) -> RuleSet:
        """Return a set that has these as well; the new ones come last. Raises: TypeError for what is no `Rule`."""
        given = tuple(rules)
        added = [rule for rule in given if isinstance(rule, Rule)]
        if len(added) < len(given):
            raise TypeError("rules must be Rule objects")
        return RuleSet((*self.rules, *added)) if added else self

    def partial(self, buffer: bytes, start: int) -> int:
        """Return where, from `start` on, what may still become a held lead begins; the text's end if nothing does."""
        end = len(buffer)
        if self._beginnings is None:
            return end
        found = self._beginnings.search(buffer, max(start, end - self.longest_held + 1))
        return found.start() if found else end
