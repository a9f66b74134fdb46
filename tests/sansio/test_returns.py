"""Carriage returns beside the redactor: they come back where they were, and change nothing else (contract B8, C1)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.returns import Returns
from supervisor.sansio.sanitizer import Sanitizer

NEEDLES = NeedleSet.build({"A": "hunter2sec9"})
TEXT = st.lists(
    st.sampled_from(["\r", "\n", " 50%", "hunter2sec9", "hunter2", "sec9", "[REDACTED:A]", "é", "\x1b[K"]), max_size=16
).map("".join)


@given(TEXT, st.lists(st.integers(1, 12), min_size=1, max_size=8), st.booleans())
def test_every_return_is_back_in_its_place_whatever_the_cuts(text: str, sizes: list[int], bulk: bool) -> None:  # noqa: FBT001
    """Markers, printed look-alikes of markers and held beginnings in between included."""
    sanitizer, shown, rest, turn = Sanitizer(NEEDLES, stream=True), b"", text.encode(), 0
    while rest:
        size = sizes[turn % len(sizes)]
        shown += sanitizer.feed(rest[:size], bulk=bulk)
        rest, turn = rest[size:], turn + 1
        assert sanitizer.held <= 70
    shown += sanitizer.finish()
    stripped = re.sub("\r+", "\r", re.sub("\r+\n", "\n", text.replace("\x1b[K", "")))
    expected = re.sub("(?:hunter2sec9)+", "[REDACTED:A]", stripped)
    assert shown.decode() == expected


def test_text_without_returns_passes_as_the_same_object() -> None:
    """The common case copies nothing but what is held."""
    decided = b"plain\n"
    assert Returns().restored(b"plain\nhunt", decided, 4) is decided


@pytest.mark.parametrize(
    ("steps", "restored"),
    [
        ([(b"a\rb", b"a\nb", 0)], b"a\rb"),
        ([(b"a\rhun", b"a\n", 3), (b"ter\r", b"hunter\n", 0)], b"a\rhunter\r"),
        ([(b"a\r", b"a", 1), (b"b", b"\nb", 0)], b"a\rb"),
        ([(b"hun", b"", 3), (b"t", b"", 4), (b"\rx", b"hunt\nx", 0)], b"hunt\rx"),
        ([(b"SECRET\rb", b"[REDACTED:A]\nb", 0)], b"[REDACTED:A]\rb"),
        ([(b"a\rSEC", b"a\n[REDACTED:A]", 0), (b"RET\rb\n", b"\nb\n", 0)], b"a\r[REDACTED:A]\rb\n"),
        ([(b"a\rSECRET\rb", b"a\n[REDACTED:A]\nb", 0)], b"a\r[REDACTED:A]\rb"),
        ([(b"a\r\rSEC\nRET\rb\n", b"a\n\n[REDACTED:A]\nb\n", 0)], b"a\r\r[REDACTED:A]\rb\n"),
        ([(b"SEC\nb\nRET\rb\n", b"[REDACTED:A]\nb\n", 0)], b"[REDACTED:A]\rb\n"),
        ([(b"a\rcut", b"a\n[REDACTED:undecided]", 0)], b"a\r[REDACTED:undecided]"),
        ([(b"x\r", b"other\n", 0)], b"other\n"),
    ],
)
def test_what_is_restored(steps: list[tuple[bytes, bytes, int]], restored: bytes) -> None:
    """Held text, values at either end, a value over two calls, one with a line feed in it; and nothing is made up."""
    returns = Returns()
    assert b"".join(returns.restored(*step) for step in steps) == restored
