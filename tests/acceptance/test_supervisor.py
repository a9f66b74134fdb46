"""Many jobs of one supervisor: what they share, what they must not notice of each other, and wrong arguments."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Limits, Supervisor, TooManyJobs, UnknownCapture

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

MIB = 1024 * 1024


def on_disk(conversation: Conversation) -> int:
    """Return the bytes of all streams."""
    return sum(path.stat().st_size for path in conversation.files() if path.suffix in {".log", ".live"})


async def test_concurrent_jobs_share_one_allowance(conversation: Conversation) -> None:
    """Together they keep no more than the conversation may; the children run to their end (D5)."""
    limits = Limits(conversation_bytes=MIB)
    command = ["sh", "-c", "yes | head -c 1500000; exit 4"]
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        receipts = await asyncio.gather(supervisor.run(command), supervisor.run(command))
        third = await supervisor.run(command)
    for receipt in (*receipts, third):
        assert receipt.process is not None
        assert receipt.process.code == 4
        assert (receipt.capture.state, receipt.capture.reason) == ("partial", "conversation-limit")
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert facts.raw.observed == 1_500_000
        assert b"y\n".startswith(conversation.text(receipt)[:2])
        assert conversation.published(receipt) == receipt
    assert 0.9 * MIB <= on_disk(conversation) <= MIB
    assert conversation.text(third) == b""


async def test_what_lies_there_already_counts(conversation: Conversation) -> None:
    """A second supervisor of the same conversation starts with what is left; older evidence stays (D5)."""
    limits = Limits(conversation_bytes=MIB)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        first = await supervisor.run("yes | head -c 700000", shell=True)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        second = await supervisor.run("yes | head -c 700000", shell=True)
    assert first.capture.state == "complete"
    assert second.capture.reason == "conversation-limit"
    assert len(conversation.text(first)) == 700_000
    assert on_disk(conversation) <= MIB


async def test_what_a_small_job_reserved_is_given_back(conversation: Conversation) -> None:
    """Reservations are steps of 64 KiB; a hundred small jobs do not eat an allowance of one (D5)."""
    async with Supervisor(conversation.path, limits=Limits(conversation_bytes=64 * 1024)) as supervisor:
        for _ in range(20):
            job = await supervisor.start(["echo", "small"])
            assert (await job.wait()).capture.state == "complete"


async def test_a_hundred_jobs_at_once(conversation: Conversation) -> None:
    """Each has its own output, code and capture."""
    async with Supervisor(conversation.path) as supervisor:
        commands = [f"echo {number}; echo e{number} >&2; exit {number}" for number in range(100)]
        receipts = await asyncio.gather(*(supervisor.run(command, shell=True) for command in commands))
    for number, receipt in enumerate(receipts):
        assert receipt.process is not None
        assert receipt.process.code == number
        assert (receipt.stdout, receipt.stderr) == (f"{number}\n", f"e{number}\n")
        assert receipt.capture.state == "complete"
    assert len({receipt.capture_id for receipt in receipts}) == 100
    assert len(conversation.captures()) == 99  # the one that exited 0 left none


@pytest.mark.realtime
async def test_a_firehose_does_not_starve_a_small_job(conversation: Conversation) -> None:
    """It takes turns; a command beside it ends long before it does, and it goes on."""
    async with Supervisor(conversation.path, limits=Limits(job_bytes=4 * MIB)) as supervisor:
        firehose = await supervisor.start(["yes"])
        slowest = 0.0
        for _ in range(5):
            began = time.monotonic()
            receipt = await supervisor.run(["echo", "small"])
            slowest = max(slowest, time.monotonic() - began)
            assert receipt.stdout == "small\n"
        seen = firehose.receipt.streams["stdout"]
        assert seen is not None
        assert seen.raw.observed
        receipt = await firehose.terminate()
    assert slowest < 10.0
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert (facts.state, facts.reason) == ("partial", "job-limit")
    assert facts.raw.observed is not None
    assert facts.raw.observed > seen.raw.observed
    assert facts.raw.observed == (facts.raw.accepted or 0) + (facts.raw.discarded or 0)
    assert set(conversation.text(receipt)) <= set(b"y\n")


async def test_too_many_jobs_are_refused_and_none_is_evicted(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """The limit is on live ones; a free place can be used again (F9)."""
    async with Supervisor(conversation.path, limits=Limits(max_jobs=2)) as supervisor:
        jobs = [await supervisor.start(["cat"], stdin="pipe", window_bytes=64) for _ in range(2)]
        with pytest.raises(TooManyJobs) as refused:
            await supervisor.run(["true"])
        assert refused.value.live == 2
        for job in jobs:
            await job.write(b"alive\n")
            await first_text(job)
        await jobs[0].write_eof()
        await jobs[0].wait()
        assert (await supervisor.run(["true"])).ok
        await jobs[1].write_eof()
        await supervisor.join()
    assert all(job.receipt.ok for job in jobs)


async def test_jobs_are_found_by_id_and_unknown_ones_are_not(conversation: Conversation) -> None:
    """Live or ended; a lookup error says so for others."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["true"])
        await supervisor.join()
        assert supervisor.job(job.id) is job
        assert supervisor.jobs == (job,)
        with pytest.raises(UnknownCapture):
            supervisor.job("99")
        with pytest.raises(RuntimeError):
            await supervisor.__aenter__()


async def test_limits_that_limit_nothing_are_refused() -> None:
    """Zero, negative and not a number (design, "The public API"); the message names the field."""
    fields = ("job_bytes", "conversation_bytes", "queue_bytes", "buffered_bytes", "stall_timeout", "preview_bytes")
    for field in (*fields, "preview_stdout_chars", "preview_stderr_chars", "max_jobs"):
        for value in (0, -1, math.nan):
            with pytest.raises(ValueError, match=field):
                Limits(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["time_limit", "idle_limit", "kill_after", "drain_timeout"])
async def test_durations_are_checked_before_anything_starts(conversation: Conversation, name: str) -> None:
    """Zero is refused except where it has a meaning; infinity means none."""
    async with Supervisor(conversation.path) as supervisor:
        for value in (-1, math.nan, *([] if name in {"kill_after", "drain_timeout"} else [0])):
            with pytest.raises(ValueError, match=name):
                await supervisor.run(["true"], **{name: value})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=name):
            await supervisor.run(["true"], **{name: "1"})  # type: ignore[arg-type]
        assert supervisor.jobs == ()
        assert (await supervisor.run(["true"], **{name: math.inf})).ok  # type: ignore[arg-type]


async def test_no_limit_at_all_keeps_everything(conversation: Conversation) -> None:
    """`inf` for both accounts."""
    limits = Limits(job_bytes=math.inf, conversation_bytes=math.inf)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        receipt = await supervisor.run("yes | head -c 40000000", shell=True)
    assert receipt.capture.state == "complete"
    assert len(conversation.text(receipt)) == 40_000_000


async def test_a_job_can_be_looked_at_from_its_first_moment_on(conversation: Conversation) -> None:
    """It is among `jobs` before it has streams or a child; a snapshot then is pending and raises nothing (A1, E2)."""
    async with Supervisor(conversation.path) as supervisor:
        for call in (supervisor.run(["true"]), supervisor.start(["true"])):
            calling = asyncio.ensure_future(call)
            seen: list[tuple[str, bool]] = []
            while not calling.done():
                await asyncio.sleep(0)
                seen += [
                    (job.receipt.capture.state, job.receipt.streams["stdout"] is None)
                    for job in supervisor.jobs
                    if not job.done
                ]
            await calling
            assert seen[0] == ("pending", True)
            assert {state for state, _ in seen} == {"pending"}
            await supervisor.join()
