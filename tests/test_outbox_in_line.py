"""A write that waits for others is no sign of a stuck disk (contract B4, D8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from supervisor.outbox import Outbox
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream
from supervisor.sinks import Kept, Nowhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOON = 0.001
"""Seconds: a deadline that is meant to pass."""


class Crowded(Nowhere):
    """A sink whose write waits until the test lets it."""

    def __init__(self, looks: Iterator[int | None]) -> None:
        self.gate = asyncio.Event()
        self.looks = looks

    async def write(self, chunks: Sequence[bytes]) -> Kept:
        """Keep all, once it may."""
        await self.gate.wait()
        return Kept(sum(map(len, chunks)))

    def in_line(self) -> int | None:
        """Return what comes next."""
        return next(self.looks)


@pytest.mark.asyncio
@pytest.mark.parametrize("looks", [(1, 2, 3, 3), (1, None), (None,)])
async def test_it_is_waited_for_as_long_as_the_line_moves(looks: tuple[int | None, ...]) -> None:
    """Once nobody is served any more, or it is with the disk itself, its time is over."""
    left = iter(looks)
    sink = Crowded(left)
    stream = Stream("stdout", Sanitizer(NeedleSet.build()), Preview(100, 400))
    outbox = Outbox(stream, sink, lambda: None)
    stream.observe(1)
    outbox.put(stream.feed(b"a", bulk=False))
    assert not await outbox.landed(SOON)
    assert next(left, "none is left") == "none is left"
    sink.gate.set()
    assert await outbox.landed(30)
    assert stream.ledger.committed == 1
