"""Spans become markers: united where they overlap or touch, across the point up to which a text is settled (C6)."""

from __future__ import annotations

from supervisor.sansio.spans import NOWHERE, Span, Union


def test_spans_that_overlap_or_touch_give_one_marker_named_by_the_first() -> None:
    """The first by start, then by order."""
    union = Union()
    spans = sorted([Span(2, 5, 4, "late"), Span(2, 1, 3, "first"), Span(4, 0, 6, "touches"), Span(8, 0, 9, "other")])
    assert union.settle(b"0123456789", 0, spans, 10) == b"01[REDACTED:first]67[REDACTED:other]9"
    assert (union.redactions, union.cover) == ({"first": 1, "other": 1}, NOWHERE)


def test_a_run_goes_on_past_the_settled_part() -> None:
    """What comes later and touches the cover gets no marker of its own."""
    union = Union()
    assert union.settle(b"0123456789", 1, [Span(3, 0, 7, "a", (b"x",))], 5) == b"12[REDACTED:a]"
    assert (union.cover, union.following) == (7, (b"x",))
    union.move(5)
    assert union.settle(b"56789", 0, [Span(2, 0, 3, "b")], 5) == b"89"
    assert (union.redactions, union.cover) == ({"a": 1}, NOWHERE)


def test_spans_that_touch_the_cover_are_absorbed() -> None:
    """Without a cover there is nothing to touch; one that ends inside changes nothing."""
    union = Union()
    spans = [Span(5, 0, 6, "inside"), Span(7, 0, 9, "touches"), Span(11, 0, 12, "apart")]
    assert union.absorb(spans) == spans
    union.settle(b"0123456789abc", 0, [Span(3, 0, 7, "a", (b"x",))], 5)
    assert union.absorb(spans) == spans[2:]
    assert (union.cover, union.following) == (9, ())
    assert spans[2].moved(5) == Span(6, 0, 7, "apart")


def test_what_follows_is_kept_of_all_that_end_last() -> None:
    """Of secrets that end together any may go on; one that ends later replaces them."""
    union = Union()
    union.settle(
        b"012345", 0, [Span(0, 0, 6, "a", (b"x",)), Span(1, 0, 6, "b", (b"y",)), Span(2, 0, 5, "c", (b"z",))], 6
    )
    assert union.following == (b"x", b"y")
