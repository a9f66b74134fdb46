"""A crowd is no stuck disk: deadlines count from where a call is with the disk, not from where it is in line [D8]."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from supervisor.errors import StorageError
from supervisor.storage.writers import Writers

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 30.0


@pytest.fixture
def writers() -> Iterator[Writers]:
    """Writers with one thread."""
    made = Writers(threads=1)
    yield made
    made.shutdown()


def test_a_queued_call_has_its_time_anew_as_long_as_others_are_served(writers: Writers) -> None:
    """Where nobody was served, it has none left; once a thread took it, it has what is left of its own."""
    gates = [threading.Event() for _ in range(3)]
    entered = [threading.Event() for _ in range(3)]

    def hold(number: int) -> None:
        entered[number].set()
        gates[number].wait(PATIENCE)

    first, second, third = (writers.submit(hold, number) for number in range(3))
    assert entered[0].wait(PATIENCE)
    assert (writers.queued(first), writers.queued(third)) == (None, 0)
    assert 0 < writers.time_left(first, PATIENCE, None) <= PATIENCE
    assert writers.time_left(third, PATIENCE, None) == PATIENCE
    assert writers.time_left(third, PATIENCE, 0) == 0
    gates[0].set()
    first.result(PATIENCE)
    assert entered[1].wait(PATIENCE)
    assert writers.queued(third) == 1
    assert writers.time_left(third, PATIENCE, 0) == PATIENCE
    assert writers.time_left(second, -1, 0) <= 0
    for gate in gates:
        gate.set()
    third.result(PATIENCE)
    assert writers.time_left(third, PATIENCE, 2) == PATIENCE


@pytest.mark.asyncio
async def test_one_that_no_thread_takes_fails_while_nobody_is_served() -> None:
    """Behind a stuck call it does not wait for ever."""
    writers, gate, entered = Writers(threads=1, cap=1), threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        gate.wait(PATIENCE)

    held = writers.submit(hold)
    await asyncio.to_thread(entered.wait, PATIENCE)
    with pytest.raises(StorageError, match="in time"):
        await writers.run("waiting", len, "four", deadline=0.01)
    gate.set()
    await asyncio.wrap_future(held)
    await writers.close()
