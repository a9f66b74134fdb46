"""What a supervisor owes after a full disk, a limit, a restart, and when it closes (B4, B5, D5, E5, F10)."""

# ruff: noqa: ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import Limits, Receipt, Supervisor
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

PATIENCE: Final = 60.0


def code_of(receipt: Receipt) -> int | None:
    """Return the exit code."""
    assert receipt.process is not None
    return receipt.process.code


@pytest.mark.asyncio
async def test_h5_049_a_full_log_volume_costs_neither_the_exit_status_nor_the_receipt(
    mounted: Callable[..., Path], conversation: Conversation
) -> None:
    """H5-049 (containers/podman#19943): the monitor died of ENOSPC, and the container ran on, untracked."""
    small = type(conversation)(mounted("-t", "tmpfs", "-o", "size=256k,mode=0700", "spoolvisor-test"))
    async with asyncio.timeout(PATIENCE), Supervisor(small.path) as supervisor:
        job = await supervisor.start("yes | head -c 1000000; exit 3", shell=True)
        receipt = await job.wait()
    assert code_of(receipt) == 3
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    kept = small.text(receipt)
    assert kept == b"y\n" * (len(kept) // 2)
    assert len(kept) >= 64 * 1024
    assert small.published(receipt) == receipt


@pytest.mark.asyncio
async def test_h5_051_what_was_kept_outlives_the_exhausted_allowance(conversation: Conversation) -> None:
    """H5-051 (containers/conmon#563): at the limit the file was begun anew, and all earlier entries were gone."""
    limits = Limits(conversation_bytes=60_000)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        receipts = [await supervisor.run("seq 1 9000; exit 1", shell=True) for _ in range(3)]
    whole = b"".join(b"%d\n" % number for number in range(1, 9001))
    kept = [conversation.text(receipt) for receipt in receipts]
    assert [len(text) for text in kept] == [len(whole), 60_000 - len(whole), 0]
    assert all(whole.startswith(text) for text in kept)
    assert [receipt.capture.reason for receipt in receipts] == [None, "conversation-limit", "conversation-limit"]
    assert all(receipt.stdout.endswith("\n9000\n") for receipt in receipts)


@pytest.mark.asyncio
async def test_h5_064_closing_does_not_wait_for_a_child_that_writes_for_ever(conversation: Conversation) -> None:
    """H5-064 (agronholm/anyio#1166): `aclose` waited for a child that waited for the full pipe to be read."""
    async with asyncio.timeout(PATIENCE):
        async with Supervisor(conversation.path, limits=Limits(job_bytes=100_000)) as supervisor:
            job = await supervisor.start(["sh", "-c", "trap '' PIPE; exec yes"], kill_after=PATIENCE)
            async for page in job.follow():
                if page.eof:
                    break
            began = time.monotonic()
        took = time.monotonic() - began
    assert took < PATIENCE / 3
    assert job.receipt.process is not None
    assert (job.receipt.process.state, job.receipt.process.reason) == ("cancelled", "supervisor-shutdown")
    assert not Path(f"/proc/{job.pid}").exists()


@pytest.mark.asyncio
async def test_h5_069_an_exit_is_told_after_restarts_until_somebody_has_taken_it(conversation: Conversation) -> None:
    """H5-069 (containerd/containerd#829): after two quick restarts of the manager the exit event was gone for ever."""
    async with Supervisor(conversation.path) as first:
        job = await first.start(["sh", "-c", "exit 5"])
        await job.wait()
    for _ in range(2):
        async with Supervisor(conversation.path):
            pass
    async with Supervisor(conversation.path) as fourth:
        async for completion in fourth.completions():
            assert (completion.receipt.capture_id, code_of(completion.receipt)) == (job.capture_id, 5)
            await completion.acknowledge()
            break
    async with Supervisor(conversation.path) as fifth:
        told = asyncio.create_task(anext(fifth.completions(), None))
        other = await fifth.start(["sh", "-c", "exit 6"])
        async with asyncio.timeout(PATIENCE):
            completion = await told
    assert completion is not None
    assert completion.receipt.capture_id == other.capture_id


def test_h5_078_short_values_are_refused_aloud_and_overlapping_ones_leave_no_part() -> None:
    """H5-078 (buildkite/agent#3588): "a" made the log unreadable, and of overlapping secrets a half was shown."""
    values = {"SHORT": "ab", "LONG": "abab-abab-abab", "INNER": "abab-abab", "TOUCHING": "abab-secret"}
    needles = NeedleSet.build(values)
    assert len(needles.refused) == 1
    assert "SHORT" in needles.refused[0]
    assert "ab" not in needles.refused[0].replace("SHORT", "").split()
    sanitizer = Sanitizer(needles)
    text = sanitizer.feed(b"a banana; abab-abab-abab-secret; abab-abab.\n") + sanitizer.finish()
    assert text.startswith(b"a banana; [")
    assert b"abab" not in text
    assert b"secret" not in text
    assert text.count(b"[REDACTED") == 2
