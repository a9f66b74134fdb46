"""Bounded patterns: what they match, what is generated from them, and what is refused (contract C4, C5)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.rules import DEFAULT_RULES
from supervisor.sansio.rules.pattern import beginnings, expression, heads, longest, parse

LEADS = [
    "gh[pousr]_",
    "(?:ab|abc){1,2}x?",
    "[^a-y]{0,2}z",
    r"\.\[\t\d\s",
    "(?i:ab)c",
    "a(?:b(?:c|d)?){2,3}",
    *(rule.lead for rule in DEFAULT_RULES.rules),
]


@pytest.mark.parametrize("lead", LEADS)
def test_the_generated_expression_means_what_was_written(lead: str) -> None:
    """`re` reads this subset as it is, so the written and the generated expression match the same texts."""
    node = parse(lead)
    written, generated = re.compile(lead), re.compile(expression(node))

    @given(st.from_regex(written, fullmatch=True) | st.text("abcdxyzABC._[ 1", max_size=6))
    def same(text: str) -> None:
        ascii_only = all(char == "\t" or " " <= char <= "~" for char in text)
        assert bool(generated.fullmatch(text)) is (bool(written.fullmatch(text)) and ascii_only)

    same()


@pytest.mark.parametrize("lead", LEADS)
def test_what_is_generated_holds_for_every_match(lead: str) -> None:
    """No match is longer, each of its beginnings is one, and it begins with a head."""
    node = parse(lead)
    starts, most, begin = heads(node) if lead[0] not in "[\\" else {b""}, longest(node), re.compile(beginnings(node))

    @given(st.from_regex(expression(node), fullmatch=True))
    def holds(text: str) -> None:
        assert len(text) <= most
        assert any(text.lower().encode().startswith(start) for start in starts)
        assert all(begin.fullmatch(text[:length]) for length in range(len(text) + 1))
        assert not begin.fullmatch("\n" + text)

    holds()


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        ("gh[po]_x{1,2}", {b"gho_x", b"ghp_x"}),
        ("(?i:Sk|SKY)-", {b"sk-", b"sky-"}),
        ("a|ab", {b"a"}),
        ("ab?c", {b"a"}),
        ("a[^b]c", {b"a"}),
        ("a{2}b", {b"aab"}),
        ("(?:a|b)[0-7]{3}", {b"a%d" % digit for digit in range(8)} | {b"b%d" % digit for digit in range(8)}),
        ("(?:ab?|c)d", {b"a", b"cd"}),
    ],
)
def test_heads_are_the_literal_beginnings(lead: str, expected: set[bytes]) -> None:
    """As long as they are few, in lower case, and none is the beginning of another."""
    assert heads(parse(lead)) == expected


@pytest.mark.parametrize("lead", ["a?b", "[^a]b", "(?:a|[^b])c"])
def test_a_lead_without_a_literal_beginning_is_refused(lead: str) -> None:
    """An engine would have to look everywhere."""
    with pytest.raises(ValueError, match="literal"):
        heads(parse(lead))


@pytest.mark.parametrize(
    "lead",
    [
        "a*",
        "a+",
        "a{2,}",
        "a{,2}",
        "a.b",
        "^a",
        "a$",
        "(a)",
        "(?=a)",
        "(?:a",
        "a)",
        "a|",
        "",
        "[a",
        "[]",
        "a]",
        "a{3,2}",
        "a{0}",
        "a??",
        "\\w",
        "\\n",
        "a\n",
        "[\n]",
        "é",
        "[b-a]",
        "\\",
    ],
)
def test_what_is_unbounded_or_no_plain_text_is_refused(lead: str) -> None:
    """When it is written, not when it meets a text."""
    with pytest.raises(ValueError, match=r"\S"):
        parse(lead)
