"""Pages of any size fit together, and say where they are (contract E3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.errors import CursorError, StorageError
from supervisor.sansio.cursor import Cursor
from supervisor.sansio.page import ABSENT, PENDING, Page, Standing, page_of, settled, wanted
from supervisor.sansio.receipt import Retained, StreamFacts

CAPTURE = "20260101T000000000000Z-" + "0" * 32
OTHER = "20260101T000000000000Z-" + "1" * 32
FINAL = Standing("complete", ended=True)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What a text has: no NUL, which the sanitiser drops."""


def page_at(text: bytes, offset: int, max_bytes: int, standing: Standing = FINAL) -> Page:
    """Return the page at an offset of a whole text, read as a file is read."""
    request = wanted(CAPTURE, "stdout", Cursor(CAPTURE, "stdout", offset=offset), max_bytes)
    return page_of(request, text[request.offset : request.offset + request.count], len(text), standing)


@given(st.text(CHARACTERS), st.integers(min_value=4, max_value=20))
def test_pages_of_any_size_make_up_the_text(text: str, max_bytes: int) -> None:
    """Nothing is lost, repeated or split; only the last page says that nothing follows (E3)."""
    data = text.encode()
    parts: list[str] = []
    request = wanted(CAPTURE, "stdout", None, max_bytes)
    while True:
        page = page_of(request, data[request.offset : request.offset + request.count], len(data), FINAL)
        assert page.start == request.cursor
        assert len(page.text.encode()) <= max_bytes
        assert page.cursor.offset == page.start.offset + len(page.text.encode())
        parts.append(page.text)
        assert page.eof is (page.cursor.offset == len(data))
        if page.eof:
            break
        assert page.text
        request = request.after(page)
    assert "".join(parts) == text


@given(st.text(CHARACTERS, min_size=1), st.data(), st.integers(min_value=4, max_value=20))
def test_a_cursor_inside_a_character_is_aligned_back(text: str, data: st.DataObject, max_bytes: int) -> None:
    """The page begins at that character's first byte and its start says so (E3)."""
    whole = text.encode()
    offset = data.draw(st.integers(min_value=0, max_value=len(whole)))
    page = page_at(whole, offset, max_bytes)
    assert 0 <= offset - page.start.offset <= 3
    assert whole[: page.start.offset].decode() + page.text + whole[page.cursor.offset :].decode() == text
    borders = {len(text[:count].encode()) for count in range(len(text) + 1)}
    assert page.start.offset == max(border for border in borders if border <= offset)


@given(st.text(CHARACTERS, min_size=1), st.data())
def test_a_text_that_was_cut_inside_a_character_ends_before_it(text: str, data: st.DataObject) -> None:
    """A full disk or a crash cuts anywhere; what is left of a character is never shown (B5, D6)."""
    whole = text.encode()
    size = data.draw(st.integers(min_value=0, max_value=len(whole)))
    shown = whole[:size].decode(errors="ignore")
    first = page_at(whole[:size], 0, 1000)
    assert first.text == shown
    assert first.eof
    last = page_at(whole[:size], size, 4)
    assert (last.text, last.eof, last.start) == ("", True, first.cursor)


@pytest.mark.parametrize("after", [b"", b" end"])
def test_zeros_are_never_given_as_text(after: bytes) -> None:
    """A page ends before them without being the last, and none begins with them: that data never reached the disk."""
    data = b"begin" + bytes(8) + after
    page = page_at(data, 0, 1000)
    assert (page.text, page.eof, page.cursor.offset) == ("begin", False, 5)
    for offset in (5, 9, 12):
        with pytest.raises(StorageError):
            page_at(data, offset, 4)
    assert page_at(data, 13, 1000).text == after.decode()


def test_a_live_text_has_no_end() -> None:
    """While text may come, an empty page at the end says pending, not eof (E2)."""
    page = page_at(b"abc", 3, 4, PENDING)
    assert (page.text, page.state, page.reason, page.eof) == ("", "pending", None, False)
    assert page.start == page.cursor


def test_part_of_a_character_at_a_live_end_waits_for_the_rest() -> None:
    """A write in flight shows in part; the page stops before it."""
    page = page_at("aé".encode()[:2], 0, 4, PENDING)
    assert (page.text, page.cursor.offset, page.eof) == ("a", 1, False)
    assert page_at("aé".encode(), 1, 4, PENDING).text == "é"


def test_bytes_past_the_receipts_end_are_no_text() -> None:
    """A write that came back late may have added to the file; the receipt says how far it is evidence (D8)."""
    standing = Standing("partial", "writer-stalled", ended=True, end=3)
    page = page_at(b"abcdef", 0, 100, standing)
    assert (page.text, page.state, page.reason, page.eof) == ("abc", "partial", "writer-stalled", True)
    with pytest.raises(CursorError):
        page_at(b"abcdef", 4, 100, standing)


def test_a_text_shorter_than_its_receipt_says_is_an_error() -> None:
    """Somebody cut it; that is never silent (E3)."""
    with pytest.raises(StorageError, match="shorter") as caught:
        page_at(b"ab", 0, 100, Standing("complete", ended=True, end=3))
    assert caught.value.reason == "io-error"


@pytest.mark.parametrize("cursor", [(0, 1), (0, 7), (1, 3)])
def test_a_cursor_outside_the_retained_range_is_an_error_with_the_range(cursor: tuple[int, int]) -> None:
    """Before it, after it, or of another generation: nothing is skipped or repeated silently (E3)."""
    generation, offset = cursor
    standing = Standing("complete", ended=True, start=2, end=6)
    request = wanted(CAPTURE, "stdout", Cursor(CAPTURE, "stdout", generation, offset), 100)
    with pytest.raises(CursorError) as caught:
        page_of(request, b"", 6, standing)
    assert (caught.value.start, caught.value.end, caught.value.generation) == (2, 6, 0)


@pytest.mark.parametrize(("text", "offset"), [(b"a\xffbcd", 0), (b"\x80" * 5, 0), (b"\x80" * 9, 2), (b"\x80" * 9, 5)])
def test_bytes_that_were_never_written_by_us_are_an_error(text: bytes, offset: int) -> None:
    """Committed text is UTF-8, so these were put there by somebody else; decoding is strict."""
    with pytest.raises(StorageError) as caught:
        page_at(text, offset, 4)
    assert caught.value.reason == "io-error"


def test_a_request_that_cannot_be_is_refused_at_once() -> None:
    """Before any file is touched: unsafe ids, other captures, other streams, pages too small for a character."""
    ours = Cursor(CAPTURE, "stdout")
    for capture_id, stream, cursor, max_bytes in (
        ("../x", "stdout", None, 100),
        ("", "stdout", None, 100),
        (CAPTURE, "stdin", None, 100),
        (OTHER, "stdout", ours, 100),
        (CAPTURE, "stderr", ours, 100),
        (CAPTURE, "stdout", ours, 3),
    ):
        with pytest.raises(ValueError, match=r"cursor|max_bytes"):
            wanted(capture_id, stream, cursor, max_bytes)  # type: ignore[arg-type]


def test_a_final_receipt_says_how_its_stream_stands() -> None:
    """State, reason and retained range are the receipt's; a stream that does not exist misses nothing (B7)."""
    facts = StreamFacts(state="partial", reason="no-space", retained=Retained(start=1, end=5, generation=2))
    assert settled(facts) == Standing("partial", "no-space", ended=True, start=1, end=5, generation=2)
    assert settled(None) is ABSENT


def test_a_request_tells_where_its_bytes_are() -> None:
    """Up to three bytes before the cursor too, so that a character around it is whole."""
    assert wanted(CAPTURE, "stderr", Cursor(CAPTURE, "stderr", offset=9), 10).place == (CAPTURE, "stderr", 6, 13)
