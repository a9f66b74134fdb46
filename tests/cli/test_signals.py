"""Signals to the command line: the tree is ended, the receipt published, and the code says which signal it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine, Program

READY = ("sh", "-c", "echo ready; exec sleep 1000")
"""A command that announces itself and never ends by itself."""


def ready(process: subprocess.Popen[bytes]) -> None:
    """Return when the command has announced itself."""
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "caller"),
        (signal.SIGQUIT, "caller"),
        (signal.SIGTERM, "supervisor-shutdown"),
        (signal.SIGHUP, "supervisor-shutdown"),
    ],
)
def test_a_signal_ends_the_tree_and_publishes(spoolvisor: CommandLine, number: int, reason: str) -> None:
    """The code is 128 and the signal's number; what was captured so far is settled and on disk [F4]."""
    process = spoolvisor.start("run", "--", *READY)
    ready(process)
    process.send_signal(number)
    done = spoolvisor.finish(process)
    assert done.code == 128 + number
    (capture,) = spoolvisor.captures()
    receipt = json.loads((capture / "receipt.json").read_text())
    assert (receipt["process"]["state"], receipt["process"]["reason"]) == ("cancelled", reason)
    assert receipt["capture"]["state"] == "complete"
    assert spoolvisor.text("stdout") == b"ready\n"
    assert any(f"cancelled: {reason}" in line for line in done.errors)


def test_ctrl_c_among_our_imports_is_no_traceback(spoolvisor: CommandLine, tmp_path: Path) -> None:
    """Nothing has begun then, so it ends us as it ends any program."""
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    program = "import sys; from supervisor.cli import main; main(sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--", "true"], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    assert spoolvisor.captures() == []


def test_json_is_printed_after_ctrl_c(spoolvisor: CommandLine) -> None:
    """A program that ends us still gets its line."""
    process = spoolvisor.start("run", "--json", "--", *READY)
    assert process.stderr.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    done = spoolvisor.finish(process)
    assert (done.code, done.receipt["process"]["state"]) == (130, "cancelled")


def test_a_child_that_exits_0_on_term_does_not_hide_ctrl_c(spoolvisor: CommandLine) -> None:
    """130 is about who ended it, not about what the child made of that."""
    script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    process = spoolvisor.start("run", "--", "sh", "-c", script)
    ready(process)
    process.send_signal(signal.SIGINT)
    assert spoolvisor.finish(process).code == 130


def test_a_second_ctrl_c_gives_no_more_grace(spoolvisor: CommandLine, program: Program) -> None:
    """A command that takes the first TERM as a hint, with no KILL to follow, is killed by the second."""
    process = spoolvisor.start("run", "--kill-after", "inf", "--", *program("reluctant"))
    ready(process)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"TERM\n"
    process.send_signal(signal.SIGINT)
    done = spoolvisor.finish(process)
    assert done.code == 130
    assert any("ended by signal 9" in line for line in done.errors)


def test_ctrl_c_escalates_by_itself(spoolvisor: CommandLine, program: Program) -> None:
    """Nobody has to press twice: after kill-after comes the KILL [F3]."""
    process = spoolvisor.start("run", "--kill-after", "100ms", "--", *program("reluctant"))
    ready(process)
    process.send_signal(signal.SIGINT)
    done = spoolvisor.finish(process)
    assert (done.code, done.out) == (130, "TERM\n")


def test_the_limit_that_came_first_stays_the_cause(spoolvisor: CommandLine, program: Program) -> None:
    """A Ctrl-C while a limit's ending is under way does not rewrite it [A3]: still 124."""
    process = spoolvisor.start("run", "--idle-limit", "300ms", "--kill-after", "inf", "--", *program("reluctant"))
    ready(process)
    assert process.stdout.readline() == b"TERM\n"  # of the limit
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # two different ones cannot become one
    assert spoolvisor.finish(process).code == 124


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_what_our_caller_ignores_stays_ignored(spoolvisor: CommandLine, name: str, program: Program) -> None:
    """`nohup` and background jobs of a script: the signal changes nothing, the TERM after it ends the job."""
    number = signal.Signals[name]
    ignoring = ("sh", "-c", f"trap '' {name.removeprefix('SIG')}; exec \"$@\"", "sh")
    process = spoolvisor.start_by(ignoring, "run", "--", *program("reluctant"), stderr=subprocess.DEVNULL)
    ready(process)
    process.send_signal(number)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"TERM\n"
    process.send_signal(signal.SIGTERM)
    assert spoolvisor.finish(process).code == 128 + signal.SIGTERM


def test_a_signal_frees_us_from_a_reader_that_never_reads(spoolvisor: CommandLine) -> None:
    """The command has ended by itself; its output is stuck in a pipe; Ctrl-C does not wait for that."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as stuck:
        process = spoolvisor.start("run", "--json", "--", "seq", "200000", stderr=stuck)
        settled(spoolvisor)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["process"]["code"] == 0


@pytest.mark.realtime
def test_a_limit_is_not_outwaited_by_a_reader_that_never_reads(spoolvisor: CommandLine) -> None:
    """What a limit has ended, ends: the stuck reader has some seconds, then the code is given."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as stuck:
        process = spoolvisor.start("run", "--time-limit", "300ms", "--", "yes", stdout=stuck)
        done = spoolvisor.finish(process)
    assert done.code == 124
    assert any("timeout: time-limit" in line for line in done.errors)


def test_a_stuck_reader_and_a_signal_do_not_rewrite_a_limit(spoolvisor: CommandLine) -> None:
    """What ended the command decides the code, not what cut its display short [A3]."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as stuck:
        process = spoolvisor.start("run", "--time-limit", "300ms", "--", "yes", stdout=stuck)
        settled(spoolvisor)
        process.send_signal(signal.SIGINT)
        assert spoolvisor.finish(process).code == 124


def settled(spoolvisor: CommandLine) -> None:
    """Return when the only capture's receipt is published and the supervisor has closed: its owner's lock is gone."""
    receipt, owners = "tool-outputs/captures/*/receipt.json", "tool-outputs/.supervisor/*.owner"
    while not list(spoolvisor.kept.glob(receipt)) or list(spoolvisor.kept.glob(owners)):
        os.sched_yield()
