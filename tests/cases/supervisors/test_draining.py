"""Exit and end of output are two facts: what supervisors confuse when a descendant holds a pipe (F1, F2, F4)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Receipt, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

LONG: Final = 60.0
"""Seconds that no test waits for: a test that passes did not go by this clock."""


def ending(receipt: Receipt) -> tuple[str, int | None, int | None, str | None]:
    """Return state, code, signal and reason."""
    assert receipt.process is not None
    return receipt.process.state, receipt.process.code, receipt.process.signal, receipt.process.reason


async def test_h5_001_a_grandchild_that_holds_stdout_delays_the_drain_window_only(conversation: Conversation) -> None:
    """H5-001 (golang/go#23019): `sleep & echo hi` kept the caller waiting for the sleep; its pid is told instead."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("sleep 60 & echo $!", shell=True, drain_timeout=0.2)
    holder = int(receipt.stdout)
    os.kill(holder, signal.SIGKILL)
    assert ending(receipt) == ("exited", 0, None, None)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "drain-timeout")
    assert conversation.text(receipt) == f"{holder}\n".encode()
    assert receipt.process is not None
    assert receipt.process.survivors == (holder,)


async def test_h5_002_a_time_limit_ends_what_the_shell_forked(conversation: Conversation) -> None:
    """H5-002 (golang/go#25835): the shell was killed, and its orphan kept the pipe and the caller for 5 s."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(
            ["sh", "-c", f"echo hello && sleep {LONG} && echo slept"], time_limit=0.3, kill_after=LONG
        )
    assert ending(receipt) == ("timeout", None, signal.SIGTERM, "time-limit")
    assert receipt.process is not None
    assert (receipt.process.forced, receipt.process.survivors) == (False, ())
    assert receipt.capture.state == "complete"  # with nobody left the pipe ends at once
    assert conversation.text(receipt) == b"hello\n"


async def test_h5_003_the_exit_is_known_before_the_pipe_ends(
    conversation: Conversation, until: Callable[..., Any], first_text: Callable[..., Any]
) -> None:
    """H5-003 (python/cpython#119710): asyncio's `wait` waits for the pipe; the code is seen while it is still open."""
    script = f"(echo held; exec sleep {LONG}) & exit 3"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script], drain_timeout=LONG, window_bytes=1024)
        await first_text(job)
        await until(lambda: job.receipt.process is not None and job.receipt.process.code == 3)
        assert job.receipt.capture.state == "pending"
        receipt = await job.terminate()
    assert ending(receipt) == ("exited", 3, None, None)
    assert conversation.text(receipt) == b"held\n"


async def test_h5_005_whatever_the_shell_forks_a_time_limit_holds(conversation: Conversation) -> None:
    """H5-005 (Gaurav-Gosain/tuios#141): five scripts in two shells, some of which hung; all end in time here."""
    shells = [shell for shell in ("bash", "dash") if shutil.which(shell)]
    scripts = ["sleep 60", "sleep 60; true", "sleep 60 & wait", "(sleep 60)", "sleep 60 | cat"]
    async with Supervisor(conversation.path) as supervisor:
        began = time.monotonic()
        receipts = await asyncio.gather(
            *(
                supervisor.run([shell, "-c", script], time_limit=0.3, kill_after=LONG, drain_timeout=LONG)
                for shell in shells
                for script in scripts
            )
        )
        took = time.monotonic() - began
    assert shells
    assert took < LONG / 3
    assert {ending(receipt) for receipt in receipts} == {("timeout", None, signal.SIGTERM, "time-limit")}
    assert {(receipt.capture.state, receipt.process and receipt.process.survivors) for receipt in receipts} == {
        ("complete", ())
    }


async def test_h5_007_the_end_of_output_is_not_the_exit(conversation: Conversation, until: Callable[..., Any]) -> None:
    """H5-007 (NixOS/nix#2176): at EOF the daemon killed a builder that had only closed its output."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "echo up; exec >&- 2>&-; read line; exit 7"], stdin=PIPE)
        await until(lambda: not Path(f"/proc/{job.pid}/fd/1").exists())
        stdout = job.follow("stdout")
        assert (await anext(stdout)).text == "up\n"
        await stdout.aclose()
        assert ending(job.receipt) == ("running", None, None, None)
        await job.write(b"go\n")
        receipt = await job.wait()
    assert ending(receipt) == ("exited", 7, None, None)
    assert receipt.capture.state == "complete"


async def test_h5_010_what_a_term_handler_says_is_captured(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """H5-010 (Supervisor/supervisor#11): the pipe was closed before the signal, so the last words were lost."""
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script], kill_after=LONG, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert ending(receipt) == ("cancelled", 0, None, "caller")
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == b"up\nbye\n"


async def test_h5_008_a_time_limit_does_not_wait_for_a_grandchild(conversation: Conversation) -> None:
    """H5-008 (tomerfiliba/plumbum#685): the timer killed sh, and `communicate` waited for its `sleep &` for ever."""
    async with Supervisor(conversation.path) as supervisor:
        began = time.monotonic()
        receipt = await supervisor.run(
            ["sh", "-c", "echo up; sleep 60 & wait"], time_limit=0.3, kill_after=LONG, drain_timeout=LONG
        )
        took = time.monotonic() - began
    assert 0.3 <= took < LONG / 3
    assert ending(receipt) == ("timeout", None, signal.SIGTERM, "time-limit")
    assert receipt.process is not None
    assert receipt.process.survivors == ()
    assert (receipt.capture.state, conversation.text(receipt)) == ("complete", b"up\n")
