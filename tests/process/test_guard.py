"""The guard of a supervisor, and what its program makes of what it is told (contract F10)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

import pytest

from supervisor import Supervisor
from supervisor.process import Guard, guard, guarding, leaving, proc, tree
from supervisor.process.guarding import LONGEST_GRACE, Ward, Wards
from supervisor.sansio.membership import VARIABLE, Identity


def test_what_is_told_in_pieces_is_understood() -> None:
    """Whole lines only; a leader of a command that was forgotten is nobody's."""
    wards = Wards()
    wards.feed(b"expect a 5.0\nexpect b inf\nstarted a 12 3")
    assert wards.by_mark == {"a": Ward(5.0), "b": Ward(LONGEST_GRACE)}
    wards.feed(b"4\nforget b\nstarted b 1 1\nforget c\nsomething else\n")
    assert wards.by_mark == {"a": Ward(5.0, Identity(12, 34))}


def test_a_command_that_was_being_started_is_found_by_its_mark() -> None:
    """The host was killed before it could say which process it is."""
    process = subprocess.Popen(["sleep", "1000"], env={VARIABLE: "outer:0123456789abcdef"}, start_new_session=True)
    while not proc.marked(process.pid, "0123456789abcdef"):
        pass
    wards = Wards()
    wards.feed(b"expect 0123456789abcdef 5.0\n")
    guarding.end(wards)
    assert process.wait() == -signal.SIGTERM


def test_a_command_that_never_was_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start had failed, or it had ended."""
    monkeypatch.setattr(guarding, "SEARCHES", 1)
    wards = Wards()
    wards.feed(b"expect fedcba9876543210 5.0\n")
    guarding.end(wards)


def test_who_has_the_leaders_pid_by_now_is_left_alone() -> None:
    """It started at another moment; its group is its own."""
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    found = proc.process(process.pid)
    assert found is not None
    wards = Wards()
    wards.feed(
        f"expect fedcba9876543210 0.0\nstarted fedcba9876543210 {process.pid} {found.identity.start - 1}\n".encode()
    )
    guarding.end(wards)
    assert process.poll() is None
    process.kill()
    process.wait()


@pytest.mark.asyncio
async def test_a_guard_is_nobodys_member_and_no_command_has_its_pipe() -> None:
    """It is reaped when its supervisor closes."""
    async with Supervisor(guard=True) as supervisor:
        (pid,) = guard.GUARDS
        pipe = os.readlink(f"/proc/{pid}/fd/0")  # noqa: PTH115 - a name of the kernel's, no path
        receipt = await supervisor.run("ls -l /proc/self/fd", shell=True)
        assert pipe not in receipt.stdout
        assert receipt.check().limitations == ()
        assert (receipt.process and receipt.process.survivors) == ()
    assert not guard.GUARDS
    assert proc.process(pid) is None


@pytest.mark.asyncio
async def test_a_guard_is_no_orphan_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where orphans are adopted, every other child of the host counts as one."""
    async with Supervisor(guard=True) as supervisor:
        (pid,) = guard.GUARDS
        job = await supervisor.start(["sleep", "1000"])
        assert job.pid is not None
        with monkeypatch.context() as patch:
            patch.setattr(tree.subreaper, "adopter", os.getpid)
            adopted = tree.Tree(job.pid, "none", lambda: True, leader=Identity(job.pid, 0)).members()
        assert adopted is not None
        assert job.pid in adopted
        assert pid not in adopted
        await job.terminate()


@pytest.mark.asyncio
async def test_where_there_can_be_no_guard_each_receipt_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an interpreter to be found, or a thread to start it; the commands run."""
    monkeypatch.setattr(guard.sys, "executable", "")
    async with Supervisor(guard=True) as supervisor:
        receipt = await supervisor.run(["true"])
        assert receipt.check().limitations == ("no-guard",)
        assert "its host is killed" in receipt.render()
    monkeypatch.undo()

    async def no_room(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(guard, "start_on_thread", no_room)
    async with Supervisor(guard=True) as supervisor:
        assert (await supervisor.run(["true"])).limitations == ("no-guard",)


@pytest.mark.asyncio
async def test_closing_takes_a_guard_that_is_stopped() -> None:
    """It has nothing to lose; and it may be closed twice, or never have been started."""
    made = Guard(lambda: None)
    await made.close()
    assert made.pid is None
    assert await made.start()
    assert made.pid is not None
    os.kill(made.pid, signal.SIGSTOP)
    async with asyncio.timeout(30):
        await made.close()
    await made.close()


@pytest.mark.asyncio
async def test_at_the_interpreters_end_only_ones_own_commands_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork of the host runs the same code, and has none."""
    async with Supervisor() as supervisor:
        job = await supervisor.start(["sleep", "1000"])
        with monkeypatch.context() as patch:
            patch.setattr(leaving.os, "getpid", lambda: 1)
            leaving.kill_what_lives()
        found = proc.process(job.pid or 0)
        assert found is not None
        assert found.alive
        leaving.kill_what_lives()
        receipt = await job.wait()
        assert receipt.process is not None
        assert receipt.process.signal == signal.SIGKILL
    assert leaving.LIVE == {}
