"""Rules: what a caller may write, what is refused, and runs of a class (contract C4, C5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.sansio.rules import DEFAULT_RULES, NO_RULES, Border, Rule, RuleSet
from supervisor.sansio.rules.model import LONGEST_LEAD, SHAPE_BYTES, RunRest, Text

if TYPE_CHECKING:
    from collections.abc import Callable


def rule(**changes: Any) -> Rule:  # noqa: ANN401 - any field
    """A caller's rule."""
    given = {"name": "corp-token", "lead": "corp_", "value": "[a-z0-9]", "minimum": 6, "source": "us"}
    return Rule(**(given | {"example": "corp_" + "abc123", "near_miss": "corp_abc"} | changes))


def test_a_callers_rule_is_like_those_of_the_pack(redacted: Callable[..., str]) -> None:
    """Its lead stays, its value goes on as long as its class does, a shorter one is none."""
    rules = DEFAULT_RULES.with_rules([rule()])
    assert redacted("corp_abc123xyz. xcorp_abc123 corp_abc12 corp_", rules) == (
        "corp_[REDACTED:corp-token]. xcorp_abc123 corp_abc12 corp_"
    )
    assert redacted("see corp_abc", rules, "abort") == "see [REDACTED:undecided]"


def test_a_lead_may_be_committed_at_once(redacted: Callable[..., str]) -> None:
    """Then only the value is undecided (contract C3)."""
    rules = RuleSet((rule(commits_lead=True, border=Border.ANY),))
    assert redacted("see corp_abc", rules, "abort") == "see corp_[REDACTED:undecided]"
    assert redacted("see corp_", rules, "abort") == "see corp_"
    assert redacted("seecorp_abc1234", rules) == "seecorp_[REDACTED:corp-token]"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Corp"},
        {"name": ""},
        {"minimum": 0},
        {"minimum": 129},
        {"lead": "corp_[a-z]+"},
        {"lead": "[a-z]{0,9}corp_"},
        {"lead": f"corp_[a-z]{{0,{LONGEST_LEAD}}}"},
        {"value": "[a-z][0-9]"},
        {"value": "."},
    ],
)
def test_what_cannot_be_used_is_refused(changes: dict[str, Any]) -> None:
    """An unbounded lead above all."""
    with pytest.raises(ValueError, match=r"\S"):
        rule(**changes)


def test_the_minimum_counts_however_long_it_is(redacted: Callable[..., str]) -> None:
    """Also beyond what a shape is judged by."""
    rules = RuleSet((rule(minimum=SHAPE_BYTES + 10),))
    assert redacted("corp_" + "a" * (SHAPE_BYTES + 9) + " ", rules) == "corp_" + "a" * (SHAPE_BYTES + 9) + " "
    assert redacted("corp_" + "a" * (SHAPE_BYTES + 10) + " ", rules) == "corp_[REDACTED:corp-token] "


def test_the_first_of_two_rules_names_a_marker(redacted: Callable[..., str]) -> None:
    """The order of a set is its precedence."""
    rules = (rule(name="one"), rule(name="two", value="[a-z0-9-]"))
    assert redacted("corp_abc123-4.", RuleSet(rules)) == "corp_[REDACTED:one]."
    assert redacted("corp_abc123-4.", RuleSet(rules[::-1])) == "corp_[REDACTED:two]."


def test_without_rules_nothing_is_held(redacted: Callable[..., str]) -> None:
    """The empty set finds nothing anywhere."""
    assert NO_RULES.partial(b"sk-", 0) == 3
    assert redacted("sk-", NO_RULES, "abort") == "sk-"


@pytest.mark.parametrize(
    ("text", "held"),
    [("a s", 1), ("a sk", 2), ("ask", 0), ("x_gh", 2), ("-sk-", 3), ("glpat", 5), ("risk", 0), ("", 0)],
)
def test_what_may_become_a_lead_is_held(text: str, held: int) -> None:
    """Only where it begins a word."""
    assert len(text) - DEFAULT_RULES.partial(text.encode(), 0) == held


def test_a_run_is_searched_once() -> None:
    """From whichever of its places it is asked about; a text without the class at a place has an empty run there."""
    (judge,) = (rule.judge for rule in DEFAULT_RULES.rules if rule.name == "google-key")
    text = Text(b"abc def", final=False)
    assert [text.run(judge.members, start) for start in (0, 2, 3, 4)] == [3, 3, 3, 7]
    assert RunRest(judge.members).extend(text, 4) == (7, RunRest(judge.members))
    assert RunRest(judge.members).extend(Text(b"abc def", final=True), 4) == (7, None)


def test_a_set_takes_rules_alone() -> None:
    """An expression instead of a rule is refused at once; without any the set stays what it is."""
    with pytest.raises(TypeError, match="Rule"):
        DEFAULT_RULES.with_rules([rule(), "sk-.*"])
    assert DEFAULT_RULES.with_rules([]) is DEFAULT_RULES


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 511, 512, 600])
@pytest.mark.parametrize("after", ["@host", "", " "])
def test_a_sketch_finds_whatever_the_rule_finds(length: int, after: str) -> None:
    """An engine that filters by it loses nothing."""
    for sketched in (found for found in DEFAULT_RULES.rules if found.sketch):
        text = f"x://user:{'p' * length}{after}".encode()
        sifted = re.search(sketched.filter.replace(rb"\z", rb"\Z"), text)
        assert sifted or not sketched.trigger.search(text)
