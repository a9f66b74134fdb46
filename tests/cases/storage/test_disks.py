"""A full, removed, forbidden, limited or hanging disk costs text, never the command (B2-B5, C1, D5, D8)."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Limits, Receipt, Supervisor
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Conversation

    from supervisor.sansio.receipt import StreamFacts
    from supervisor.storage import Storage

PATIENCE: Final = 60.0


def code_of(receipt: Receipt) -> int | None:
    """Return the exit code."""
    assert receipt.process is not None
    return receipt.process.code


def stdout_of(receipt: Receipt) -> StreamFacts:
    """Return the facts about stdout."""
    facts = receipt.streams["stdout"]
    assert facts is not None
    return facts


@pytest.mark.asyncio
async def test_h6_030_after_a_forbidden_write_the_child_is_read_to_its_end(
    conversation: Conversation, disk: Callable[..., Storage]
) -> None:
    """H6-030 (containerd/nerdctl#4591): `chattr +i` on the log made a write fail, and the container hung."""

    def forbid(_descriptor: int, _buffers: Sequence[bytes | memoryview]) -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path, storage=disk(forbid)) as supervisor:
        receipt = await supervisor.run("yes | head -c 3000000; echo END; exit 5", shell=True)
    assert code_of(receipt) == 5
    assert receipt.capture.reason == "io-error"
    assert stdout_of(receipt).raw.observed == 3_000_004
    assert stdout_of(receipt).committed == 0
    assert receipt.stdout.endswith("y\nEND\n")


@pytest.mark.asyncio
async def test_h6_031_a_log_that_somebody_removed_hangs_nobody(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """H6-031 (Supervisor/supervisor#240): with its log removed, the child hung in `write(1)`."""
    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            "echo up; read line; yes | head -c 3000000; exit 5", shell=True, stdin=PIPE, window_bytes=1024
        )
        await first_text(job)
        (conversation.captures()[0] / "stdout.live").unlink()
        await job.write(b"go\n")
        receipt = await job.wait()
    assert code_of(receipt) == 5
    assert stdout_of(receipt).raw.observed == 3_000_003
    assert receipt.capture.state != "complete"
    assert receipt.capture.reason == "io-error"


@pytest.mark.asyncio
async def test_h6_036_a_limit_holds_while_the_command_runs(conversation: Conversation) -> None:
    """H6-036 (sosy-lab/benchexec#536): the limit was applied after the run, so the file grew without bound."""
    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path, limits=Limits(job_bytes=200_000)) as supervisor:
        job = await supervisor.start(["yes"])
        pages = [page async for page in job.follow()]
        live = conversation.captures()[0] / "stdout.live"
        full = live.stat().st_size
        seen = stdout_of(job.receipt).raw.observed or 0
        while (stdout_of(job.receipt).raw.observed or 0) < seen + 1_000_000:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
        assert live.stat().st_size == full == 100_000  # half of so small a limit is stderr's reserve
        receipt = await job.terminate()
    assert (pages[-1].state, pages[-1].reason, pages[-1].eof) == ("partial", "job-limit", True)
    assert len(conversation.text(receipt)) == full


@pytest.mark.asyncio
async def test_h6_037_what_a_killed_supervisor_had_reserved_is_free_again(
    conversation: Conversation, leftover: Path
) -> None:
    """H6-037 (gtsteffaniak/filebrowser#2806): after a restart nobody could give the reservation back."""
    kept = (leftover / "stdout.live").stat().st_size
    limits = Limits(conversation_bytes=70_000)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        receipt = await supervisor.run("yes | head -c 100000; exit 1", shell=True)
    assert receipt.capture.reason == "conversation-limit"
    assert len(conversation.text(receipt)) == 70_000 - kept


@pytest.mark.asyncio
async def test_h6_040_a_restart_counts_what_is_there_once(conversation: Conversation) -> None:
    """H6-040 (hashicorp/nomad#6172): the free space was taken from what was used, and then used was taken again."""
    limits = Limits(conversation_bytes=100_000)
    receipts: list[Receipt] = []
    for script in ("yes | head -c 40000; exit 1", "yes | head -c 30000; exit 1", "yes | head -c 90000; exit 1"):
        async with Supervisor(conversation.path, limits=limits) as supervisor:
            receipts.append(await supervisor.run(script, shell=True))
    assert [len(conversation.text(receipt)) for receipt in receipts] == [40_000, 30_000, 30_000]
    assert [receipt.capture.reason for receipt in receipts] == [None, None, "conversation-limit"]


@pytest.mark.asyncio
async def test_h6_045_short_writes_are_gone_on_with(conversation: Conversation, disk: Callable[..., Storage]) -> None:
    """H6-045 (mosquito/aiofile#46): what a short write had not taken was lost in silence."""

    def take_little(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        return os.write(descriptor, memoryview(buffers[0])[:97])

    async with Supervisor(conversation.path, storage=disk(take_little)) as supervisor:
        receipt = await supervisor.run("seq 1 5000; exit 1", shell=True)
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == b"".join(b"%d\n" % number for number in range(1, 5001))


@pytest.mark.asyncio
async def test_h6_078_an_output_is_kept_whichever_ceiling_the_preview_has_reached(
    conversation: Conversation,
) -> None:
    """H6-078 (earendil-works/pi#2852): it was clipped by its lines, spilled by its bytes only, and so lost."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["seq", "3000"])
    facts = stdout_of(receipt)
    whole = b"".join(b"%d\n" % number for number in range(1, 3001))
    assert facts.preview is not None
    assert facts.preview.state == "clipped"
    assert len(whole) < facts.preview.budget_bytes  # over the ceiling of characters, under that of bytes
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == whole


@pytest.mark.parametrize("quiet", [False, True])
def test_h6_083_a_secret_is_found_wherever_it_is_split(quiet: bool) -> None:  # noqa: FBT001
    """H6-083 (diegosouzapw/OmniRoute#13837): each chunk was searched alone; every offset is tried, and a pause."""
    secret = b"s3cr3t-t0ken-that-is-split"
    text = b"before " + secret + b" after"
    needles = NeedleSet.build({"TOKEN": secret})
    whole = Sanitizer(needles)
    expected = whole.feed(text) + whole.finish()
    assert secret not in expected
    assert expected.startswith(b"before [")
    for offset in range(len(text) + 1):
        parts = Sanitizer(needles)
        first = parts.feed(text[:offset])
        if quiet:
            first += parts.quiet()
        assert first + parts.feed(text[offset:]) + parts.finish() == expected


def test_h6_088_a_write_that_never_returns_does_not_hold_up_the_interpreters_exit(
    conversation: Conversation, host_program: Callable[..., list[str]], loop_module: str
) -> None:
    """H6-088 (python/cpython#111358): `asyncio.run` waited for its executor's threads, and Ctrl-C did nothing."""
    command = host_program("stuck_host", loop_module, str(conversation.path))
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    assert seen["code"] == 5
    assert seen["reason"] in {"writer-stuck", "writer-stalled"}  # whether the output ended before the patience
    assert seen["threads"] >= 1  # still in the call, and left behind
