"""A disk that is full or hangs, a quota, and what is asked of a disk where it is another system's (B4, B5, D5)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import supervisor as package
from supervisor import PIPE, Limits, Supervisor
from supervisor.storage import Files, files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Conversation

    from supervisor.storage import Storage

PATIENCE: Final = 60.0


@pytest.mark.parametrize("full", ["before", "meanwhile"])
def test_h6_032_a_full_disk_ends_neither_the_wrapper_nor_the_command(mounted: Callable[..., Path], full: str) -> None:
    """H6-032 (coreybutler/node-linux#17): the wrapper itself ended by an ENOSPC that it had not expected."""
    place = mounted("-t", "tmpfs", "-o", "size=256k,mode=0700", "spoolvisor-test")
    if full == "before":
        with (place / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
    command = [sys.executable, "-m", "supervisor", "run", "--dir", str(place)]
    script = "yes | head -c 1000000; echo END; exit 5"
    done = subprocess.run(
        [*command, "--shell", script],
        env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parent.parent)},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, len(done.stdout)) == (5, 1_000_004)
    assert done.stdout.endswith("y\nEND\n")
    assert "Traceback" not in done.stderr
    assert f"capture {'unavailable' if full == 'before' else 'partial'}" in done.stderr
    assert "no-space" in done.stderr


@pytest.mark.asyncio
async def test_h6_035_a_quota_is_reached_before_the_disk_is_full(
    mounted: Callable[..., Path], conversation: Conversation
) -> None:
    """H6-035 (cvat-ai/cvat#4135): the supervisor's log filled the disk, on which others then could not save."""
    disk = type(conversation)(mounted("-t", "tmpfs", "-o", "size=2m,mode=0700", "spoolvisor-test"))
    limits = Limits(job_bytes=700_000, conversation_bytes=1_000_000)
    async with Supervisor(disk.path, limits=limits) as supervisor:
        jobs = [await supervisor.start("yes | head -c 3000000; exit 1", shell=True) for _ in range(4)]
        receipts = [await job.wait() for job in jobs]
        (disk.path / "event").write_bytes(bytes(500_000))
    assert {receipt.capture.reason for receipt in receipts} <= {"job-limit", "conversation-limit"}
    assert sum(len(disk.text(receipt)) for receipt in receipts) <= 1_000_000
    assert all(receipt.durability and receipt.durability.barrier for receipt in receipts)


@pytest.mark.asyncio
@pytest.mark.parametrize("ending", ["go on", "terminate"])
async def test_h6_081_a_part_of_a_secret_never_lies_on_the_disk(
    conversation: Conversation, program: Callable[..., list[str]], until: Callable[..., Any], ending: str
) -> None:
    """H6-081 (buildbuddy-io/buildbuddy#10386): halves of two writes were logged; whole lines have no bound to hold."""
    secret = "0123456789abcdef-kestrel"
    environment = {**os.environ, "SERVICE_TOKEN": secret}
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("split_secret", "SERVICE_TOKEN"), stdin=PIPE, env=environment)
        await until(lambda: (facts := job.receipt.streams["stdout"]) and facts.held == len(secret) // 2)
        live = conversation.captures()[0] / "stdout.live"
        await until(lambda: live.read_bytes() == b"value: ")
        if ending == "go on":
            await job.write(b"go on\n")
            receipt = await job.wait()
        else:
            receipt = await job.terminate()
    marker = b"[REDACTED:SERVICE_TOKEN]"
    assert conversation.text(receipt) == (
        b"value: " + marker + b"\n" + marker if ending == "go on" else b"value: [REDACTED:undecided]"
    )
    assert conversation.holding(secret[:8].encode()) == []


@pytest.mark.asyncio
async def test_h6_090_closing_waits_neither_for_a_full_pipe_nor_for_the_disk_behind_it(
    conversation: Conversation, disk: Callable[..., Storage], until: Callable[..., Any]
) -> None:
    """H6-090 (agronholm/anyio#1166): `aclose` waited for the exit of a child that waited for its pipe to be read."""
    entered, answer = threading.Event(), threading.Event()

    def hang(_descriptor: int, _buffers: Sequence[bytes | memoryview]) -> int:
        entered.set()
        answer.wait(PATIENCE)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    limits = Limits(stall_timeout=0.5, queue_bytes=64 * 1024)
    try:
        async with asyncio.timeout(PATIENCE):
            async with Supervisor(conversation.path, limits=limits, storage=disk(hang)) as supervisor:
                job = await supervisor.start(["yes"], kill_after=PATIENCE)
                await until(entered.is_set)
                began = time.monotonic()
            took = time.monotonic() - began
        assert not answer.is_set()
        assert took < PATIENCE / 6
        assert job.receipt.process is not None
        assert (job.receipt.process.state, job.receipt.process.reason) == ("cancelled", "supervisor-shutdown")
        assert not Path(f"/proc/{job.pid}").exists()  # noqa: ASYNC240 - nothing else is on this loop
    finally:
        answer.set()
        for thread in threading.enumerate():
            if thread.name.startswith("spoolvisor-writer"):
                thread.join(5)


def test_h6_084_the_drives_cache_is_flushed_where_that_can_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, conversation: Conversation
) -> None:
    """H6-084 (redis/redis#9545): on macOS fsync leaves the data in the drive's cache; this system stands in for it."""
    asked: list[tuple[str, int]] = []
    answers: list[int] = []

    def full_sync(descriptor: int, command: int) -> int:
        asked.append(("full", command))
        if answers:
            raise OSError(answers[0], os.strerror(answers.pop()))
        return descriptor

    monkeypatch.setattr(files.sys, "platform", "darwin")
    monkeypatch.setattr(files.fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(files.fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda descriptor: asked.append(("plain", descriptor)))
    number = os.open(conversation.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for call in (Files().sync_file, Files().sync_directory):
            asked.clear()
            call(number)
            assert asked == [("full", 51)]
            for unable in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                asked.clear()
                answers[:] = [unable]
                call(number)
                assert asked == [("full", 51), ("plain", number)]
            asked.clear()
            answers[:] = [errno.EIO]
            with pytest.raises(OSError, match="Input/output error"):
                call(number)
            assert asked == [("full", 51)]
    finally:
        os.close(number)
