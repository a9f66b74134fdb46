"""The door of a supervisor, where a place and a cancellation, or the closing, meet in one turn of the loop (F9)."""

from __future__ import annotations

import asyncio

import pytest

from supervisor import SupervisorClosed, TooManyJobs
from supervisor.admission import Door

pytestmark = pytest.mark.asyncio


async def queue_of(door: Door, count: int) -> list[asyncio.Task[None]]:
    """Return tasks that wait at the door, in their order."""
    tasks = [asyncio.ensure_future(door.enter()) for _ in range(count)]
    while len(door.waiting) < count:  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0)
    return tasks


async def test_a_full_house_refuses() -> None:
    """The error says how many are live."""
    door = Door(1, "refuse")
    await door.enter()
    with pytest.raises(TooManyJobs) as refused:
        await door.enter()
    assert refused.value.live == 1
    door.leave()
    await door.enter()


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_a_cancellation_beside_the_free_place(*, cancel_first: bool) -> None:
    """Whichever is first, the cancellation comes out and the next one gets the place."""
    door = Door(1, "queue")
    await door.enter()
    first, second = await queue_of(door, 2)
    if cancel_first:
        first.cancel()
    door.leave()
    if not cancel_first:
        first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    door.leave()
    await door.enter()


async def test_the_closing_beside_the_free_place() -> None:
    """A place that was given and not taken is not used any more; who waits behind is sent away too."""
    door = Door(1, "queue")
    await door.enter()
    tasks = await queue_of(door, 2)
    door.leave()
    door.close()
    assert [type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [SupervisorClosed] * 2


async def test_the_closing_beside_a_cancellation() -> None:
    """The cancellation is what the caller asked for, so that comes out."""
    door = Door(1, "queue")
    await door.enter()
    (task,) = await queue_of(door, 1)
    door.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
