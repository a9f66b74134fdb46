"""The pack: each rule's own examples, every token in every place, and the formats' particulars (contract C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor.sansio.rules import DEFAULT_RULES
from supervisor.sansio.rules.tokens import TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.sansio.rules import Rule


@pytest.mark.parametrize("rule", DEFAULT_RULES.rules, ids=lambda rule: f"{rule.name}-{rule.lead[:8]}")
def test_the_example_is_found_and_the_near_miss_is_not(rule: Rule, redacted: Callable[..., str]) -> None:
    """As they stand beside the rule."""
    assert f"[REDACTED:{rule.name}]" in redacted(rule.example)
    assert redacted(rule.near_miss) == rule.near_miss
    assert redacted(rule.near_miss + "\n") == rule.near_miss + "\n"


@pytest.mark.parametrize("rule", TOKENS, ids=lambda rule: rule.name)
@pytest.mark.parametrize("place", ["{}", "x_{} y", "<{}>", "'{}'", "密{}密", "\t{}\n", "a={}", "({})"])
def test_a_token_is_found_wherever_a_word_may_stand(rule: Rule, place: str, redacted: Callable[..., str]) -> None:
    """Its surroundings stay."""
    before, after = place.split("{}")
    text = redacted(place.format(rule.example))
    assert text.startswith(before)
    assert text.endswith(f"[REDACTED:{rule.name}]{after}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sk-" + "ant-api03-AbCdEfGh0123456789.", "sk-ant-[REDACTED:anthropic-key]."),
        ("sk-" + "ant-AbCdEfGhIjKlMnOpQrStUvWx", "sk-ant-AbCdEfGhIjKlMnOpQrStUvWx"),
        ("sk-" + "abcdefghij0123456789", "sk-abcdefghij0123456789"),
        ("sk-" + "a" * 70 + "B1", "sk-" + "a" * 70 + "B1"),
        ("eyJ" + "a" * 8 + "." + "b" * 7 + ".c", "eyJ" + "a" * 8 + "." + "b" * 7 + ".c"),
        ("eyJ" + "a" * 8 + "." + "b" * 8 + ".", "[REDACTED:jwt]"),
        ("eyJ" + "a" * 8 + "." + "b" * 8 + ".c.d= e", "[REDACTED:jwt] e"),
        ("eyJ" + "a" * 2000 + "." + "b" * 8, "eyJ" + "a" * 2000 + "." + "b" * 8),
        ("eyJ" + "a" * 20 + " .", "eyJ" + "a" * 20 + " ."),
        ("eyJ" + "a" * 20, "eyJ" + "a" * 20),
        ("eyJ" + "a" * 20 + ".", "eyJ" + "a" * 20 + "."),
    ],
)
def test_the_formats_particulars(text: str, shown: str, redacted: Callable[..., str]) -> None:
    """What looks generated, how long a part may be, and which parts a web token has."""
    assert redacted(text) == shown


def test_names_sources_and_examples_are_there() -> None:
    """A reader finds where a format comes from; of one name are only spellings of one thing."""
    assert all(rule.source and rule.example and rule.near_miss for rule in DEFAULT_RULES.rules)
    names = [rule.name for rule in TOKENS]
    assert len(set(names)) == len(names)
