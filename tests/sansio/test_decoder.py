"""Bytes become valid UTF-8, whatever the cuts (contract B8, C1)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.decoder import Decoder

if TYPE_CHECKING:
    from supervisor.sansio.decoder import Encoding

UNITS = st.lists(
    st.sampled_from(["a", "é", "密", "😀", "\ufffd", "\0", "\r\n"]).map(lambda text: text.encode("utf-16-le"))
    | st.sampled_from([b"\x3d\xd8", b"\x00\xdc", b"\xff\xfe", b"\xfe\xff", b"\xff"])
    | st.binary(max_size=5),
    max_size=12,
).map(b"".join)
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


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@given(raw=UNITS, cuts=st.lists(st.integers(min_value=0, max_value=99), max_size=8))
def test_after_a_byte_order_mark_every_cut_gives_what_the_whole_gives(
    encoding: Encoding, raw: bytes, cuts: list[int]
) -> None:
    """UTF-16 as CPython replaces it, surrogates and an odd byte included, and an independent count of what is not."""
    marked = "\ufeff".encode(encoding) + raw
    decoder = Decoder(marks=True)
    pieces = []
    for chunk in chunked(marked, cuts):
        pieces.append(decoder.feed(chunk))
        pieces[-1].decode()
        assert decoder.pending <= 3
    pieces.append(decoder.finish())
    text = raw.decode(encoding, "replace")
    assert b"".join(pieces) == text.encode()
    assert decoder.replaced == len(raw) - len(raw.decode(encoding, "ignore").encode(encoding))
    assert (decoder.pending, decoder.observed, decoder.nul) == (0, len(marked), 2 * text.count("\0"))
    assert decoder.encoding == encoding


@given(RAW, st.lists(st.integers(min_value=0, max_value=99), max_size=6))
def test_without_a_mark_heeding_marks_changes_nothing(raw: bytes, cuts: list[int]) -> None:
    """It is UTF-8 from its first byte on, also where a later chunk begins like a mark."""
    raw = b"x" + raw
    decoder = Decoder(marks=True)
    text = b"".join(map(decoder.feed, chunked(raw, cuts))) + decoder.finish()
    assert text == raw.decode("utf-8", "replace").encode()
    assert decoder.encoding == "utf-8"


@pytest.mark.parametrize(
    ("chunks", "text", "encoding"),
    [
        ([b"\xff", b"\xfe", b"h", b"\0"], "h", "utf-16-le"),
        ([b"", b"\xfe", b"", b"\xff\0h"], "h", "utf-16-be"),
        ([b"\xff", b"\xff"], "\ufffd\ufffd", "utf-8"),
        ([b"\xff"], "\ufffd", "utf-8"),
        ([b"\xff", b"a"], "\ufffda", "utf-8"),
        ([b"a", b"\xff\xfeb\0"], "a\ufffd\ufffdb\0", "utf-8"),
        ([b"h\0i\0"], "h\0i\0", "utf-8"),
        ([b"\xff\xfe\xff\xfea\0"], "\ufeffa", "utf-16-le"),
        ([b"\xff\xfe\x00\xdc\x3d\xd8", b"\x00\xde"], "\ufffd😀", "utf-16-le"),
        ([], "", "utf-8"),
    ],
)
def test_a_mark_is_two_bytes_at_the_very_start(chunks: list[bytes], text: str, encoding: str) -> None:
    """It is dropped once; half of one is held and then replaced; anywhere else it is rubbish."""
    decoder = Decoder(marks=True)
    assert b"".join(map(decoder.feed, chunks)) + decoder.finish() == text.encode()
    assert decoder.encoding == encoding


def test_no_text_waits_for_a_mark() -> None:
    """The first byte of a prompt is decided at once; only half a mark is held, and dropped by an abort."""
    decoder = Decoder(marks=True)
    assert decoder.feed(b">") == b">"
    decoder = Decoder(marks=True)
    assert (decoder.feed(b"\xff"), decoder.pending, decoder.abort()) == (b"", 1, 1)


def test_marks_are_not_heeded_unless_asked_for() -> None:
    """A value or an argument is no stream: what stands behind such bytes is UTF-8."""
    assert Decoder().feed(b"\xff\xfeab") == "\ufffd\ufffdab".encode()


def test_utf_16_with_a_mark_is_text_and_its_rubbish_is_binary() -> None:
    """The NUL halves of its letters are no NULs."""
    for raw, binary in (("plain text".encode("utf-16"), False), (b"\xff\xfe" + b"\0\0ab", True)):
        decoder = Decoder(marks=True)
        decoder.feed(raw)
        assert decoder.binary is binary


@pytest.mark.parametrize("marks", [False, True])
def test_ascii_passes_as_the_same_object(*, marks: bool) -> None:
    """The common case copies nothing."""
    data = b"all plain\n"
    assert Decoder(marks=marks).feed(data) is data


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
