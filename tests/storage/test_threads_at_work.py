"""Which threads of storage are in a call: what a clock that is moved by hand has to wait for."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

import pytest

from supervisor.storage import Writers, threads_at_work

PATIENCE: Final = 20.0
"""Seconds after which a test gives up."""


@pytest.mark.asyncio
async def test_a_thread_is_at_work_until_its_loop_was_told() -> None:
    """Its ident while it makes a call, None for a call that is queued, nothing once both are over."""
    writers, entered, released = Writers(threads=1), threading.Event(), threading.Event()

    def hang() -> bool:
        entered.set()
        return released.wait(PATIENCE)

    first, second = writers.submit(hang), writers.submit(threading.get_ident)
    assert await asyncio.to_thread(entered.wait, PATIENCE)
    at_work = threads_at_work()
    released.set()
    ident = await asyncio.wrap_future(second)
    assert first.result()
    assert at_work == {ident, None}
    await writers.close()
    assert threads_at_work() == frozenset()


@pytest.mark.asyncio
async def test_a_cancelled_call_and_one_that_fails_are_not_at_work() -> None:
    """They leave nothing that would hold time up."""
    writers, entered, released = Writers(threads=1), threading.Event(), threading.Event()

    def fail() -> None:
        entered.set()
        assert not released.wait(PATIENCE)

    failing, cancelled = writers.submit(fail), writers.submit(threading.get_ident)
    assert await asyncio.to_thread(entered.wait, PATIENCE)
    assert cancelled.cancel()
    released.set()
    with pytest.raises(AssertionError):
        await asyncio.wrap_future(failing)
    await writers.close()
    assert threads_at_work() == frozenset()
