"""Followers are woken by what happens, not by a timer, and none is registered (contract E1)."""

from __future__ import annotations

import asyncio

import pytest

from supervisor.progress import Progress

pytestmark = pytest.mark.asyncio


async def turns(count: int = 5) -> None:
    """Let the loop go round a few times, without any time."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_has_happened_is_not_waited_for() -> None:
    """Whoever looked before it happened goes on at once: there is no gap between a look and its wait."""
    progress = Progress()
    seen = progress.count
    progress.happened()
    waiting = asyncio.ensure_future(progress.beyond(seen))
    await asyncio.sleep(0)
    assert waiting.done()


async def test_all_who_wait_are_woken_within_turns_of_the_loop() -> None:
    """However many there are, they share one future, which is gone once it was used."""
    progress = Progress()
    waiting = [asyncio.ensure_future(progress.beyond(0)) for _ in range(100)]
    await turns()
    assert not any(task.done() for task in waiting)
    assert progress._next is not None
    progress.happened()
    assert progress._next is None
    await turns()
    assert all(task.done() for task in waiting)


async def test_one_who_wants_more_waits_on() -> None:
    """A wake-up is for all; each looks whether it is its own."""
    progress = Progress()
    waiting = asyncio.ensure_future(progress.beyond(1))
    await turns()
    progress.happened()
    await turns()
    assert not waiting.done()
    progress.happened()
    await turns()
    assert waiting.done()


async def test_a_cancelled_wait_leaves_the_others_alone() -> None:
    """Nothing of it stays, and the rest are woken as before."""
    progress = Progress()
    first, second = (asyncio.ensure_future(progress.beyond(0)) for _ in range(2))
    await turns()
    first.cancel()
    await asyncio.wait({first})
    assert first.cancelled()
    progress.happened()
    await turns()
    assert second.done()
    assert not second.cancelled()
