"""Children that were given up are reaped once they have died, and nobody else is (contract F3, F10)."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from supervisor.process import given_up, proc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> dict[int, object]:
    """Return what is remembered: nothing yet."""
    remembered: dict[int, object] = {}
    monkeypatch.setattr(given_up, "_left", remembered)
    return remembered


@pytest.fixture
def child() -> Iterator[Callable[[], int]]:
    """Return a function that starts a child which only a signal ends."""
    pids: list[int] = []

    def start() -> int:
        pids.append(os.posix_spawn("/bin/sleep", ["sleep", "300"], os.environ))
        return pids[-1]

    yield start
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def die(pid: int) -> None:
    """Kill a child and return when it is a zombie."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_one_that_died_later_is_reaped(child: Callable[[], int], left: dict[int, object]) -> None:
    """While it lives nothing is done, and nobody waits."""
    dead, living = child(), child()
    for pid in (dead, living):
        given_up.remember(pid)
    given_up.reap()
    assert left.keys() == {dead, living}
    die(dead)
    given_up.reap()
    assert proc.process(dead) is None
    assert left.keys() == {living}


def test_a_later_child_of_the_same_pid_keeps_its_status(child: Callable[[], int], left: dict[int, object]) -> None:
    """The host reaped the one that was given up, and started another, which is not ours to wait for."""
    pid, other = child(), child()
    given_up.remember(other)
    left[pid] = left.pop(other)  # what was remembered is of another start time, or of another pid
    die(pid)
    given_up.reap()
    assert os.waitpid(pid, os.WNOHANG)[0] == pid
    assert left == {}


def test_one_that_is_gone_is_forgotten(child: Callable[[], int], left: dict[int, object]) -> None:
    """The host has reaped it; and one that nobody can see is not remembered at all."""
    pid = child()
    given_up.remember(pid)
    die(pid)
    os.waitpid(pid, 0)
    given_up.reap()
    given_up.remember(pid)
    assert left == {}


def test_in_a_fork_of_the_host_there_is_nothing_to_reap(
    child: Callable[[], int], left: dict[int, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the zombie is not a child of the process that looks."""
    pid = child()
    given_up.remember(pid)
    die(pid)

    def refuse(*_: object) -> None:
        raise ChildProcessError

    with monkeypatch.context() as patch:
        patch.setattr(os, "waitpid", refuse)
        given_up.reap()
    assert left == {}
