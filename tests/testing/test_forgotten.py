"""A fake child that its test forgets."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor.process import Launch
from supervisor.testing import FakeChild

if TYPE_CHECKING:
    from conftest import Listener


@pytest.mark.parametrize("module", ["asyncio", "uvloop"])
def test_a_child_that_is_never_released_says_so_and_closes_its_descriptors(listener: Listener, module: str) -> None:
    """A ResourceWarning names it once its loop is gone; nothing stays open."""
    factory = pytest.importorskip(module).new_event_loop

    def forget() -> None:
        child = FakeChild()
        with closing(factory()) as loop:
            transport = loop.run_until_complete(child.spawn(listener, Launch(("played",), stdin="pipe")))
            transport.readers[1].resume_reading()
            loop.run_until_complete(child.feed(b"x"))
            child.close("stderr")

    def play() -> None:
        forget()
        gc.collect()

    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.warns(ResourceWarning, match=r"FakeChild .* never released"):
        play()
    gc.collect()
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_a_child_that_is_never_started_says_nothing() -> None:
    """It has nothing open, and a script that was not needed is no mistake."""
    child = FakeChild()
    child.close("stdout")
    child.exit(0)
    del child
    gc.collect()


@pytest.mark.asyncio
async def test_a_released_child_says_nothing(listener: Listener) -> None:
    """Whether it ended or not: `close` kills what still runs."""
    child = FakeChild()
    transport = await child.spawn(listener, Launch(("played",)))
    transport.close()
    async with asyncio.timeout(10):
        await listener.gone.wait()
    assert child.signals == [9]
    del child, transport
    gc.collect()
