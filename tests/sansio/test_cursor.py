"""Cursors and capture ids."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.cursor import (
    CAPTURE_ID,
    Cursor,
    align_back,
    is_capture_id,
    new_capture_id,
    trim_to_characters,
)
from supervisor.sansio.words import StreamName

ID = "20260102T030405000006Z-" + "0123456789abcdef" * 2
MOMENTS = st.datetimes(timezones=st.just(UTC))
STREAMS: tuple[StreamName, ...] = get_args(StreamName)


@given(st.sampled_from(STREAMS), st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1))
def test_parse_returns_what_str_wrote(stream: StreamName, generation: int, offset: int) -> None:
    """A cursor survives being a text."""
    cursor = Cursor(ID, stream, generation, offset)
    assert Cursor.parse(str(cursor)) == cursor


def test_str_has_four_parts_in_the_order_of_the_design() -> None:
    """The written form is part of the public interface."""
    assert str(Cursor(ID, "stderr", 1, 23)) == f"{ID}:stderr:1:23"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ID,
        f"{ID}:stdout:0",
        f"{ID}:stdin:0:0",
        f"{ID}:STDOUT:0:0",
        f"{ID}:stdout:-1:0",
        f"{ID}:stdout:0:-1",
        f"{ID}:stdout:00:0",
        f"{ID}:stdout:0:01",
        f"{ID}:stdout:0:+1",
        f"{ID}:stdout:0:1_0",
        f"{ID}:stdout:0:1.0",
        f"{ID}:stdout:0:\u0663",
        f"{ID}:stdout:0:{10**18}",
        f"{ID}:stdout:{10**18}:0",
        f"{ID}:stdout:0:{'9' * 5000}",
        f"{ID}:stdout:0:0:0",
        f"{ID}:stdout:0:0\n",
        f" {ID}:stdout:0:0",
        f"../../etc/passwd{ID}:stdout:0:0",
        f"{ID.upper()}:stdout:0:0",
    ],
)
def test_parse_refuses_what_str_never_writes(text: str) -> None:
    """Every malformed cursor is a ValueError, whose message does not repeat it."""
    with pytest.raises(ValueError, match="not a cursor") as refusal:
        Cursor.parse(text)
    assert "passwd" not in str(refusal.value)


@given(st.text(max_size=80))
def test_parse_never_raises_anything_else(text: str) -> None:
    """Whatever a stranger sends is a cursor or a ValueError."""
    try:
        cursor = Cursor.parse(text)
    except ValueError:
        return
    assert str(cursor) == text


@pytest.mark.parametrize(("offset", "generation"), [(-1, 0), (0, -1), (10**18, 0)])
def test_a_cursor_cannot_be_made_that_could_not_be_parsed(offset: int, generation: int) -> None:
    """The same bounds hold for the constructor."""
    with pytest.raises(ValueError, match="not a cursor"):
        Cursor(ID, "stdout", generation, offset)


def test_at_moves_within_the_stream_and_leaves_the_cursor_alone() -> None:
    """A cursor is a value."""
    cursor = Cursor(ID, "stdout", 2, 5)
    assert cursor.at(9) == Cursor(ID, "stdout", 2, 9)
    assert cursor.offset == 5
    with pytest.raises(ValueError, match="not a cursor"):
        cursor.at(-1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cursor.offset = 3  # type: ignore[misc]


@given(MOMENTS, st.binary(min_size=16, max_size=16))
def test_a_new_id_is_a_capture_id(now: datetime, random: bytes) -> None:
    """Every year that Python knows gives an id of the same width."""
    made = new_capture_id(now, random)
    assert is_capture_id(made)
    assert len(made) == 55
    assert made.endswith(random.hex())


@given(MOMENTS, MOMENTS, st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_ids_sort_as_their_times_do(one: datetime, other: datetime, this: bytes, that: bytes) -> None:
    """A listing of names is in order of time; only within a microsecond does chance decide."""
    if one != other:
        assert (new_capture_id(one, this) < new_capture_id(other, that)) == (one < other)


def test_an_id_is_in_utc() -> None:
    """Ids of hosts in different zones sort together."""
    east = datetime(2026, 1, 2, 5, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))
    assert new_capture_id(east, bytes(range(16))) == "20260102T030405000006Z-000102030405060708090a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("now", "random"),
    [
        (datetime(2026, 1, 2), bytes(16)),  # noqa: DTZ001 - a naive time is what is refused
        (datetime(2026, 1, 2, tzinfo=UTC), bytes(15)),
        (datetime(2026, 1, 2, tzinfo=UTC), bytes(17)),
    ],
)
def test_a_naive_time_and_too_few_random_bytes_are_refused(now: datetime, random: bytes) -> None:
    """An id that is not sortable or not unguessable is not made."""
    with pytest.raises(ValueError, match="aware time and 16 random bytes"):
        new_capture_id(now, random)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a/b", ID + "\n", ID + "/", ID[:-1], ID.replace("0", "\u0660"), ID.upper()]
)
def test_a_name_that_is_not_an_id_is_refused(text: str) -> None:
    """An id is used as the name of a directory, so nothing else may pass for one."""
    assert not is_capture_id(text)
    assert CAPTURE_ID.fullmatch(ID)


@given(st.text(max_size=8), st.data())
def test_align_back_finds_the_character_that_an_offset_is_in(text: str, data: st.DataObject) -> None:
    """With three bytes before it, any offset is aligned back to a border, by three bytes at most."""
    whole = text.encode()
    offset = data.draw(st.integers(0, len(whole)))
    base = max(0, offset - 3)
    border = base + align_back(whole[base:], offset - base)
    assert offset - 3 <= border <= offset
    whole[:border].decode()


@given(st.text(max_size=12), st.data())
def test_trimmed_ranges_are_whole_characters_and_lose_three_bytes_at_most(text: str, data: st.DataObject) -> None:
    """Any range of a text, trimmed, is what that range of bytes holds in whole characters."""
    whole = text.encode()
    start = data.draw(st.integers(0, len(whole)))
    piece = whole[start : data.draw(st.integers(start, len(whole)))]
    skip, keep = trim_to_characters(piece, at_start=False)
    assert 0 <= skip <= keep <= len(piece)
    piece[skip:keep].decode()
    assert skip <= 3
    assert len(piece) - keep <= 3 or skip == keep


def test_at_the_start_nothing_is_skipped() -> None:
    """A page that begins at a border keeps its first byte, even one that looks like a continuation."""
    assert trim_to_characters(b"\x80abc", at_start=True) == (0, 4)
    assert trim_to_characters(b"\x80abc", at_start=False) == (1, 4)


def test_a_piece_of_one_character_is_an_empty_range() -> None:
    """Neither end may be passed: more has to be read."""
    assert trim_to_characters("𝄞".encode()[:2], at_start=False) == (0, 0)
    skip, keep = trim_to_characters("𝄞".encode()[1:3], at_start=False)
    assert skip == keep
