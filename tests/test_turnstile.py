"""The long steps of many jobs take turns, so that none of the loop's turns is long (contract B4 in spirit)."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from supervisor.turnstile import Turnstile

pytestmark = pytest.mark.asyncio


async def passing(turnstile: Turnstile, number: int, passed: list[int]) -> None:
    """Pass, and tell that."""
    await turnstile.turn()
    passed.append(number)


async def test_one_passes_in_each_turn_of_the_loop() -> None:
    """In the order of asking; the first does not wait."""
    turnstile, passed = Turnstile(), list[int]()
    tasks = [asyncio.ensure_future(passing(turnstile, number, passed)) for number in range(5)]
    counts: list[int] = []
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        counts.append(len(passed))
    assert passed == [0, 1, 2, 3, 4]
    assert counts[0] == 1
    assert max(later - earlier for earlier, later in pairwise(counts)) == 1


async def test_one_that_is_alone_does_not_wait() -> None:
    """Neither the first one nor one that comes when all have passed."""
    turnstile = Turnstile()
    for _ in range(2):
        with pytest.raises(StopIteration):
            turnstile.turn().send(None)
        for _ in range(3):
            await asyncio.sleep(0)


async def test_a_cancelled_one_holds_up_nobody() -> None:
    """Its turn is left unused."""
    turnstile, passed = Turnstile(), list[int]()
    tasks = [asyncio.ensure_future(passing(turnstile, number, passed)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert passed == [0, 2]
