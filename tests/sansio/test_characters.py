"""Where UTF-8 may be cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.characters import continues, cut, first_border

WIDE = "aß€𝄞"  # one, two, three and four bytes


def is_whole(piece: bytes) -> bool:
    """Return whether a piece of valid text is whole characters."""
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.text(max_size=12), st.integers(0, 60))
def test_cut_is_the_largest_whole_prefix(text: str, at_most: int) -> None:
    """Of whole text, no longer prefix within the bound would decode."""
    data = text.encode()
    wanted = max(n for n in range(min(at_most, len(data)) + 1) if is_whole(data[:n]))
    assert cut(data, at_most) == wanted


@given(st.text(max_size=8), st.integers(0, 40))
def test_cut_of_a_piece_that_ends_in_mid_character_ends_before_it(text: str, end: int) -> None:
    """The incomplete last character of a piece is never kept, not even when the bound is beyond the piece."""
    piece = text.encode()[:end]
    assert piece[: cut(piece, 1000)] == piece.decode(errors="ignore").encode()


@pytest.mark.parametrize("end", range(len(WIDE.encode()) + 1))
def test_cut_knows_how_long_each_character_is(end: int) -> None:
    """Of one, two, three and four bytes, cut at each place."""
    piece = WIDE.encode()[:end]
    assert cut(piece, end) == len(piece.decode(errors="ignore").encode())


@pytest.mark.parametrize(("at_most", "expected"), [(0, 0), (1, 0), (2, 2), (3, 3), (9, 3)])
def test_cut_of_a_piece_that_begins_in_mid_character(at_most: int, expected: int) -> None:
    """Leading continuation bytes stay together, because the piece before them has their lead byte."""
    assert cut("€a".encode()[1:], at_most) == expected


def test_cut_trusts_a_piece_of_continuations_only() -> None:
    """Three of them may end a character of four bytes; nothing here says otherwise."""
    assert cut("𝄞".encode()[1:], 3) == 3


def test_cut_takes_a_bytearray() -> None:
    """The preview's windows need no copy to be measured."""
    assert cut(bytearray("€€".encode()), 5) == 3


@given(st.text(max_size=10), st.integers(0, 40))
def test_first_border_is_where_a_character_begins(text: str, start: int) -> None:
    """What follows the border decodes, and at most three bytes are skipped."""
    data = text.encode()
    border = first_border(data, min(start, len(data)))
    assert is_whole(data[border:])
    assert 0 <= border - min(start, len(data)) <= 3


def test_first_border_of_continuations_only_is_the_end() -> None:
    """A piece out of the middle of one character has no border in it."""
    assert first_border("𝄞".encode()[1:3]) == 2


def test_continues_is_true_of_inner_bytes_only() -> None:
    """Each character has one byte that begins it."""
    assert sum(not continues(byte) for byte in WIDE.encode()) == len(WIDE)
