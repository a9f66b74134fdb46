"""What is found in text that comes in pieces is what is found in the whole, at the same place."""

from __future__ import annotations

import re
import tracemalloc
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.cursor import Cursor
from supervisor.sansio.searching import (
    SPAN_CHARACTERS,
    LineSearch,
    LiteralSearch,
    Match,
    check_pattern,
    search_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from supervisor.sansio.searching import Search

START: Final = Cursor("20260102T030405000006Z-" + "0123456789abcdef" * 2, "stdout", 0, 7)
TEXTS: Final = st.text("ab\nä😀", max_size=60)
PATTERNS: Final = tuple(
    map(re.compile, ["a+b", "^b", "a$", "(a)(b)?", "a|ab", "(?<=b)a", "^a+$", r"ä\b", "[^a]+", "a(?=b)", "(?<!a)b"])
)
SPAN: Final = 8


def pieces_of(text: str, cuts: Iterable[int]) -> list[str]:
    """Return the text in pieces that end at these places."""
    places = sorted({min(cut, len(text)) for cut in cuts})
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def found_in(search: Search, pieces: Iterable[str]) -> Match | None:
    """Return what is found in these pieces and their end."""
    for piece in pieces:
        if (found := search.feed(piece)) is not None:
            return found
    return search.finish()


def at(text: str, begin: int, found: str, groups: tuple[str | None, ...] = ()) -> Match:
    """Return the match that begins at this character of the whole text."""
    offset = START.offset + len(text[:begin].encode())
    return Match(found, groups, START.at(offset), START.at(offset + len(found.encode())))


def in_lines(pattern: re.Pattern[str], text: str) -> Match | None:
    """Return the first match in the lines of the whole text: what the module says that it does, in five lines."""
    begin = 0
    for line in text.split("\n"):
        if (match := pattern.search(line)) is not None:
            return at(text, begin + match.start(), match[0], match.groups())
        begin += len(line) + 1
    return None


@given(TEXTS, st.text("ab\nä", min_size=1, max_size=4), st.lists(st.integers(0, 60)))
def test_a_literal_is_found_where_it_is_in_the_whole(text: str, pattern: str, cuts: list[int]) -> None:
    """Over pieces and over line ends."""
    begin = text.find(pattern)
    expected = at(text, begin, pattern) if begin >= 0 else None
    assert found_in(LiteralSearch(pattern, START), pieces_of(text, cuts)) == expected


@given(TEXTS, st.sampled_from(PATTERNS), st.lists(st.integers(0, 60)))
def test_a_regular_expression_is_found_where_it_is_in_the_lines(
    text: str, pattern: re.Pattern[str], cuts: list[int]
) -> None:
    """In lines that are not longer than the span."""
    assert found_in(LineSearch(pattern, START), pieces_of(text, cuts)) == in_lines(pattern, text)


@given(TEXTS, st.sampled_from(PATTERNS), st.lists(st.integers(0, 60)))
def test_in_a_longer_line_too_the_pieces_do_not_matter(text: str, pattern: re.Pattern[str], cuts: list[int]) -> None:
    """A match may be cut or missed there, but always the same one."""
    whole = found_in(LineSearch(pattern, START, span=SPAN), [text])
    assert found_in(LineSearch(pattern, START, span=SPAN), pieces_of(text, cuts)) == whole


@given(
    TEXTS,
    st.sampled_from([re.compile(text) for text in ("^b", "(?<=b)a", "aba?", "a(?=ba)", "(a)b(b)?", "b$", "(?<!a)bä")]),
    st.lists(st.integers(0, 60)),
)
def test_what_spans_half_a_window_is_found_in_a_line_of_any_length(
    text: str, pattern: re.Pattern[str], cuts: list[int]
) -> None:
    """Ends of a line and what stands before and after are seen as in the whole; ends of a window are none."""
    text = text.replace("\n", "a")
    assert found_in(LineSearch(pattern, START, span=SPAN), pieces_of(text, cuts)) == in_lines(pattern, text)


@pytest.mark.parametrize("pattern", ["^b", "(?<=a)b", "(?<!a)b", "(a)b", "ba(?=a)", "b(a)?"])
def test_the_begin_of_a_window_is_none_of_the_line(pattern: str) -> None:
    """At each place of a line that is some windows long, with what stands before it."""
    compiled = re.compile(pattern)
    for place in range(5 * SPAN):
        text = "a" * place + "b" + "a" * (5 * SPAN - place)
        assert found_in(LineSearch(compiled, START, span=SPAN), [text]) == in_lines(compiled, text)


def test_a_literal_is_found_in_an_unfinished_line_and_an_expression_only_at_its_end() -> None:
    """A prompt has no line end; half of a number is no number."""
    literal, lines = search_for("> ", START), search_for(re.compile(r"port (\d+)"), START)
    assert literal.feed("ready>") is None
    assert literal.feed(" ") == at("ready> ", 5, "> ")
    assert literal.finish() is None
    assert lines.feed("on port 80") is None
    assert lines.feed("80\nmore") == at("on port 8080", 3, "port 8080", ("8080",))


def test_the_end_of_the_output_ends_its_last_line() -> None:
    """It is searched only then."""
    lines = search_for(re.compile("b$"), START)
    assert lines.feed("ab") is None
    assert lines.finish() == at("ab", 1, "b")


def test_a_line_without_an_end_is_held_in_part_alone() -> None:
    """Megabytes of it, and the memory is less than that of one page (B3)."""
    piece = "x" * 50_000
    for pattern in ("needle", re.compile("needle$")):
        search = search_for(pattern, START)
        search.feed(piece)
        tracemalloc.start()
        try:
            for _ in range(40):
                assert search.feed(piece) is None
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert used < 40_000
        found = search.feed("needle\n")
        assert found is not None
        assert found.start.offset == START.offset + 41 * 50_000


class Counted:
    """A pattern that counts the characters it was given to search."""

    def __init__(self) -> None:
        self.pattern = re.compile("needle")
        self.searched = 0

    def search(self, text: str, begin: int) -> re.Match[str] | None:
        """Search, and count."""
        self.searched += len(text) - begin
        return self.pattern.search(text, begin)


@pytest.mark.parametrize("size", [7, 50, 5000])
@pytest.mark.parametrize("line", [40, 5 * SPAN_CHARACTERS])
def test_no_character_is_searched_more_than_twice(size: int, line: int) -> None:
    """However small the pieces and however long the lines are: the work is linear in the text."""
    counted: Any = Counted()
    text = ("x" * line + "\n") * 2
    assert found_in(LineSearch(counted, START), [text[at : at + size] for at in range(0, len(text), size)]) is None
    assert line <= counted.searched <= 2 * len(text)


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        (b"ready", TypeError),
        (re.compile(b"ready"), TypeError),
        (None, TypeError),
        ("", ValueError),
        ("x" * (SPAN_CHARACTERS + 1), ValueError),
        (re.compile(""), ValueError),
        (re.compile("x*"), ValueError),
        (re.compile("^$"), ValueError),
    ],
)
def test_what_cannot_be_waited_for_is_refused(pattern: Any, error: type[Exception]) -> None:  # noqa: ANN401 - anything
    """And not repeated: it may be part of a secret."""
    with pytest.raises(error) as caught:
        check_pattern(pattern)
    assert "xx" not in str(caught.value)


def test_what_can_be_waited_for_is_not_refused() -> None:
    """The longest literal, and an expression that needs a character."""
    check_pattern("x" * SPAN_CHARACTERS)
    check_pattern(re.compile("^x*.$"))
