"""The window for whoever watches (contract B3, E1)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.live import Shown, Window

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE: Final = 30.0


async def everything(window: Window) -> list[Shown]:
    """Return all that a reader is shown."""
    return [shown async for shown in window.read()]


@pytest.mark.asyncio
async def test_what_was_added_before_the_reader_came_is_shown_at_once() -> None:
    """In one piece, without a gap."""
    window = Window(100)
    window.add(b"one ")
    window.add(b"two")
    window.close()
    assert await everything(window) == [Shown(b"one two", 0)]


@pytest.mark.asyncio
async def test_an_empty_stream_shows_nothing_and_ends() -> None:
    """The reader is told of the end while it waits."""
    window = Window(100)
    reader = asyncio.ensure_future(everything(window))
    await asyncio.sleep(0)
    assert not reader.done()
    window.close()
    window.close()
    assert await asyncio.wait_for(reader, PATIENCE) == []


@pytest.mark.asyncio
async def test_a_slow_reader_learns_how_much_it_missed() -> None:
    """Whole pieces fall out, the last one never, and the gap is told once (E1)."""
    window = Window(6)
    for piece in (b"aaa", b"bbb", b"ccc", b"dd"):
        window.add(piece)
    read = window.read()
    assert await anext(read) == Shown(b"cccdd", 6)
    window.add(b"longer than all")
    assert await anext(read) == Shown(b"longer than all", 0)
    window.close()
    assert [shown async for shown in read] == []


@pytest.mark.asyncio
async def test_a_cancelled_reader_leaves_what_was_not_shown() -> None:
    """The next one begins where it stopped."""
    window = Window(100)

    async def first(read: AsyncIterator[Shown]) -> Shown:
        return await anext(read)

    reader = asyncio.ensure_future(first(window.read()))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    window.add(b"text")
    window.close()
    assert await everything(window) == [Shown(b"text", 0)]


@given(
    st.lists(st.one_of(st.binary(min_size=1, max_size=9), st.just("read")), max_size=40),
    st.integers(1, 20),
)
def test_every_gap_is_counted_exactly(steps: list[bytes | str], capacity: int) -> None:
    """Shown and skipped bytes add up, at their places, however reads and pieces alternate; memory stays bounded."""

    async def play() -> None:
        window, text, at = Window(capacity), b"", 0
        read = window.read()

        def take(shown: Shown) -> None:
            nonlocal at
            at += shown.skipped
            assert shown.text
            assert text[at : at + len(shown.text)] == shown.text
            at += len(shown.text)

        for step in steps:
            if isinstance(step, bytes):
                window.add(step)
                text += step
                assert sum(map(len, window._pieces)) <= max(capacity, len(step))
            elif at < len(text):
                take(await anext(read))
                assert at == len(text), "a read shows all that is there"
        window.close()
        async for shown in read:
            take(shown)
        assert at == len(text)

    asyncio.run(play())


@given(
    st.lists(st.one_of(st.binary(min_size=1, max_size=9), st.just("read")), max_size=40),
    st.integers(1, 12),
    st.integers(0, 200),
    st.integers(1, 7),
)
def test_what_is_kept_is_never_skipped(steps: list[bytes | str], capacity: int, kept: int, most: int) -> None:
    """Of a text whose first `kept` bytes can be recalled, all of these are shown, and gaps lie behind them (E1)."""

    async def play() -> None:
        window, text, at = Window(capacity), b"", 0

        async def recall(start: int, end: int) -> bytes:
            assert 0 <= start < end <= len(text)
            return text[start : min(end, kept, start + most)]

        read = window.read(recall)

        def take(shown: Shown) -> None:
            nonlocal at
            assert not shown.skipped or at >= min(kept, at + shown.skipped)
            at += shown.skipped
            assert shown.text
            assert text[at : at + len(shown.text)] == shown.text
            at += len(shown.text)

        for step in steps:
            if isinstance(step, bytes):
                window.add(step)
                text += step
            elif at < len(text):
                take(await anext(read))
        window.close()
        async for shown in read:
            take(shown)
        assert at == len(text)

    asyncio.run(play())
