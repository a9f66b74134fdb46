"""Waking an idle server: once, again if it was busy, never twice, and the end of jobs whose conversation was closed."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("gptme", reason="gptme is not installed")

from adapters.gptme import names, waking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Deliver = Callable[[], list[Any]]
    Until = Callable[[Callable[[], object]], None]


class Manager:
    """A session manager that is busy for so many requests, and keeps what it was woken with."""

    def __init__(self) -> None:
        self.busy = 0
        self.fails = False
        self.asked = 0
        self.looked = 0
        self.sessions: list[object] = [object()]
        self.kept: list[tuple[str, Any, str]] = []

    def get_sessions_for_conversation(self, conversation_id: str) -> list[object]:
        """Return what the test says."""
        assert conversation_id
        self.looked += 1
        return self.sessions

    def request_watch_wake(self, conversation_id: str, message: object, *, branch: str = "main") -> bool:
        """Refuse while busy."""
        self.asked += 1
        if self.fails:
            self.fails = False
            raise OSError("the server's disk")
        if self.asked <= self.busy:
            return False
        self.kept.append((conversation_id, message, branch))
        return True


def is_watching() -> bool:
    """Return whether the waker's thread runs."""
    return any(thread.name == "spoolvisor-waker" for thread in threading.enumerate())


@pytest.fixture
def manager(background: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Manager:
    """Have a server in this process."""
    assert background
    server = ModuleType(names.SERVER)
    server.SessionManager = Manager()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, names.SERVER, server)
    monkeypatch.setattr(waking, "SOON", 0.01)
    monkeypatch.setattr(waking, "LATER", 0.05)
    return server.SessionManager


def test_an_idle_server_is_woken_once(
    background: ModuleType, conversation: Path, manager: Manager, until: Until
) -> None:
    """It gets the message with the receipt; the hook has nothing more to deliver."""
    assert conversation
    job = background.start_background_job("echo done")
    until(lambda: manager.kept)
    ((conversation_id, message, branch),) = manager.kept
    assert (conversation_id, message, branch) == ("talk", job.completion, "main")
    assert list(background.background_job_completion_hook(object())) == []
    until(lambda: not is_watching())
    assert manager.asked == 1


def test_a_busy_server_is_asked_again(
    background: ModuleType, conversation: Path, manager: Manager, until: Until
) -> None:
    """Until it is idle; an error of the server's counts as busy."""
    assert conversation
    manager.busy, manager.fails = 4, True
    background.start_background_job("echo done")
    until(lambda: manager.kept)
    assert manager.asked == 5


def test_a_step_of_a_busy_server_takes_it(
    background: ModuleType, conversation: Path, manager: Manager, until: Until
) -> None:
    """Whoever is first delivers; the other one does not."""
    assert conversation
    manager.busy = 1_000_000
    background.start_background_job("echo done")
    until(lambda: manager.asked)
    messages: list[Any] = []

    def taken() -> bool:  # a step may come while the server is being asked, and then finds nothing
        messages.extend(background.background_job_completion_hook(object()))
        return bool(messages)

    until(taken)
    manager.busy = 0
    until(lambda: not is_watching())
    assert (len(messages), manager.kept) == (1, [])


def test_the_jobs_of_a_closed_conversation_are_ended(
    background: ModuleType, conversation: Path, manager: Manager, until: Until
) -> None:
    """The thread that removes a server's last session may hold no hooks, so nothing relies on one."""
    assert conversation
    job = background.start_background_job("sleep 60")
    until(lambda: job.had_session)
    manager.sessions = []
    until(lambda: not job.is_running())
    assert background.list_background_jobs() == []
    assert manager.asked == 0


def test_a_job_that_no_session_has_seen_is_left_alone(
    background: ModuleType, conversation: Path, manager: Manager, until: Until
) -> None:
    """A conversation that never had a session has not lost one, and its completion stays where its hook looks."""
    assert conversation
    manager.sessions = []
    job = background.start_background_job("echo done")
    until(lambda: job.ended)
    until(lambda: not is_watching() or manager.looked > 20)
    assert background.list_background_jobs() == [job]
    assert is_watching()
    assert len(list(background.background_job_completion_hook(object()))) == 1
    until(lambda: not is_watching())
    assert manager.asked == 0


def test_a_server_that_is_not_as_expected_is_not_asked(
    background: ModuleType,
    conversation: Path,
    monkeypatch: pytest.MonkeyPatch,
    deliver: Deliver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line says so, and the hook still delivers."""
    assert conversation
    server = ModuleType(names.SERVER)
    monkeypatch.setitem(sys.modules, names.SERVER, server)
    waker = waking.Waker()
    job = background.start_background_job("echo done")
    caplog.clear()
    waker.watch(job)
    waker.watch(job)
    assert [record.getMessage() for record in caplog.records] == [
        "spoolvisor wakes no idle server: SessionManager.request_watch_wake is not as expected"
    ]
    assert len(deliver()) == 1
