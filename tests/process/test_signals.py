"""A signal to exactly one process (contract F3)."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from supervisor.process import proc, signals
from supervisor.sansio.membership import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that runs until it is signalled."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def identity(process: subprocess.Popen[bytes]) -> Identity:
    """Return its pid with its start."""
    found = proc.process(process.pid)
    assert found is not None
    return found.identity


@pytest.mark.parametrize("by_pidfd", [True, False])
def test_the_process_that_is_meant_takes_it(
    victim: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    by_pidfd: bool,  # noqa: FBT001
) -> None:
    """With a pidfd, and where there is no such call; afterwards there is nobody to take it."""
    if not by_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    target = identity(victim)
    assert signals.send(target, signal.SIGTERM)
    assert victim.wait() == -signal.SIGTERM
    assert not signals.send(target, signal.SIGTERM)


@pytest.mark.parametrize("by_pidfd", [True, False])
def test_another_process_under_the_same_pid_is_not_touched(
    victim: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    by_pidfd: bool,  # noqa: FBT001
) -> None:
    """The pid was given away since it was seen (field report H5-018)."""
    if not by_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    pid, start = identity(victim)
    assert not signals.send(Identity(pid, start - 1), signal.SIGKILL)
    assert victim.poll() is None


def test_a_pid_that_changes_hands_at_the_last_moment_gets_nothing(
    victim: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pidfd is of the process that was compared: it ended, and whoever has its number now is another one."""
    target = identity(victim)
    found = proc.process(victim.pid)

    def compare(*_: object) -> object:
        victim.kill()
        victim.wait()
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("signalled by number"))
        return found

    monkeypatch.setattr(signals, "process", compare)
    assert not signals.send(target, signal.SIGKILL)


def test_what_may_not_be_signalled_is_not(victim: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's process: an outcome, not an exception."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    assert not signals.send(identity(victim), signal.SIGTERM)
    assert victim.poll() is None
