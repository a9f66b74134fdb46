"""The threads that start processes: as few as serve (contract D8 in spirit)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from supervisor.process import spawner

if TYPE_CHECKING:
    import pytest


def test_a_long_queue_that_moves_gets_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand starts at once would have sixteen threads take turns with the loop; a stuck one is relieved."""
    ours = spawner.Spawner()
    begun, done = threading.Semaphore(0), threading.Semaphore(0)

    def work() -> None:
        begun.release()
        assert done.acquire(timeout=30)

    for _ in range(3):
        ours.submit(work)
    assert begun.acquire(timeout=30)
    now = ours._taken_at
    monkeypatch.setattr(spawner.time, "monotonic", lambda: now + spawner.STUCK_AFTER - 0.1)
    ours.relieve()
    assert ours._threads == 1
    monkeypatch.setattr(spawner.time, "monotonic", lambda: now + spawner.STUCK_AFTER)
    ours.relieve()
    assert begun.acquire(timeout=30)
    assert ours._threads == 2
    for _ in range(3):
        done.release()
