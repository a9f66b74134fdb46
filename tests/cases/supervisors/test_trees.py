"""Ending a job ends all of its tree, nobody else, and says what it could not end (F3)."""

# ruff: noqa: ASYNC222, ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Receipt, Supervisor
from supervisor.process import proc
from supervisor.sansio import lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Conversation

LONG: Final = 60.0
"""Seconds that no test waits for: a test that passes did not go by this clock."""


def group_members(leader: int) -> tuple[int, ...]:
    """Return the pids of a group's live members, looked up without the product's own judgement."""
    found = map(proc.process, (int(path.name) for path in Path("/proc").glob("[0-9]*")))
    return tuple(process.pid for process in found if process and process.alive and process.group == leader)


def ending(receipt: Receipt) -> tuple[str, int | None, str | None]:
    """Return state, signal and reason."""
    assert receipt.process is not None
    return receipt.process.state, receipt.process.signal, receipt.process.reason


@pytest.mark.asyncio
async def test_h5_013_a_sibling_that_ignores_term_does_not_hide_behind_its_leader(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """H5-013 (Supervisor/supervisor#1101): the leader obeyed, so nobody sent KILL, and the sibling lived on."""
    script = "sh -c 'trap : TERM; echo ready; while :; do sleep 0.05; done' & exec sleep 60"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script], kill_after=0.3, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
        assert job.pid is not None
        assert group_members(job.pid) == ()
    assert ending(receipt) == ("cancelled", signal.SIGTERM, "caller")
    assert receipt.process is not None
    assert (receipt.process.forced, receipt.process.kill_confirmed, receipt.process.survivors) == (True, True, ())


@pytest.mark.asyncio
async def test_h5_015_a_member_that_cleans_up_keeps_its_grace_when_the_leader_is_gone(
    conversation: Conversation, first_text: Callable[..., Any], tmp_path: Path
) -> None:
    """H5-015 (systemd/systemd#8122): with the main process gone, the others got KILL in the middle of their work."""
    cleaned = tmp_path / "cleaned"
    member = f"trap 'sleep 0.3; : > {cleaned}; exit' TERM; echo ready; while :; do sleep 0.05; done"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            ["sh", "-c", '(eval "$0") & exec sleep 60', member], kill_after=LONG, window_bytes=1024
        )
        await first_text(job)
        receipt = await job.terminate()
    assert cleaned.exists()
    assert ending(receipt) == ("cancelled", signal.SIGTERM, "caller")
    assert receipt.process is not None
    assert (receipt.process.forced, receipt.process.survivors) == (False, ())


@pytest.mark.asyncio
async def test_h5_016_a_cancelled_pipeline_ends_with_every_member(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """H5-016 (python-trio/trio#3237): only the shell was killed, and `ping | cat` went on after the program."""
    async with Supervisor(conversation.path) as supervisor:
        run = asyncio.create_task(
            supervisor.run("(echo ready; exec sleep 60) | cat; true", shell=True, window_bytes=1024)
        )
        await asyncio.sleep(0)
        (job,) = supervisor.jobs
        await first_text(job)
        assert job.pid is not None
        assert len(group_members(job.pid)) >= 3
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert group_members(job.pid) == ()
    assert ending(job.receipt) == ("cancelled", signal.SIGTERM, "caller")


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare(1)")
def test_h5_018_a_process_that_got_the_leaders_pid_is_left_alone(
    conversation: Conversation, host_program: Callable[..., list[str]], loop_module: str
) -> None:
    """H5-018 (psmux/psmux#447): a remembered pid was given to somebody else, who then was killed.

    In a pid namespace of its own the host reaps the leader behind our back, while the drain window is open, and
    starts an innocent process that gets the same pid and leads a group of it.
    """
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no pid namespace can be made here")
    command = host_program("reused_pid", loop_module, str(conversation.path))
    done = subprocess.run([*namespace, *command], check=False, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    assert seen["reused"]
    assert (seen["state"], seen["code"]) == ("exited", 3)
    assert seen["innocent"] == 0


@pytest.mark.asyncio
async def test_h5_021_a_kill_that_is_not_permitted_is_an_outcome(
    conversation: Conversation, first_text: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """H5-021 (python-trio/trio#1209): `kill` failed with EPERM, and the library waited for ever, or said "dead"."""
    monkeypatch.setattr(lifecycle, "CONFIRM_SECONDS", 0.2)

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            ["sh", "-c", "echo ready; exec sleep 60"], kill_after=0.1, drain_timeout=0.1, window_bytes=1024
        )
        await first_text(job)
        assert job.pid is not None
        with monkeypatch.context() as patch:
            patch.setattr(os, "killpg", refuse)
            receipt = await job.terminate()
    os.kill(job.pid, signal.SIGKILL)
    os.waitpid(job.pid, 0)
    assert ending(receipt) == ("cancelled", None, "caller")
    assert receipt.process is not None
    assert (receipt.process.code, receipt.process.kill_confirmed) == (None, False)
    assert receipt.process.survivors == (job.pid,)
    assert conversation.text(receipt) == b"ready\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("by", ["terminate", "exit"])
async def test_h5_014_a_main_process_that_exits_in_its_grace_does_not_save_the_others(
    conversation: Conversation, first_text: Callable[..., Any], by: str
) -> None:
    """H5-014 (systemd/systemd#14566): KillMode=mixed left the KILL out when the main process had exited in time."""
    script = (
        "setsid sh -c 'trap : TERM; echo $$; while :; do sleep 0.05; done' </dev/null & "
        "trap 'exit 0' TERM; read line; exit 0"
    )
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            ["bash", "-c", script], stdin=PIPE, kill_after=0.3, on_exit="end", window_bytes=1024
        )
        other = int(await first_text(job))
        if by == "exit":
            await job.write_eof()
        receipt = await (job.wait() if by == "exit" else job.terminate())
        found = proc.process(other)
        assert found is None or not found.alive
    assert ending(receipt) == (("exited", None, None) if by == "exit" else ("cancelled", None, "caller"))
    assert receipt.process is not None
    assert (receipt.process.code, receipt.process.forced, receipt.process.survivors) == (0, True, ())


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Return a cgroup whose frozen members nothing can kill: of version 1, in version 2 a KILL thaws."""
    place = Path("/sys/fs/cgroup/freezer/spoolvisor-test")
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no freezer of cgroup v1 to be had: {error}")
    yield place
    (place / "freezer.state").write_text("THAWED")
    while (place / "cgroup.procs").read_text():
        time.sleep(0.001)
    place.rmdir()


@pytest.mark.asyncio
async def test_h5_020_a_child_that_cannot_be_killed_is_an_outcome_and_is_reaped_when_it_dies(
    conversation: Conversation,
    first_text: Callable[..., Any],
    until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    freezer: Path,
) -> None:
    """H5-020 (systemd/systemd#13288): a process in state D made the stop hang, or was restarted on top of."""
    monkeypatch.setattr(lifecycle, "CONFIRM_SECONDS", 0.2)
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            ["sh", "-c", "echo ready; exec sleep 60"], kill_after=0.1, drain_timeout=0.1, window_bytes=1024
        )
        await first_text(job)
        (freezer / "cgroup.procs").write_text(str(job.pid))
        (freezer / "freezer.state").write_text("FROZEN")
        await until(lambda: (freezer / "freezer.state").read_text() == "FROZEN\n")
        receipt = await job.terminate()
        assert ending(receipt) == ("cancelled", None, "caller")
        assert receipt.process is not None
        assert (receipt.process.forced, receipt.process.kill_confirmed) == (True, False)
        assert receipt.process.survivors == (job.pid,)
        assert Path(f"/proc/{job.pid}").exists()
        (freezer / "freezer.state").write_text("THAWED")
        await until(lambda: "State:\tZ" in Path(f"/proc/{job.pid}/status").read_text())
        await supervisor.run(["true"])
        assert not Path(f"/proc/{job.pid}").exists()
