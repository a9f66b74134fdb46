"""Bytes become valid UTF-8, whatever the cuts (contract B8, C1)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.decoder import Decoder

PIECES = st.sampled_from(
    [
        b"a",
        b"plain text\n",
        "é".encode(),
        "密码".encode(),
        "😀".encode(),
        "�".encode(),
        b"\x00",
        b"\x80",
        b"\xc3",
        b"\xe4\xbd",
        b"\xf0\x9f\x98",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
    ]
)
RAW = st.lists(PIECES | st.binary(max_size=6), max_size=12).map(b"".join)


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """Return `data` cut at these positions, modulo its length; equal positions give an empty chunk."""
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(borders)]


@given(RAW, st.lists(st.integers(min_value=0, max_value=99), max_size=6))
def test_every_cut_gives_what_the_whole_gives(raw: bytes, cuts: list[int]) -> None:
    """The text is CPython's own replacement of the whole, each piece is whole characters, and the carry is small."""
    decoder = Decoder()
    pieces = []
    for chunk in chunked(raw, cuts):
        pieces.append(decoder.feed(chunk))
        pieces[-1].decode()
        assert decoder.pending <= 3
    pieces.append(decoder.finish())
    assert b"".join(pieces) == raw.decode("utf-8", "replace").encode()
    assert (decoder.pending, decoder.observed, decoder.nul) == (0, len(raw), raw.count(0))


@given(RAW, st.lists(st.integers(min_value=0, max_value=99), max_size=6))
def test_replaced_counts_the_raw_bytes_that_are_not_in_the_text(raw: bytes, cuts: list[int]) -> None:
    """An independent count: the bytes left when all valid ones are taken out."""
    decoder = Decoder()
    for chunk in chunked(raw, cuts):
        decoder.feed(chunk)
    decoder.finish()
    assert decoder.replaced == len(raw) - len(raw.decode("utf-8", "ignore").encode())


def test_ascii_passes_as_the_same_object() -> None:
    """The common case copies nothing."""
    data = b"all plain\n"
    assert Decoder().feed(data) is data


def test_a_split_character_is_carried_and_then_whole() -> None:
    """Three of the four bytes of an emoji wait for the last."""
    decoder = Decoder()
    assert decoder.feed(b"a\xf0\x9f\x98") == b"a"
    assert decoder.pending == 3
    assert decoder.feed(b"\x80b") == "😀b".encode()
    assert (decoder.pending, decoder.replaced) == (0, 0)


def test_a_truncated_character_is_replaced_at_the_end() -> None:
    """One U+FFFD stands for the two bytes, and both are counted."""
    decoder = Decoder()
    decoder.feed(b"a\xe4\xbd")
    assert decoder.finish() == "\ufffd".encode()
    assert (decoder.pending, decoder.replaced) == (0, 2)


def test_a_replacement_character_of_the_childs_own_is_not_counted() -> None:
    """A valid U+FFFD next to an invalid byte: one is the child's, one is ours."""
    decoder = Decoder()
    assert decoder.feed(b"\xf0\xef\xbf\xbd") == "\ufffd\ufffd".encode()
    assert decoder.replaced == 1


def test_an_abort_drops_the_carry_and_says_how_much() -> None:
    """Nothing of a cut character is shown, and it is not counted as replaced."""
    decoder = Decoder()
    decoder.feed(b"a\xe4\xbd")
    assert decoder.abort() == 2
    assert (decoder.pending, decoder.replaced) == (0, 0)


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_nothing_is_fed_after_the_end(end: str) -> None:
    """That would be our own fault."""
    decoder = Decoder()
    getattr(decoder, end)()
    with pytest.raises(AssertionError):
        decoder.feed(b"a")


@pytest.mark.parametrize(
    ("raw", "binary"),
    [
        (b"", False),
        (b"plain text\n", False),
        ("ключ 密码\n".encode(), False),
        (b"./src/a.py\0./src/b.py\0", False),
        ("déjà vu, il a été très gentil".encode("latin-1"), True),
        ("Il était une fois un petit garçon qui vivait".encode("latin-1"), False),
        ("plain text in UTF-16".encode("utf-16"), True),
        (bytes(range(256)), True),
        (b"\x7fELF\2\1\1" + bytes(9), True),
        (b"a" * 9 + b"\0", False),
        (b"a" * 8 + b"\0", True),
    ],
)
def test_binary_is_more_than_one_byte_in_ten(raw: bytes, *, binary: bool) -> None:
    """NUL and invalid bytes against all; the border is exact."""
    decoder = Decoder()
    decoder.feed(raw)
    decoder.finish()
    assert decoder.binary is binary
    assert decoder.encoding == "utf-8"
