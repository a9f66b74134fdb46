"""`wait`: the end of a command that runs somewhere else, told by the files."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor import Receipt
from supervisor.cli.codes import code_of_settled
from supervisor.sansio.receipt import CaptureFacts, ProcessFacts

if TYPE_CHECKING:
    import subprocess

    from conftest import CommandLine

SCRIPT = "trap 'exit 3' USR1; echo $$; while :; do sleep 0.01; done"
PATIENCE = 60.0


def watches(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has an inotify instance: it follows a capture (proc(5), `/proc/pid/fd`)."""
    links = Path(f"/proc/{process.pid}/fd")
    found = []
    for link in links.iterdir():
        try:
            found.append(str(link.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    return any("inotify" in target for target in found)


def until_it_waits(process: subprocess.Popen[bytes]) -> None:
    """Return once the process waits for a capture's end."""
    deadline = time.monotonic() + PATIENCE
    while not watches(process):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_ends_with_the_command_and_has_its_code(spoolvisor: CommandLine) -> None:
    """It waits while the command runs; Ctrl-C ends a wait and leaves command and other waits alone [F5]."""
    run = spoolvisor.start("run", "--json", "--", "sh", "-c", SCRIPT)
    pid = int(run.stderr.readline())
    capture_id = spoolvisor.captures()[0].name
    impatient, waiting = spoolvisor.start("wait", capture_id), spoolvisor.start("wait", "--json", capture_id)
    until_it_waits(impatient)
    until_it_waits(waiting)
    impatient.send_signal(signal.SIGINT)
    ended = spoolvisor.finish(impatient)
    assert (ended.code, ended.out, ended.err) == (130, "", "")
    os.kill(pid, signal.SIGUSR1)
    ran, done = spoolvisor.finish(run), spoolvisor.finish(waiting)
    assert (ran.code, done.code, done.err) == (3, 3, "")
    assert done.out == ran.out


def test_of_an_ended_command_it_tells_at_once(spoolvisor: CommandLine) -> None:
    """Rendered on stderr, unless quiet."""
    ran = spoolvisor("run", "--", "sh", "-c", "kill -9 $$")
    capture_id = spoolvisor.captures()[0].name
    done = spoolvisor("wait", capture_id)
    assert (ran.code, done.code, done.out) == (137, 137, "")
    assert done.err == ran.err
    done = spoolvisor("wait", "-q", capture_id)
    assert (done.code, done.out, done.err) == (137, "", "")


def test_a_supervisor_that_dies_ends_the_wait(spoolvisor: CommandLine) -> None:
    """Nobody saw how the command ended: that is not the command's code [D6]."""
    run = spoolvisor.start("run", "--", "sh", "-c", "echo $$; exec sleep 1000")
    pid = int(run.stdout.readline())
    waiting = spoolvisor.start("wait", spoolvisor.captures()[0].name)
    until_it_waits(waiting)
    run.kill()
    run.wait()
    done = spoolvisor.finish(waiting)
    os.kill(pid, signal.SIGKILL)
    assert done.code == 125
    assert "capture partial, supervisor-lost" in done.err


@pytest.mark.parametrize(
    ("process", "code"),
    [
        (None, 0),
        (ProcessFacts(state="exited", code=7), 7),
        (ProcessFacts(state="exited", signal=11), 139),
        (ProcessFacts(state="timeout", code=0, reason="time-limit"), 124),
        (ProcessFacts(state="cancelled", code=0, reason="caller"), 130),
        (ProcessFacts(state="cancelled", signal=9, reason="supervisor-shutdown"), 143),
        (ProcessFacts(state="cancelled", signal=9, reason="memory"), 137),
        (ProcessFacts(state="unknown", reason="status-lost"), 125),
    ],
    ids=str,
)
def test_a_receipt_alone_gives_the_code_of_its_run(process: ProcessFacts | None, code: int) -> None:
    """An ended command that exited 0 because it was told to end is no success."""
    capture = CaptureFacts(state="complete")
    receipt = Receipt(capture_id="x", process=process, capture=capture, streams={"stdout": None, "stderr": None})
    assert code_of_settled(receipt) == code
