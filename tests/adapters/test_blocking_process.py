"""What the façade does to a whole process: its exit, a fork, Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import list_captures

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE: Final = 60.0


def ended(command: list[str], *, warnings: bool = True) -> list[str]:
    """Run it to its end, which must be quiet; return the lines that it printed."""
    # From 3.12 on `os.fork` warns of the threads that we are about to do without.
    env = os.environ | {"PYTHONWARNINGS": "error" if warnings else "ignore::DeprecationWarning"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def lives(pid: int) -> bool:
    """Return whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_exit_ends_jobs_and_publishes_their_receipts(tmp_path: Path, program: Callable[..., list[str]]) -> None:
    """Of several supervisors that nobody closed, with threads that wait for everything there is to wait for."""
    directories = [tmp_path / name for name in "ab"]
    for directory in directories:
        directory.mkdir()
    pids = [int(line) for line in ended(program("blocking_host", "leave", *directories)) if line.isdigit()]
    assert len(pids) == 2
    assert not any(map(lives, pids))
    for directory in directories:
        (receipt,) = asyncio.run(list_captures(directory))
        assert receipt.process is not None
        assert receipt.process.reason == "supervisor-shutdown"
        # Python 3.12.0 and 3.12.1 start no thread at the exit, so a disk that needs one more than there is may be lost.
        assert receipt.capture.state == "complete" or sys.version_info[:2] == (3, 12)


def test_the_exit_kills_what_does_not_end(tmp_path: Path, program: Callable[..., list[str]]) -> None:
    """Its grace is longer than the exit waits."""
    (pid,) = ended(program("blocking_host", "stubborn", tmp_path))
    assert not lives(int(pid))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forks_copy_refuses_and_a_new_one_works(tmp_path: Path, program: Callable[..., list[str]]) -> None:
    """Nothing waits for threads that are not there, and the parent's jobs are not touched."""
    directories = [tmp_path / name for name in "ab"]
    for directory in directories:
        directory.mkdir()
    lines = ended(program("blocking_host", "fork", *directories), warnings=False)
    assert lines == ["fork starts anew", "parent goes on", "False"]


def test_ctrl_c_ends_a_wait_and_neither_the_job_nor_the_loop(tmp_path: Path, program: Callable[..., list[str]]) -> None:
    """A foreground run is ended by it: nobody has a handle on that."""
    lines = ended(program("blocking_host", "interrupt", tmp_path))
    assert lines == ["run caller", "job 0 still here", "end True"]
