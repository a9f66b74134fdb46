"""Supervisors are open while a job of their directory lives, and no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapters.blocking import BlockingSupervisor
from adapters.gptme import owners
from supervisor import SupervisorClosed

if TYPE_CHECKING:
    from pathlib import Path


def test_one_supervisor_serves_all_jobs_of_a_directory(tmp_path: Path) -> None:
    """It closes with the last of them; another directory has another one."""
    known = owners.Owners()
    first = known.take(tmp_path)
    assert known.take(tmp_path) is first
    other = known.take(None)
    assert other is not first
    known.give_back(tmp_path, first)
    first.start(["true"]).wait(30)
    known.give_back(tmp_path, first)
    assert known.directories == (None,)
    with pytest.raises(SupervisorClosed):
        first.start(["true"])
    known.give_back(None, other)
    known.give_back(None, other)  # one time too often
    assert known.directories == ()


def test_a_closed_supervisor_is_replaced(tmp_path: Path) -> None:
    """The interpreter's exit may have closed it, or a fork may have lost it."""
    known = owners.Owners()
    first = known.take(tmp_path)
    first.close()
    second = known.take(tmp_path)
    assert second is not first
    known.give_back(tmp_path, first)  # its job ends late; the new one is not touched
    second.start(["true"]).wait(30)
    known.give_back(tmp_path, second)


def test_a_directory_that_does_not_answer_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs, and its receipt says `no-directory`."""
    opened = BlockingSupervisor.open

    def late(self: BlockingSupervisor, timeout: float | None = None) -> BlockingSupervisor:
        if timeout is not None:
            raise TimeoutError
        return opened(self)

    monkeypatch.setattr(BlockingSupervisor, "open", late)
    known = owners.Owners()
    supervisor = known.take(tmp_path)
    assert supervisor.start(["true"]).wait(30).capture.reason == "no-directory"
    known.give_back(tmp_path, supervisor)
