"""Orphans that come to the host because it asked for them (contract F3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.process import proc, subreaper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl(2) is Linux's")
UNMARKED = ("session", "orphan", "clean", "closed")
"""What leaves neither group nor parent, neither variable nor pipe to be known by."""


def hosted(command: tuple[str, ...]) -> dict[str, Any]:
    """Return what a host that adopts orphans says of its command."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("how", ["cancel", "end"])
def test_an_orphan_without_any_mark_ends_with_its_command(
    program: Callable[..., tuple[str, ...]], host_program: Callable[..., tuple[str, ...]], how: str
) -> None:
    """It could shed everything but who adopts it; that it ignores TERM helps it no more."""
    more = ("stay",) if how == "cancel" else ()
    told = hosted(host_program("adopting_host", how, *program("escape", *UNMARKED, "stubborn", *more)))
    pid = int(told["stdout"])
    assert told["adopted"]
    assert (told["survivors"], told["confirmed"], told["limitations"]) == ([], True, [])
    assert set(told["left"].values()) <= {"Z"}
    found = proc.process(pid)
    assert found is None or not found.alive


def test_an_orphan_that_is_left_is_named(
    program: Callable[..., tuple[str, ...]], host_program: Callable[..., tuple[str, ...]]
) -> None:
    """It outlives the host as well."""
    told = hosted(host_program("adopting_host", "leave", *program("escape", *UNMARKED)))
    pid = int(told["stdout"])
    os.kill(pid, signal.SIGKILL)
    assert (told["survivors"], told["left"]) == ([pid], {str(pid): "S"})


def test_a_host_that_did_not_ask_adopts_nobody() -> None:
    """It is state of the whole process, and this one has children of its own."""
    assert subreaper.adopter() is None


@pytest.fixture
def kill_later() -> Iterator[list[int]]:
    """Kill these children when the test is over, whatever it has shown."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_only_orphans_that_were_there_before_are_reaped(monkeypatch: pytest.MonkeyPatch, kill_later: list[int]) -> None:
    """A child that is just being started is no orphan, and a leader never is; the living are not waited for."""
    now = [100.0]
    monkeypatch.setattr(subreaper.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(subreaper, "_seen", {})
    dead, leader, living = pids = [
        os.posix_spawn(sys.executable, [sys.executable, "-S", "-E", "-c", code], os.environ)
        for code in ("pass", "pass", "import signal; signal.pause()")
    ]
    kill_later.append(living)
    for pid in (dead, leader):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    strangers = (proc.children(os.getpid()) or frozenset()) - set(pids)
    subreaper.reap({leader, *strangers})
    assert {dead, leader, living} <= (proc.children(os.getpid()) or set())
    now[0] += subreaper.SETTLED_SECONDS
    subreaper.reap({leader, *strangers})
    assert {dead, leader, living} & (proc.children(os.getpid()) or set()) == {leader, living}
    os.kill(living, signal.SIGKILL)
    os.waitid(os.P_PID, living, os.WEXITED | os.WNOWAIT)
    subreaper.reap({leader, *strangers})
    assert subreaper._seen.keys() == {living}  # nothing is remembered of those that are gone
    subreaper.reap({leader, *strangers})
    assert subreaper._seen == {}
    with suppress(ChildProcessError):
        os.waitpid(leader, 0)


def test_a_child_that_somebody_else_reaped_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host may have children and wait for them, against our advice."""
    monkeypatch.setattr(subreaper, "children", lambda _pid: frozenset({2**22 + 1}))
    monkeypatch.setattr(subreaper, "_seen", {2**22 + 1: 0.0})
    subreaper.reap(())


def test_without_prctl_nobody_is_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library of another system."""
    monkeypatch.setattr(subreaper.ctypes, "CDLL", lambda _name: object())
    assert not subreaper.adopt_orphans()
    assert subreaper.adopter() is None
