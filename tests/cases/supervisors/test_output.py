"""No byte, line, stream, consumer or decoder error stops the reading; a follower misses nothing (B1-B5, B8, E1-E4)."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import supervisor as package
from supervisor import CursorError, Limits, Receipt, StorageError, Supervisor, follow_capture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Conversation

    from supervisor.sansio.receipt import StreamFacts
    from supervisor.storage import Storage

PATIENCE: Final = 60.0


def facts_of(receipt: Receipt) -> StreamFacts:
    """Return the facts about stdout."""
    facts = receipt.streams["stdout"]
    assert facts is not None
    return facts


def code_of(receipt: Receipt) -> int | None:
    """Return the exit code."""
    assert receipt.process is not None
    return receipt.process.code


def test_h5_025_a_reader_that_goes_away_leaves_the_job_owned(tmp_path: Path) -> None:
    """H5-025 (fhunleth/muontrap#58): `| head` ended the wrapper by EPIPE, and its child went on, orphaned."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"echo first; read line < {fifo}; yes | head -c 300000; exit 5"
    source = str(Path(package.__file__).parents[1])
    environment = {**os.environ, "SPOOLVISOR_DIR": str(tmp_path / "kept"), "PYTHONPATH": source}
    command = [sys.executable, "-m", "supervisor", "run", "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        process.stdout.close()
        fifo.write_bytes(b"go\n")
        assert process.wait(PATIENCE) == 5
    (kept,) = (tmp_path / "kept").glob("tool-outputs/captures/*/stdout.log")
    assert kept.read_bytes() == b"first\n" + b"y\n" * 150_000


@pytest.mark.asyncio
async def test_h5_034_an_invalid_byte_kills_no_reader(conversation: Conversation) -> None:
    """H5-034 (nickstenning/honcho#54): a UnicodeDecodeError ended the reader, and the child blocked on a full pipe."""
    script = "printf 'ok\\n\\216\\n'; yes | head -c 200000; echo END; exit 3"
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", script])
    assert code_of(receipt) == 3
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == "ok\n\ufffd\n".encode() + b"y\n" * 100_000 + b"END\n"
    assert facts_of(receipt).raw.observed == facts_of(receipt).raw.accepted == 200_009
    assert facts_of(receipt).replaced == 1


@pytest.mark.asyncio
async def test_h5_036_a_long_line_comes_in_pages_and_raises_nothing(conversation: Conversation) -> None:
    """H5-036 (quantile-development/dagster-meltano#25): `async for line` raised ValueError and dropped the line."""
    script = "head -c 70000 /dev/zero | tr '\\0' a; echo; echo after"
    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script])
        pages = [page async for page in job.follow(max_bytes=4096)]
        await job.wait()
    assert "".join(page.text for page in pages) == "a" * 70_000 + "\nafter\n"
    assert max(len(page.text) for page in pages) <= 4096
    assert [page.eof for page in pages] == [False] * (len(pages) - 1) + [True]


@pytest.mark.asyncio
async def test_h5_037_a_line_of_any_length_is_followed_by_the_next(conversation: Conversation) -> None:
    """H5-037 (moby/moby#13333): after a line over 64 KiB nothing was ever logged again; here around every buffer."""
    lengths = [size + more for size in (4096, 65536, 262144, 1048576) for more in (-1, 0, 1)]
    async with Supervisor(conversation.path) as supervisor:
        receipts = await asyncio.gather(
            *(
                supervisor.run(["sh", "-c", f"head -c {length} /dev/zero | tr '\\0' a; echo; echo after; exit 1"])
                for length in lengths
            )
        )
    for length, receipt in zip(lengths, receipts, strict=True):
        assert receipt.capture.state == "complete"
        assert conversation.text(receipt) == b"a" * length + b"\nafter\n"
        assert facts_of(receipt).lines == 2


@pytest.mark.asyncio
async def test_h5_040_a_stream_that_nobody_reads_blocks_no_child(conversation: Conversation) -> None:
    """H5-040 (circus-tent/circus#403): the child printed on a stream that was not drained, and hung."""
    script = "head -c 200000 /dev/zero | tr '\\0' x >&2; echo done"
    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path) as supervisor:
        kept = await (await supervisor.start(["sh", "-c", script])).wait()
        dropped = await supervisor.run(["sh", "-c", script], capture="none")
    assert (kept.stdout, code_of(kept)) == ("done\n", 0)
    assert conversation.text(kept, "stderr") == b"x" * 200_000
    assert code_of(dropped) == 0
    assert dropped.streams["stderr"] is not None
    assert dropped.streams["stderr"].raw.discarded == 200_000


@pytest.mark.asyncio
async def test_h5_041_a_follower_sees_the_last_line(conversation: Conversation) -> None:
    """H5-041 (containers/podman#10675): it saw "exited" before it had read what was written just before."""

    async def followed(supervisor: Supervisor) -> set[str]:
        job = await supervisor.start(["sh", "-c", "echo hi; echo DONE"])
        inside = "".join([page.text async for page in job.follow()])
        outside = "".join([page.text async for page in follow_capture(conversation.path, job.capture_id)])
        return {inside, outside}

    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path, durability="none") as supervisor:
        for _ in range(4):
            assert await asyncio.gather(*(followed(supervisor) for _ in range(10))) == [{"hi\nDONE\n"}] * 10


@pytest.mark.asyncio
async def test_h5_047_what_a_limit_leaves_is_the_beginning_and_the_preview_has_the_end(
    conversation: Conversation,
) -> None:
    """H5-047 (docker/docs#8629): a "ring" dropped the newest lines, and with them the error at the end."""
    limits = Limits(job_bytes=200_000, stderr_reserve_bytes=0)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        receipt = await supervisor.run("seq 1 200000; echo the error", shell=True)
    whole = b"".join(b"%d\n" % number for number in range(1, 200_001)) + b"the error\n"
    kept = conversation.text(receipt)
    assert len(kept) == 200_000
    assert whole.startswith(kept)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "job-limit")
    assert receipt.stdout.endswith("\n199999\n200000\nthe error\n")
    assert facts_of(receipt).lines == 200_001


@pytest.mark.asyncio
async def test_h5_048_after_one_failed_write_no_later_text_is_kept(
    conversation: Conversation, disk: Callable[..., Storage]
) -> None:
    """H5-048 (moby/moby#52390): when space came back the log went on, with a hole that looked like no hole."""
    calls = 0

    def fail_once(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(descriptor, memoryview(buffers[0])[:1000])

    async with Supervisor(conversation.path, storage=disk(fail_once, ("stdout.live",))) as supervisor:
        receipt = await supervisor.run("seq 1 9000; sleep 0.1; seq 9001 200000", shell=True)
    whole = b"".join(b"%d\n" % number for number in range(1, 200_001))
    assert conversation.text(receipt) == whole[:1000]
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    raw = facts_of(receipt).raw
    assert raw.observed == len(whole) == (raw.accepted or 0) + (raw.discarded or 0)
    assert facts_of(receipt).uncommitted == len(whole) - 1000
    assert calls == 2


@pytest.mark.asyncio
async def test_h5_053_a_live_file_that_somebody_truncates_is_noticed(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """H5-053 (kubernetes/kubernetes#64760): copytruncate lost lines, left a hole of NUL, and nobody was told."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        await job.write(b"a" * 1000)
        pages = job.follow()
        assert (await anext(pages)).text == "a" * 1000
        await until(lambda: facts_of(job.receipt).committed == 1000)
        live = conversation.captures()[0] / "stdout.live"
        os.truncate(live, 0)
        await job.write(b"b\n")
        with pytest.raises(CursorError) as caught:
            await anext(pages)
        await job.write_eof()
        receipt = await job.wait()
    assert caught.value.start == 0
    assert caught.value.end in {0, 2}  # what is left of it, before or after the next write
    assert code_of(receipt) == 0
    assert receipt.capture.state != "complete"
    assert receipt.capture.reason == "io-error"
    assert conversation.captures()[0].joinpath("stdout.log").read_bytes() == b"b\n"  # O_APPEND: no hole
    assert receipt.durability is not None
    assert not receipt.durability.barrier


@pytest.mark.asyncio
async def test_h5_054_a_follower_of_a_file_that_was_rotated_does_not_just_fall_silent(
    conversation: Conversation,
) -> None:
    """H5-054 (moby/moby#37646): `logs -f` went on reading the renamed file, in which nothing happened any more."""
    async with asyncio.timeout(PATIENCE), Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        await job.write(b"a\n")
        inside, outside = job.follow(), follow_capture(conversation.path, job.capture_id)
        assert [(await anext(pages)).text for pages in (inside, outside)] == ["a\n", "a\n"]
        live = conversation.captures()[0] / "stdout.live"
        live.rename(live.with_name("stdout.1"))
        live.touch(mode=0o600)
        await job.write(b"b\n")
        for pages in (inside, outside):
            with pytest.raises(StorageError) as caught:
                await anext(pages)
            assert caught.value.reason == "io-error"
        await job.write_eof()
        receipt = await job.wait()
        assert code_of(receipt) == 0
        assert (receipt.capture.state, receipt.capture.reason) == ("partial", "io-error")
        assert not live.with_name("stdout.log").exists(), "what somebody put in its place is no evidence"
        with pytest.raises(StorageError):
            await job.read()
