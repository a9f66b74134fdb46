"""Reports of calls that hang on a pipe, and of exit codes that are lost or made up (F1, F2, A2)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, JobFailed, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

WINDOW: Final = 0.2
"""The drain window, seconds."""
SOON: Final = 10.0
"""Seconds that a loaded machine may need; what holds a pipe here holds it for 30."""


async def test_bug_001_a_background_child_does_not_hold_the_call(
    conversation: Conversation, process_of: Callable[..., Any], end_leftovers: Callable[..., Any]
) -> None:
    """BUG-001 (anomalyco/opencode#20902): the tool waits for the pipes to close, not for the exit (F1)."""
    began = time.monotonic()
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("sleep 30 & echo hi", shell=True, drain_timeout=WINDOW)
    end_leftovers(receipt)
    assert WINDOW <= time.monotonic() - began < SOON
    assert (process_of(receipt).state, process_of(receipt).code) == ("exited", 0)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "drain-timeout")
    assert conversation.text(receipt) == b"hi\n"


async def test_bug_003_a_grandchild_that_python_started_does_not_either(
    conversation: Conversation, process_of: Callable[..., Any], end_leftovers: Callable[..., Any]
) -> None:
    """BUG-003 (agronholm/anyio#1174): `run_process` stalls for the life of a grandchild with the stdout (F1)."""
    script = "import subprocess, sys; subprocess.Popen(['sleep', '30']); print('parent done'); sys.exit(3)"
    began = time.monotonic()
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run([sys.executable, "-S", "-c", script], drain_timeout=WINDOW)
    end_leftovers(receipt)
    assert time.monotonic() - began < SOON
    assert (process_of(receipt).code, receipt.capture.reason) == (3, "drain-timeout")
    assert receipt.stdout == "parent done\n"


async def test_bug_005_each_stream_has_its_own_end(
    conversation: Conversation,
    stream_of: Callable[..., Any],
    process_of: Callable[..., Any],
    end_leftovers: Callable[..., Any],
) -> None:
    """BUG-005 (anomalyco/opencode#48414): a child redirected one stream, and holds the other in silence (F1)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("nohup sleep 30 >/dev/null & echo hi", shell=True, drain_timeout=WINDOW)
    end_leftovers(receipt)
    assert process_of(receipt).code == 0
    assert (stream_of(receipt).state, stream_of(receipt).reason) == ("complete", None)
    assert (stream_of(receipt, "stderr").state, stream_of(receipt, "stderr").reason) == ("partial", "drain-timeout")
    assert receipt.capture.state == "partial"


async def test_bug_008_after_a_kill_reading_is_bounded(
    conversation: Conversation,
    first_text: Callable[..., Any],
    process_of: Callable[..., Any],
    end_leftovers: Callable[..., Any],
) -> None:
    """BUG-008 (python/cpython#82388): kill() and then communicate() block until an orphan exits (F2)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            "sleep 30 & echo before; wait", shell=True, drain_timeout=WINDOW, window_bytes=1024
        )
        await first_text(job)
        began = time.monotonic()
        await job.send_signal(signal.SIGKILL)
        receipt = await job.wait()
    end_leftovers(receipt)
    assert time.monotonic() - began < SOON
    assert (process_of(receipt).state, process_of(receipt).signal) == ("exited", signal.SIGKILL)
    assert receipt.capture.reason == "drain-timeout"
    assert conversation.text(receipt) == b"before\n"


async def test_bug_010_a_daemon_that_holds_the_pipe_does_not_hold_the_call(
    conversation: Conversation,
    program: Callable[..., list[str]],
    process_of: Callable[..., Any],
    stream_of: Callable[..., Any],
) -> None:
    """BUG-010 (anthropics/claude-code#27401): a helper that never closes its output hangs the tool (F1, F2)."""
    began = time.monotonic()
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("wrapper"), drain_timeout=WINDOW)
    daemon = int(receipt.stdout)
    os.kill(daemon, signal.SIGKILL)  # it was alive, and it is not the supervisor's to end
    assert time.monotonic() - began < SOON
    assert (process_of(receipt).state, process_of(receipt).code) == ("exited", 0)
    assert {stream_of(receipt, name).reason for name in ("stdout", "stderr")} == {"drain-timeout"}
    assert process_of(receipt).holders in {None, (daemon,)}  # named or unknown, never "nobody" (A4)


async def test_bug_013_the_last_bytes_before_the_exit_are_kept(
    conversation: Conversation,
    program: Callable[..., list[str]],
    stream_of: Callable[..., Any],
    process_of: Callable[..., Any],
) -> None:
    """BUG-013 (openai/codex PR#8825): the exit is handled before reads that are pending (F2)."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        for _ in range(20):
            receipt = await supervisor.run(program("burst", "60000"))
            assert (stream_of(receipt).committed, process_of(receipt).code) == (60_000, 4)
            assert receipt.capture.state == "complete"


async def test_bug_019_the_childs_end_of_the_pipe_blocks(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-019 (kernel behaviour behind synthetic-sciences/openscience#566): a child's stdout is not blocking (F7)."""
    script = "import os, sys; sys.exit(not os.get_blocking(1) or os.write(1, b'a' * 300_000) != 300_000)"
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run([sys.executable, "-S", "-c", script])
    assert process_of(receipt).code == 0
    assert conversation.text(receipt) == b"a" * 300_000


async def test_bug_075_the_end_of_both_streams_is_not_the_exit(
    conversation: Conversation, process_of: Callable[..., Any], until: Callable[..., Any]
) -> None:
    """BUG-075 (OpenHands/software-agent-sdk#1468): the exit code of a finished command is null or -1 (F1)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("exec >&- 2>&-; read -r line; exit 7", shell=True, stdin=PIPE)
        descriptors = Path(f"/proc/{job.pid}/fd")
        await until(lambda: {"1", "2"}.isdisjoint(path.name for path in descriptors.iterdir()))
        assert process_of(job.receipt).state == "running"
        await job.write(b"go on\n")
        receipt = await job.wait()
    assert (process_of(receipt).state, process_of(receipt).code) == ("exited", 7)
    assert receipt.capture.state == "complete"


async def test_bug_077_a_stolen_status_is_unknown(conversation: Conversation, process_of: Callable[..., Any]) -> None:
    """BUG-077 (python asyncio child watcher; libraries that call waitpid(-1)): 255 is invented (A3, A4)."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps, and files no status
    try:
        async with Supervisor(conversation.path) as supervisor:
            receipt = await supervisor.run(["sh", "-c", "echo data; exit 3"])
    finally:
        signal.signal(signal.SIGCHLD, before)
    # A kernel with PIDFD_INFO_EXIT still knows the code; no kernel knows another one.
    known = (process_of(receipt).state, process_of(receipt).reason, process_of(receipt).code)
    assert known in {("unknown", "status-lost", None), ("exited", None, 3)}
    assert process_of(receipt).signal is None
    assert receipt.stdout == "data\n"


async def test_bug_078_a_code_that_is_not_zero_is_a_result(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-078 (earendil-works/pi bash tool): it is raised, with the output in the error's text (A2)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo data; grep -q nomatch /dev/null", shell=True, label="grep")
    assert (process_of(receipt).state, process_of(receipt).code) == ("exited", 1)
    assert (receipt.stdout, receipt.capture.state) == ("data\n", "complete")
    with pytest.raises(JobFailed) as failure:
        receipt.check()
    assert failure.value.receipt is receipt
    assert "data" not in str(failure.value)


@pytest.mark.parametrize("call", ["send_signal", "terminate"])
async def test_bug_141_a_signal_between_the_exit_and_its_notice_changes_nothing(
    conversation: Conversation, process_of: Callable[..., Any], call: str
) -> None:
    """BUG-141 (python/cpython#76296 / #95899): `send_signal` fails, or the code is lost, in that window (A2)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "read -r line; exit 11"], stdin=PIPE)
        assert job.pid is not None
        await job.write(b"now\n")
        # The loop is held up on purpose: it cannot have noticed.
        os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
        await asyncio.wait_for(job.send_signal(signal.SIGTERM) if call == "send_signal" else job.terminate(), SOON)
        receipt = await job.wait()
    assert (process_of(receipt).code, process_of(receipt).signal) == (11, None)


async def test_bug_004_a_logger_behind_a_process_substitution_does_not_hold_the_call(
    conversation: Conversation,
    first_text: Callable[..., Any],
    process_of: Callable[..., Any],
    end_leftovers: Callable[..., Any],
) -> None:
    """BUG-004 (openai/codex#7846): `exec > >(tee ...)` keeps the pipe open after the script has ended (F1)."""
    script = "exec > >(tee -a /dev/null) 2>&1; (sleep 300 &); echo done; read -r line"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["bash", "-c", script], stdin=PIPE, drain_timeout=WINDOW, window_bytes=1024)
        await first_text(job)
        began = time.monotonic()
        await job.write_eof()
        receipt = await job.wait()
    end_leftovers(receipt)
    assert time.monotonic() - began < SOON
    assert (process_of(receipt).state, process_of(receipt).code) == ("exited", 1)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "drain-timeout")
    assert conversation.text(receipt) == b"done\n"
    assert len(process_of(receipt).survivors) == 2  # the logger, and what holds it


async def test_bug_016_what_a_short_command_prints_is_never_lost(conversation: Conversation) -> None:
    """BUG-016 (anthropics/claude-code#34266): output is empty although the command printed (F2, D3)."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        for _ in range(3):
            jobs = await asyncio.gather(*(supervisor.start(["echo", "ok"]) for _ in range(20)))
            receipts = await asyncio.gather(*(job.wait() for job in jobs))
            assert {(conversation.text(receipt), receipt.capture.state) for receipt in receipts} == {
                (b"ok\n", "complete")
            }
