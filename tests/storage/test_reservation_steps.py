"""A capture's part of the allowance: in steps, shared by its files, and all of it to the last byte [D5]."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.storage import Reservation
from supervisor.storage.allowance import FIRST_STEP, LAST_STEP, share

KIB = 1024
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9 * KIB * KIB)), max_size=40)


class Ledger:
    """An allowance in memory: what `SharedAccount` does, without files."""

    def __init__(self, limit: float, used: int = 0) -> None:
        self.free = limit - used
        self.ceilings: dict[str, int] = {}
        self.steps: list[int] = []

    def admit(self, capture_id: str) -> None:
        """Know it."""
        self.ceilings.setdefault(capture_id, 0)

    def ceiling(self, capture_id: str) -> float:
        """Return what a capture was granted."""
        return self.ceilings.get(capture_id, 0)

    async def grow(self, capture_id: str, wanted: int, at_least: int) -> None:
        """Grant it."""
        granted = share(self.free, wanted, at_least)
        self.steps.append(granted)
        self.free -= granted
        await asyncio.sleep(0)
        self.ceilings[capture_id] = self.ceilings.get(capture_id, 0) + granted

    def let_go(self, capture_id: str) -> None:
        """Forget it."""
        self.ceilings.pop(capture_id)


@given(limit=st.integers(0, 64 * KIB * KIB), used=st.integers(0, 70 * KIB * KIB), steps=STEPS)
def test_what_is_taken_never_exceeds_the_limit(limit: int, used: int, steps: list[tuple[int, int]]) -> None:
    """Whatever captures take, in whatever order, all that was taken and all that lay there fit the limit."""

    async def play() -> None:
        ledger = Ledger(limit, used)
        reservations = [Reservation(ledger, str(number)) for number in range(4)]
        taken = [0] * 4
        for which, wanted in steps:
            granted = await reservations[which].take(wanted)
            assert 0 <= granted <= wanted
            taken[which] += granted
            assert taken[which] <= ledger.ceiling(str(which))
            assert sum(ledger.ceilings.values()) + used <= max(limit, used)

    asyncio.run(play())


@given(steps=st.lists(st.integers(0, 9 * KIB * KIB), max_size=40))
def test_a_single_capture_gets_every_byte_of_the_limit(steps: list[int]) -> None:
    """The steps do not make the limit smaller than it says."""
    limit = 16 * KIB * KIB + 1

    async def play() -> int:
        reservation = Reservation(Ledger(limit), "one")
        return sum([await reservation.take(step) for step in steps])

    assert asyncio.run(play()) == min(limit, sum(steps))


@pytest.mark.asyncio
async def test_steps_double_up_to_the_last_and_are_seldom() -> None:
    """64 KiB first, so that a short output reserves little; then one step for each 4 MiB."""
    ledger = Ledger(math.inf)
    reservation = Reservation(ledger, "one")
    for _ in range(800):
        assert await reservation.take(64 * KIB) == 64 * KIB
    assert ledger.steps[:7] == [FIRST_STEP << count for count in range(7)]
    assert set(ledger.steps[7:]) == {LAST_STEP}
    assert sum(ledger.steps) - 800 * 64 * KIB < LAST_STEP


@pytest.mark.asyncio
async def test_two_files_that_need_a_step_at_once_share_it() -> None:
    """Two short streams reserve as little as one."""
    ledger = Ledger(math.inf)
    reservation = Reservation(ledger, "one")
    assert await asyncio.gather(reservation.take(10), reservation.take(20)) == [10, 20]
    assert ledger.steps == [FIRST_STEP]
    assert await asyncio.gather(reservation.take(100 * KIB), reservation.take(40 * KIB)) == [100 * KIB, 40 * KIB]
    assert ledger.steps == [FIRST_STEP, 2 * FIRST_STEP]


class Raced(Ledger):
    """Before the one that asked for a step is woken, another file takes of it without waiting."""

    def __init__(self, limit: float) -> None:
        super().__init__(limit)
        self.reservation = Reservation(self, "one")
        self.taken: int | None = None

    async def grow(self, capture_id: str, wanted: int, at_least: int) -> None:
        """Grant it, and let the other file take."""
        await super().grow(capture_id, wanted, at_least)
        if self.taken is None:
            self.taken = 0
            self.taken = await self.reservation.take(5)


@pytest.mark.asyncio
async def test_a_file_that_takes_out_of_anothers_step_cuts_nothing() -> None:
    """What it took is asked for again."""
    ledger = Raced(math.inf)
    assert await ledger.reservation.take(FIRST_STEP) == FIRST_STEP
    assert (ledger.taken, ledger.steps) == (5, [FIRST_STEP, 2 * FIRST_STEP])


@pytest.mark.asyncio
async def test_at_the_end_of_the_allowance_two_files_share_what_is_left() -> None:
    """The one that asked gets what the other left of it, and does not ask for ever."""
    ledger = Raced(100)
    assert await ledger.reservation.take(100) == 95
    assert ledger.taken == 5
    assert await ledger.reservation.take(1) == 0


@pytest.mark.asyncio
async def test_what_was_put_back_is_taken_again_without_a_step() -> None:
    """The rest of a cut character is not lost to the capture; nor is it there twice."""
    ledger = Ledger(10)
    reservation = Reservation(ledger, "one")
    assert await reservation.take(10) == 10
    reservation.put_back(3)
    assert await reservation.take(10) == 3
    assert await reservation.take(1) == 0
    with pytest.raises(AssertionError):
        reservation.put_back(11)


@pytest.mark.asyncio
async def test_after_its_release_nothing_is_taken() -> None:
    """Neither of what was left nor of what is free."""
    ledger = Ledger(1000)
    reservation, unused = Reservation(ledger, "one"), Reservation(ledger, "two")
    await reservation.take(10)
    reservation.release()
    unused.release()
    assert ledger.ceilings == {}
    assert [await each.take(1) for each in (reservation, unused)] == [0, 0]
