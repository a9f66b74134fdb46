"""What ends a job, and which of several causes is the one that is reported (A3, F3, F4)."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Limits, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Conversation

    from supervisor.storage import Storage

pytestmark = pytest.mark.asyncio

SLEEPER: Final = ["sh", "-c", "echo ready; exec sleep 60"]
LONG: Final = 60.0
"""Seconds that no test waits for: a test that passes did not go by this clock."""


async def test_the_time_limit_ends_a_child_that_keeps_writing(conversation: Conversation) -> None:
    """It is a timeout, with everything captured so far (F4)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", "while :; do echo line; sleep 0.05; done"], time_limit=0.3)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("timeout", "time-limit")
    assert (receipt.process.code, receipt.process.signal) == (None, signal.SIGTERM)
    assert (receipt.process.forced, receipt.process.kill_confirmed, receipt.process.survivors) == (False, True, ())
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt).startswith(b"line\nline\n")


async def test_the_idle_limit_starts_again_with_each_output(conversation: Conversation) -> None:
    """A child that writes in time goes on; one that falls silent is ended with a reason of its own."""
    script = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done; exec sleep 60"
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", script], idle_limit=0.4)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("timeout", "idle-limit")
    assert conversation.text(receipt) == b"1\n2\n3\n4\n5\n6\n"
    assert receipt.duration is not None
    assert receipt.duration >= 0.9


@pytest.mark.realtime
async def test_our_own_pauses_do_not_run_the_idle_limit(
    conversation: Conversation, disk: Callable[..., Storage]
) -> None:
    """A slow disk makes us hold the child up; it then is silent because of us (B4)."""
    gate = threading.Event()

    def write_behind_gate(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        assert gate.wait(LONG)
        return os.writev(descriptor, buffers)

    limits = Limits(queue_bytes=64 * 1024, stall_timeout=LONG)
    observed: list[int | None] = []
    async with Supervisor(conversation.path, limits=limits, storage=disk(write_behind_gate)) as supervisor:

        def open_gate() -> None:
            facts = supervisor.jobs[0].receipt.streams["stdout"]
            observed.append(facts.raw.observed if facts else None)
            gate.set()

        asyncio.get_running_loop().call_later(1.0, open_gate)
        receipt = await supervisor.run(["sh", "-c", "yes | head -c 6000000; exit 9"], idle_limit=0.3)
    assert receipt.process is not None
    assert receipt.duration is not None
    assert receipt.duration >= 0.9  # it really was held up, for longer than its limit
    assert observed[0] is not None
    assert observed[0] < 3_000_000  # a queue and two batches: what is in memory is bounded (B3)
    assert (receipt.process.state, receipt.process.code) == ("exited", 9)
    assert receipt.capture.state == "complete"
    assert len(conversation.text(receipt)) == 6_000_000


@pytest.mark.parametrize("kill_after", [0.2, 0])
async def test_a_child_that_ignores_term_is_killed(
    conversation: Conversation, program: Callable[..., list[str]], first_text: Callable[..., Any], kill_after: float
) -> None:
    """After `kill_after`, at once if that is 0; every member of the group is (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("stubborn", "group"), kill_after=kill_after, window_bytes=1024)
        await first_text(job)
        began = time.monotonic()
        receipt = await job.terminate()
        took = time.monotonic() - began
    assert kill_after <= took < kill_after + 2
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("cancelled", "caller")
    assert (receipt.process.signal, receipt.process.forced) == (signal.SIGKILL, True)
    assert (receipt.process.kill_confirmed, receipt.process.survivors) == (True, ())


async def test_a_member_that_ignores_term_is_killed_after_its_leader_obeyed(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """The end of the leader is not the end of the tree: escalation goes on while any member lives (F3)."""
    script = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & wait"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script], kill_after=0.3, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert receipt.process is not None
    assert receipt.process.signal == signal.SIGTERM
    assert receipt.process.forced
    assert (receipt.process.kill_confirmed, receipt.process.survivors) == (True, ())


async def test_members_that_obey_term_get_no_kill(conversation: Conversation, first_text: Callable[..., Any]) -> None:
    """The whole group gets TERM; with nobody left the grace is over at once, not after `kill_after`."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "sleep 60 & echo ready; wait"], kill_after=LONG, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert receipt.process is not None
    assert (receipt.process.forced, receipt.process.survivors) == (False, ())
    assert receipt.capture.state == "complete"


async def test_the_first_cause_stays(
    conversation: Conversation, program: Callable[..., list[str]], first_text: Callable[..., Any]
) -> None:
    """A later request changes neither state nor reason, however the ending then goes (A3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("stubborn"), kill_after=0.3, window_bytes=1024)
        await first_text(job)
        receipts = await asyncio.gather(
            job.terminate("memory"), job.terminate("caller"), job.terminate("time-limit"), job.wait()
        )
    assert all(receipt is receipts[0] for receipt in receipts)
    assert receipts[0].process is not None
    assert (receipts[0].process.state, receipts[0].process.reason) == ("cancelled", "memory")


async def test_terminate_after_the_end_changes_nothing(conversation: Conversation) -> None:
    """The same receipt again; an exit that was not asked for stays one."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "exit 4"])
        receipt = await job.wait()
        assert await job.terminate() is receipt
        assert await job.terminate() is receipt
        await job.send_signal(signal.SIGTERM)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code, receipt.process.reason) == ("exited", 4, None)


async def test_a_cancel_in_the_drain_window_ends_what_the_command_left(
    conversation: Conversation,
    program: Callable[..., list[str]],
    first_text: Callable[..., Any],
    until: Callable[..., Any],
) -> None:
    """The command had exited by itself, and that stays so; its descendant is ended all the same (F5)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("descendant"), drain_timeout=LONG, kill_after=LONG, window_bytes=1024)
        await first_text(job)
        await until(lambda: job.receipt.process is not None and job.receipt.process.code is not None)
        receipt = await job.terminate()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code, receipt.process.reason) == ("exited", 3, None)
    assert receipt.process.survivors == ()


async def test_a_stopped_child_is_ended_by_term(
    conversation: Conversation, first_text: Callable[..., Any], until: Callable[..., Any]
) -> None:
    """TERM alone would wait in a stopped process for ever; CONT follows it (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(SLEEPER, kill_after=LONG, window_bytes=1024)
        await first_text(job)
        await job.send_signal(signal.SIGSTOP)
        assert job.pid is not None
        stat = Path(f"/proc/{job.pid}/stat")
        await until(lambda: b") T " in stat.read_bytes())
        receipt = await job.terminate()
    assert receipt.process is not None
    assert (receipt.process.signal, receipt.process.forced) == (signal.SIGTERM, False)


async def test_a_signal_goes_to_the_leader_alone_and_is_no_cancellation(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """The child may handle it as it likes; what ends it is then its own exit."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            ["sh", "-c", "trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done"], window_bytes=1024
        )
        await first_text(job)
        with pytest.raises(ValueError, match="999"):
            await job.send_signal(999)
        await job.send_signal(signal.SIGUSR1)
        receipt = await job.wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 6)


async def test_a_real_time_signal_is_a_signal(conversation: Conversation, first_text: Callable[..., Any]) -> None:
    """`signal.Signals` names two of them only; the rest are as good."""
    trap = f"trap 'exit 6' {signal.SIGRTMIN + 1}; echo ready; while :; do sleep 0.05; done"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["bash", "-c", trap], window_bytes=1024)
        await first_text(job)
        await job.send_signal(signal.SIGRTMIN + 1)
        receipt = await job.wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 6)


async def test_a_reason_that_does_not_exist_is_refused_at_once(conversation: Conversation) -> None:
    """The words are closed (A3): a slip of the caller must not cost the job its receipt."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(SLEEPER)
        for reason in ("user", "status-lost", None):
            with pytest.raises(ValueError, match="supervisor-shutdown"):
                await job.terminate(reason)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        assert not job.done
        receipt = await job.terminate()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("cancelled", "caller")


async def test_a_snapshot_is_no_larger_than_a_receipt_may_be(conversation: Conversation) -> None:
    """A command of 200 KiB is clipped while the job runs, too, and the snapshot says so (A6)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start([*SLEEPER, *(["argument"] * 20_000)])
        snapshot = job.receipt
        assert len(snapshot.to_json()) <= 64 * 1024
        assert "command-clipped" in snapshot.limitations
        assert snapshot.capture.state == "pending"


async def test_leaving_the_block_ends_live_jobs(conversation: Conversation, first_text: Callable[..., Any]) -> None:
    """Each has a published receipt that says so (F4, F10)."""
    async with Supervisor(conversation.path) as supervisor:
        jobs = [await supervisor.start(SLEEPER, window_bytes=1024) for _ in range(3)]
        for job in jobs:
            await first_text(job)
        pids = [job.pid for job in jobs]
    for job, pid in zip(jobs, pids, strict=True):
        receipt = job.receipt
        assert receipt.process is not None
        assert (receipt.process.state, receipt.process.reason) == ("cancelled", "supervisor-shutdown")
        assert conversation.text(receipt) == b"ready\n"
        assert conversation.published(receipt) == receipt
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(RuntimeError):
        await supervisor.run(["true"])
