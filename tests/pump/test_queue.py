"""The queue between a reader's callback and its task (contract B3)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.pump import ByteQueue

PIECES = st.lists(st.binary(min_size=1, max_size=12), max_size=30)


@given(PIECES, st.integers(1, 20), st.lists(st.integers(0, 3), max_size=10))
def test_batches_are_bounded_ordered_and_as_large_as_they_may_be(
    pieces: list[bytes], at_most: int, takes: list[int]
) -> None:
    """However puts and takes alternate: whole pieces in order, no more than asked for, and the size is what is left."""

    async def play() -> None:
        queue, put, taken = ByteQueue(), b"", 0
        sizes: list[int] = []

        async def take() -> None:
            nonlocal taken
            batch = await queue.batch(at_most)
            assert batch
            assert put[taken:].startswith(batch)
            assert len(batch) <= max(at_most, sizes[0]), "one piece is never split, and a second one must fit"
            whole = 0
            while whole < len(batch):
                whole += sizes.pop(0)
            assert whole == len(batch)
            assert not sizes or len(batch) + sizes[0] > at_most, "the next piece would have fitted"
            taken += len(batch)
            assert queue.size == len(put) - taken

        rounds = iter(takes)
        for piece in pieces:
            queue.put_nowait(piece)
            put += piece
            sizes.append(len(piece))
            assert queue.size == len(put) - taken
            for _ in range(next(rounds, 0)):
                if sizes:
                    await take()
        queue.put_nowait(b"")
        while sizes:
            await take()
        assert await queue.batch(at_most) == b"", "the end comes alone and last"
        assert queue.size == 0

    asyncio.run(play())


@pytest.mark.asyncio
async def test_an_empty_queue_is_waited_for() -> None:
    """A batch is never empty but at the end."""
    queue = ByteQueue()
    batch = asyncio.ensure_future(queue.batch(10))
    await asyncio.sleep(0)
    assert not batch.done()
    queue.put_nowait(b"later")
    assert await batch == b"later"


@pytest.mark.asyncio
async def test_what_is_put_never_waits_for_room() -> None:
    """The reader's callback cannot wait; it looks at the size and stops reading (B1)."""
    queue = ByteQueue()
    for _ in range(1000):
        queue.put_nowait(b"x" * 1000)
    assert queue.size == 1_000_000
    assert len(await queue.batch(64)) == 1000
