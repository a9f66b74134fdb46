"""What the page on limits shows of secrets by form is what becomes of it (contract C9)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

PAGE: Final = (Path(__file__).parent.parent.parent / "docs" / "limits.md").read_text("utf-8")
SECTION: Final = PAGE.partition("\n### By form alone\n")[2].partition("\n## ")[0]
ROWS: Final = re.findall(r"^\| (?!what stays|what is|-)(.*) \| (.*) \|$", SECTION, re.MULTILINE)
SPAN: Final = re.compile("`([^`]+)`(?: → `([^`]+)`)?")
EXAMPLES: Final = [
    (shown.replace("↵", "\n"), after or shown.replace("↵", "\n"))
    for _, examples in ROWS
    for shown, after in SPAN.findall(examples)
]


def sanitised(text: str) -> str:
    """Return what a stream of this text becomes by rules alone."""
    sanitizer = Sanitizer(NeedleSet.build())
    return (sanitizer.feed(text.encode()) + sanitizer.finish()).decode()


@pytest.mark.parametrize(("shown", "after"), EXAMPLES)
def test_an_example_becomes_what_the_page_says(shown: str, after: str) -> None:
    """Itself, or what is shown behind the arrow."""
    assert sanitised(shown) == after


def test_each_row_has_an_example() -> None:
    """None is a claim alone, and both tables are there."""
    assert len(ROWS) == 16
    assert [what for what, examples in ROWS if not SPAN.search(examples)] == []


def test_the_one_line_key_is_dropped_to_the_cap_and_then_by_its_bytes() -> None:
    """What the page says of it without an example."""
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n"
    key = "-----BEGIN " + "PRIVATE KEY-----\\n"
    assert sanitised(f"{key}{line * 900} kestrel7") == "-----BEGIN " + "PRIVATE KEY-----[REDACTED:private-key]"
    text = sanitised(f"{key}{line * 1100} kestrel7 {line}")
    assert text == "-----BEGIN " + f"PRIVATE KEY-----[REDACTED:private-key] kestrel7 {line}"
