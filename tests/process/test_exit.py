"""The exit seen, the zombie held, the status told or lost (contract A2, F1, F3)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor.process import Usage
from supervisor.process.status import PidfdWatch
from supervisor.sansio.exits import Exited, Lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Start

pytestmark = pytest.mark.asyncio


def reap(pid: int) -> None:
    """Take the status away, as another part of the host may."""
    os.waitpid(pid, 0)


def state(pid: int) -> str | None:
    """The state letter of a process, None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return None


async def test_the_zombie_is_held_until_release(start_both: Start) -> None:
    """The pid stays taken while the pipes drain, so that no signal of ours can reach a stranger (H5-018)."""
    child, heard = await start_both("true")
    await heard.heard("exited")
    assert state(child.get_pid()) == "Z"
    child.release()
    assert state(child.get_pid()) is None


async def test_usage_is_what_the_child_used(start: Start) -> None:
    """Its time is counted at the reap; memory below the host's own peak is unknown, never the host's."""
    child, heard = await start(sys.executable, "-S", "-c", "sum(range(10**6)); x = b'x' * (400 << 20)")
    await heard.heard("exited")
    assert child.usage is None
    child.release()
    assert child.usage is not None
    assert child.usage.cpu > 0.01
    assert child.usage.max_rss is not None
    assert 400 << 20 < child.usage.max_rss < 600 << 20
    small, heard = await start("true")
    await heard.heard("exited")
    small.release()
    assert isinstance(small.usage, Usage)
    assert small.usage.max_rss is None


async def test_foreign_reaper_does_not_invent_a_code(start: Start) -> None:
    """The kernel's file on the pidfd tells the truth, or the status is lost: never 255, never 0 (H5-028)."""
    child, heard = await start("sh", "-c", "read x; exit 9", stdin="pipe")
    assert child.stdin is not None
    child.stdin.write(b"\n")
    reap(child.get_pid())  # another part of the host, quicker than the loop
    await heard.heard("exited")
    assert child.exit in {Exited(9), Lost()}
    if os.uname().release.split(".")[0] >= "7" or os.uname().release.startswith("6.18"):
        assert child.exit == Exited(9)
    child.release()
    assert child.usage is None


async def test_foreign_reaper_between_exit_and_release_is_tolerated(start: Start) -> None:
    """The exit is known; the reap finds nothing and the group's id is not trusted any more."""
    child, heard = await start("sh", "-c", "exit 2")
    await heard.heard("exited")
    reap(child.get_pid())
    assert not child.signal_group(signal.SIGTERM)
    assert child.group_members() == ()
    child.release()
    await heard.heard(("gone", None))
    assert child.exit == Exited(2)
    assert child.usage is None


@pytest.mark.parametrize("command", ["exit 9", "read x; exit 9"])
async def test_ignored_sigchld_gives_the_real_code_or_none(start: Start, command: str) -> None:
    """The kernel reaps at once then, also before a pidfd can be had; "exited 255" is never invented (BUG-077)."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        child, heard = await start("sh", "-c", command)
        await heard.heard("exited")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert child.exit in {Exited(9), Lost()}
    assert child.get_returncode() in {9, None}


async def test_status_that_nobody_filed_is_lost(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.15 a foreign reap leaves nothing: the exit is told as lost, after a bounded wait."""
    monkeypatch.setattr("supervisor.process.status.filed_status", lambda _pidfd: None)
    child, heard = await start("sh", "-c", "read x", stdin="pipe")
    assert child.stdin is not None
    child.stdin.write_eof()
    reap(child.get_pid())
    await heard.heard("exited")
    assert child.exit == Lost()
    assert child.get_returncode() is None


async def test_abandoned_child_leaves_only_its_process(start: Start, program: Callable[..., tuple[str, ...]]) -> None:
    """For a child that no signal can end: descriptors and watch are given back, connection_lost is told."""
    child, heard = await start(*program("stubborn"))
    await heard.line()
    child.abandon()
    await heard.heard(("gone", None))
    assert "exited" not in heard.events
    assert child.exit is None
    os.kill(child.get_pid(), signal.SIGKILL)
    reap(child.get_pid())
    heard.events.append("exited")  # what the fixture looks for in all other tests


async def test_group_is_untouched_when_its_number_was_given_away(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the leader reaped by somebody and its pid in use again, nothing is sent and nobody is listed."""
    monkeypatch.setattr(PidfdWatch, "held", lambda _self: False)
    child, heard = await start("true")
    await heard.heard("exited")
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: sent.append(pid))
    assert not child.signal_group(signal.SIGTERM)  # the zombie stands for the stranger
    assert child.group_members() == ()
    assert sent == []
    monkeypatch.undo()


async def test_traced_zombie_is_waited_for_without_spinning(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead child that a debugger still holds is not to be had yet: asked again by a timer, then told."""
    real = os.waitid
    answers = [None, None, None]
    monkeypatch.setattr(os, "waitid", lambda *arguments: answers.pop() if answers else real(*arguments))
    child, heard = await start("sh", "-c", "exit 8")
    await heard.heard("exited")
    assert answers == []
    assert child.exit == Exited(8)
