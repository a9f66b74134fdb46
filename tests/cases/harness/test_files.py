"""Reports of full disks, of files that others can read or plant, and of clean-ups that take too much (B5, D)."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import PIPE, LiveCapture, Supervisor, list_captures, recover, remove_captures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Conversation

    from supervisor.storage import Storage

pytestmark = pytest.mark.asyncio


async def test_bug_050_a_full_disk_ends_one_capture(
    conversation: Conversation,
    disk: Callable[..., Storage],
    process_of: Callable[..., Any],
    stream_of: Callable[..., Any],
) -> None:
    """BUG-050 (zhu1090093659/dsh-web#1424): ENOSPC is an unhandled exception and ends the whole process (B5)."""
    room = 100_000

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = os.write(descriptor, b"".join(buffers)[:room])
        room -= taken
        return taken

    async with Supervisor(conversation.path, storage=disk(write, ["stdout.live"], most=1)) as supervisor:
        full = await supervisor.start(
            "head -c 500000 /dev/zero | tr '\\0' e; read -r x; exit 4", shell=True, stdin=PIPE
        )
        other = await supervisor.start("head -c 500000 /dev/zero | tr '\\0' o", shell=True)
        fine = await other.wait()
        await full.write(b"\n")
        receipt = await full.wait()
    assert process_of(receipt).code == 4
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    assert conversation.text(receipt) == b"e" * 100_000
    assert stream_of(receipt).raw.observed == 500_000
    assert conversation.published(receipt) == receipt
    assert (fine.capture.state, conversation.text(fine)) == ("complete", b"o" * 500_000)


async def test_bug_051_a_short_write_is_counted_as_it_was(
    conversation: Conversation, disk: Callable[..., Storage], stream_of: Callable[..., Any]
) -> None:
    """BUG-051 (python os.write short-write class; coreybutler/node-linux#17): it is taken for a full success (B5)."""
    calls = 0

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return os.write(descriptor, b"".join(buffers)[:1096])

    script = "head -c 3000 /dev/zero | tr '\\0' f; exec grep SigIgn /proc/self/status >&2"
    async with Supervisor(conversation.path, storage=disk(write, ["stdout.live"])) as supervisor:
        receipt = await (await supervisor.start(script, shell=True)).wait()
    facts = stream_of(receipt)
    assert conversation.text(receipt) == b"f" * 1096
    assert (facts.committed, facts.uncommitted, facts.raw.observed) == (1096, 3000 - 1096, 3000)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN  # Python's own, lest a file-size limit ends the host
    assert int(receipt.stderr.split()[1], 16) >> signal.SIGXFSZ - 1 & 1 == 0


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
async def test_bug_091_files_are_private_from_their_creation(
    conversation: Conversation, until: Callable[..., Any], umask: int
) -> None:
    """BUG-091 (earendil-works/pi#7521; anthropics/claude-code#26362): the whole output is in a 0644 file (D2)."""

    def modes() -> set[tuple[bool, int]]:
        inside = [path.lstat().st_mode for path in (conversation.path / "tool-outputs").rglob("*")]
        return {(mode & 0o40000 != 0, mode & 0o777) for mode in inside}

    before = os.umask(umask)
    try:
        async with Supervisor(conversation.path) as supervisor:
            job = await supervisor.start("head -c 200000 /dev/zero | tr '\\0' p; cat", shell=True, stdin=PIPE)
            await until(lambda: conversation.holding(b"p" * 1000))
            assert modes() == {(True, 0o700), (False, 0o600)}
            await job.write_eof()
            await job.wait()
            assert modes() == {(True, 0o700), (False, 0o600)}
    finally:
        os.umask(before)


@pytest.mark.parametrize("place", ["tool-outputs", "tool-outputs/captures"])
async def test_bug_092_a_planted_symlink_is_refused(
    conversation: Conversation, tmp_path: Path, process_of: Callable[..., Any], place: str
) -> None:
    """BUG-092 (anthropics/claude-code#14085; 0x4m4/hexstrike-ai#241; node-js-libs/cli#81): a victim is written (D2)."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o755)
    link = conversation.path / place
    link.parent.mkdir(mode=0o700, exist_ok=True)
    link.symlink_to(victim)
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("head -c 100000 /dev/zero | tr '\\0' l", shell=True)
    assert process_of(receipt).code == 0
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "unsafe-directory")
    assert list(victim.iterdir()) == []
    assert victim.stat().st_mode & 0o777 == 0o755
    assert link.is_symlink()


async def test_bug_094_equal_jobs_have_captures_of_their_own(
    conversation: Conversation, stream_of: Callable[..., Any]
) -> None:
    """BUG-094 (google-gemini/gemini-cli background log (wx on background-<pid>.log; read in source)) (A6, D2)."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        jobs = await asyncio.gather(*(supervisor.start(["echo", "same"], label="same") for _ in range(20)))
        receipts = await asyncio.gather(*(job.wait() for job in jobs))
    assert len({receipt.capture_id for receipt in receipts}) == 20
    assert {receipt.capture.state for receipt in receipts} == {"complete"}
    assert len({stream_of(receipt).sha256 for receipt in receipts}) == 1
    assert len({(conversation.path / stream_of(receipt).reference).stat().st_ino for receipt in receipts}) == 20


async def test_bug_118_a_clean_up_leaves_a_siblings_live_job_alone(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """BUG-118 (anthropics/claude-code#91402; anthropics/claude-code#30583): its files are deleted by age (D1, D6)."""
    async with Supervisor(conversation.path) as first:
        job = await first.start("echo alive; read -r line; echo end", shell=True, stdin=PIPE)
        await until(lambda: conversation.holding(b"alive\n"))
        for path in conversation.path.rglob("*"):
            os.utime(path, (0, 0))
        async with Supervisor(conversation.path) as second:
            await second.run(["false"])
            assert await recover(conversation.path) == []
            with pytest.raises(LiveCapture):
                await remove_captures(conversation.path, [job.capture_id])
        states = {receipt.capture_id: receipt.capture.state for receipt in await list_captures(conversation.path)}
        assert states[job.capture_id] == "pending"
        await job.write(b"\n")
        receipt = await job.wait()
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == b"alive\nend\n"
