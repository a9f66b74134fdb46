"""The desk where followers are served: shared looks, rests beside a firehose, nobody left behind."""

from __future__ import annotations

import asyncio
import time

import pytest

from supervisor.desk import FIREHOSE_BYTES, Desk
from supervisor.storage import Piece

pytestmark = pytest.mark.asyncio


class Looker:
    """Looks at a file that a test grows, one look at a time, each ended by the test."""

    def __init__(self) -> None:
        self.looks = 0
        self.size = 100
        self.gate = asyncio.Event()

    async def __call__(self) -> Piece:
        """Return what the file was like when the look began."""
        self.looks += 1
        size = self.size
        await self.gate.wait()
        return Piece(b"x" * min(size, 10), size, (1, 1))


async def turns(count: int = 5) -> None:
    """Let everything that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_those_who_want_the_same_share_one_look() -> None:
    """A hundred followers at one place cost one look at the file."""
    desk, look = Desk(), Looker()
    all_ = [asyncio.ensure_future(desk.piece((0, 10), look, observed=0, at_least=0)) for _ in range(100)]
    await turns()
    look.gate.set()
    pieces = await asyncio.gather(*all_)
    assert look.looks == 1
    assert {id(piece) for piece in pieces} == {id(pieces[0])}


async def test_a_full_piece_is_kept_for_who_comes_later() -> None:
    """The last full piece of a growing file does not change; a short one may."""
    desk, look = Desk(), Looker()
    look.gate.set()
    await desk.piece((0, 10), look, observed=0, at_least=0)
    await desk.piece((0, 10), look, observed=0, at_least=0)
    assert look.looks == 1
    await desk.piece((0, 20), look, observed=0, at_least=0)
    await desk.piece((0, 20), look, observed=0, at_least=0)
    assert look.looks == 3


async def test_an_older_look_is_not_shared() -> None:
    """Who has seen a longer file looks for itself: what it would share would look like a file that was cut."""
    desk, look = Desk(), Looker()
    first = asyncio.ensure_future(desk.piece((0, 10), look, observed=0, at_least=0))
    await turns()
    look.size = 200
    second = asyncio.ensure_future(desk.piece((0, 10), look, observed=0, at_least=150))
    await turns()
    look.gate.set()
    assert (await first).size == 100
    assert (await second).size == 200


async def test_a_look_that_missed_what_was_committed_since_is_not_shared_unless_it_is_full() -> None:
    """Who was woken by that commit would find nothing, and sleep until the next; a full piece is what it is."""
    desk, look = Desk(), Looker()
    places = ((0, 20), (0, 10))
    first = [asyncio.ensure_future(desk.piece(place, look, observed=0, at_least=0)) for place in places]
    await turns()
    look.gate.set()
    look.size = 200
    later = [asyncio.ensure_future(desk.piece(place, look, observed=0, at_least=0, committed=200)) for place in places]
    assert [piece.size for piece in await asyncio.gather(*first)] == [100, 200]
    assert [piece.size for piece in await asyncio.gather(*later)] == [200, 200]
    assert look.looks == 3


async def test_another_one_looks_if_the_first_is_cancelled_or_fails() -> None:
    """Nobody waits for a look that will not come, and an error is told to the one whose look it was."""
    desk, look = Desk(), Looker()
    first = asyncio.ensure_future(desk.piece((0, 10), look, observed=0, at_least=0))
    second = asyncio.ensure_future(desk.piece((0, 10), look, observed=0, at_least=0))
    await turns()
    first.cancel()
    await turns()
    assert look.looks == 2
    look.gate.set()
    assert (await second).size == 100

    async def fails() -> Piece:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await desk.piece((50, 10), fails, observed=0, at_least=0)
    assert (await desk.piece((50, 10), look, observed=0, at_least=0)).size == 100


@pytest.mark.realtime
async def test_beside_a_firehose_a_look_is_followed_by_a_rest() -> None:
    """Two looks while the child writes at full speed are apart by the rest; while it is slow they are not."""
    desk = Desk()

    async def look() -> Piece:
        time.sleep(0.005)  # noqa: ASYNC251 - the look's own cost, which the rest is a multiple of
        return Piece(b"", 0, (1, 1))

    async def two(growth: int) -> float:
        began = time.monotonic()
        for number in range(2):
            await desk.piece((number, 10), look, observed=growth * (number + 1), at_least=0)
        return time.monotonic() - began

    slow, fast = await two(0), await two(100 * FIREHOSE_BYTES)
    assert slow < 0.04
    assert fast > 0.045
