"""`keep="raw"`: a second, unsanitised file, asked for, counted and named, whose troubles are its own (B8)."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Limits, SpawnError, Supervisor, list_captures, recover, remove_captures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conftest import Conversation

    from supervisor import Receipt
    from supervisor.sansio.receipt import RawCopy, StreamFacts
    from supervisor.storage import Storage

SECRET: Final = "tR7vQ2xLmW4z" + "K9pBnY5cJ8hF"
RAW: Final = b"\x1b[1m" + SECRET.encode() + b"\x1b[0m\xff\x00 50%\r99%\r\n"
COPIES: Final = ("stdout.raw.live", "stderr.raw.live")
COPY_ALONE: Final = ("stdout.raw.live",)


def facts_of(receipt: Receipt, stream: str = "stdout") -> StreamFacts:
    """Return what the receipt says of a stream."""
    facts = receipt.streams[stream]  # type: ignore[index]
    assert facts is not None
    return facts


def copy_of(receipt: Receipt, stream: str = "stdout") -> RawCopy:
    """Return what it says of the stream's copy."""
    copy = facts_of(receipt, stream).raw_copy
    assert copy is not None
    return copy


def copied(conversation: Conversation, receipt: Receipt, stream: str = "stdout") -> bytes:
    """Return the copy's bytes, after checking that the receipt's size is the file's."""
    copy = copy_of(receipt, stream)
    assert copy.path == str(conversation.path / copy.reference)
    data = (conversation.path / copy.reference).read_bytes()
    assert len(data) == copy.size
    return data


@contextmanager
def killed_in_the_end(command: list[str]) -> Iterator[None]:
    """Run a host that says its child's pid, and kill both after the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        child = int(host.stdout.readline())
        yield
        host.kill()
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


@pytest.mark.asyncio
@pytest.mark.parametrize("kept", [False, True])
async def test_the_copy_has_the_bytes_as_they_were_and_says_that_it_is_not_sanitised(
    conversation: Conversation,
    kept: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    """Beside the text, which is what it is without a copy; a small success of `run` has files then too."""
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        options: dict[str, Any] = {"shell": True, "stdin": RAW, "keep": "raw"}
        if kept:
            receipt = await (await supervisor.start("cat; printf oops >&2", **options)).wait()
        else:
            receipt = await supervisor.run("cat; printf oops >&2", **options)
    assert conversation.published(receipt) == receipt
    assert receipt.capture.state == "complete"
    assert copied(conversation, receipt) == RAW
    assert copied(conversation, receipt, "stderr") == b"oops"
    assert conversation.text(receipt) == "[REDACTED:key]\ufffd 50%\n99%\n".encode()
    copy = copy_of(receipt)
    assert (copy.state, copy.reason, copy.sanitised) == ("complete", None, False)
    files = {path.name: path.stat().st_mode & 0o777 for path in conversation.captures_of(receipt).iterdir()}
    assert {"stdout.log", "stderr.log", "stdout.raw", "stderr.raw"} < set(files)
    assert set(files.values()) == {0o600}
    assert [path.name for path in conversation.holding(SECRET.encode())] == ["stdout.raw"]
    assert f"unsanitised in {copy.path}" in receipt.render()
    assert SECRET not in receipt.render()
    assert facts_of(receipt.for_sharing()).raw_copy is None


@pytest.mark.asyncio
async def test_nothing_is_copied_unless_asked_for(conversation: Conversation) -> None:
    """Never a second copy in silence."""
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        receipt = await supervisor.run("cat; exit 1", shell=True, stdin=RAW)
    assert facts_of(receipt).raw_copy is None
    assert conversation.holding(SECRET.encode()) == []


@pytest.mark.asyncio
async def test_a_live_copy_is_named_and_a_merged_stream_has_one(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """The snapshot has its live name and no promise; the other stream does not exist."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("echo a; echo b >&2; exec sleep 60", shell=True, merge=True, keep="raw")
        await until(lambda: copy_of(job.receipt).size == 4)
        copy = copy_of(job.receipt)
        assert copy.reference.endswith("/stdout.raw.live")
        assert (copy.state, copy.reason) == ("pending", None)
        receipt = await job.terminate()
    assert copied(conversation, receipt) == b"a\nb\n"
    assert copy_of(receipt).state == "complete"
    assert receipt.streams["stderr"] is None


@pytest.mark.asyncio
async def test_the_limit_ends_the_copy_at_half_of_it_and_the_text_goes_on(conversation: Conversation) -> None:
    """Bytes that are no text count too; what the copy leaves is the text's (D5)."""
    async with Supervisor(conversation.path, limits=Limits(job_bytes=100_000, stderr_reserve_bytes=0)) as supervisor:
        script = "head -c 500000 /dev/zero; head -c 30000 /dev/zero | tr '\\0' x; exit 3"
        receipt = await supervisor.run(script, shell=True, keep="raw")
    assert await conversation.used() == 80_000
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == b"x" * 30_000
    assert copied(conversation, receipt) == bytes(50_000)
    assert (copy_of(receipt).state, copy_of(receipt).reason) == ("partial", "job-limit")
    assert "unsanitised and partial (job-limit) in" in receipt.render()


@pytest.mark.asyncio
@pytest.mark.parametrize(("number", "reason"), [(errno.ENOSPC, "no-space"), (errno.EIO, "io-error")])
async def test_a_fault_of_the_copy_is_the_copys(
    conversation: Conversation, disk: Callable[..., Storage], number: int, reason: str
) -> None:
    """After a part of it was written: the boundary is the file's size, and the text is complete."""
    written = 0

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        nonlocal written
        if written:
            raise OSError(number, os.strerror(number))
        written = os.write(descriptor, buffers[0][:1000])
        return written

    async with Supervisor(conversation.path, storage=disk(write, COPIES)) as supervisor:
        receipt = await supervisor.run("yes | head -c 300000; exit 4", shell=True, keep="raw")
    assert receipt.capture.state == "complete"
    assert receipt.durability is not None
    assert receipt.durability.barrier
    assert len(conversation.text(receipt)) == 300_000
    assert copied(conversation, receipt) == b"y\n" * 500
    assert (copy_of(receipt).state, copy_of(receipt).reason) == ("partial", reason)


@pytest.mark.asyncio
async def test_a_fault_of_the_text_is_the_texts(conversation: Conversation, disk: Callable[..., Storage]) -> None:
    """The copy goes on without it."""

    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with Supervisor(conversation.path, storage=disk(write)) as supervisor:
        receipt = await supervisor.run("yes | head -c 300000; exit 4", shell=True, keep="raw")
    assert (facts_of(receipt).state, facts_of(receipt).reason) == ("partial", "no-space")
    assert copied(conversation, receipt) == b"y\n" * 150_000
    assert copy_of(receipt).state == "complete"


@pytest.mark.realtime
@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1000, 8_000_000])
async def test_a_copy_that_hangs_is_given_up_and_the_text_is_whole(
    conversation: Conversation, disk: Callable[..., Storage], size: int
) -> None:
    """At the end, or when it has held the child up for `stall_timeout`; nobody knows its length (B4, D8)."""
    release = threading.Event()

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        release.wait()
        return os.writev(descriptor, buffers)

    limits = Limits(stall_timeout=1.5)
    try:
        async with (
            asyncio.timeout(30),
            Supervisor(conversation.path, limits=limits, storage=disk(write, COPY_ALONE)) as supervisor,
        ):
            job = await supervisor.start(f"yes | head -c {size}; exit 4", shell=True, keep="raw")
            receipt = await job.wait()
            release.set()
    finally:
        release.set()
    assert receipt.process is not None
    assert receipt.process.code == 4
    assert (facts_of(receipt).state, facts_of(receipt).committed) == ("complete", size)
    copy = copy_of(receipt)
    assert (copy.state, copy.reason, copy.size) == ("failed", "writer-stuck", None)
    assert copy.reference.endswith("/stdout.raw.live")
    assert copy_of(receipt, "stderr").state == "complete"
    assert receipt.durability is not None
    assert receipt.durability.error is None


@pytest.mark.asyncio
async def test_a_copy_that_is_slow_slows_the_child_and_is_whole(
    conversation: Conversation, disk: Callable[..., Storage]
) -> None:
    """It is behind the text by one batch at most, and each of its writes makes progress (B3, B4)."""
    writes = 0

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        nonlocal writes
        writes += 1
        threading.Event().wait(0.02)
        return os.writev(descriptor, buffers)

    async with Supervisor(conversation.path, storage=disk(write, COPY_ALONE)) as supervisor:
        receipt = await supervisor.run("head -c 6000000 /dev/zero", shell=True, keep="raw")
    assert writes > 5
    assert copied(conversation, receipt) == bytes(6_000_000)
    assert (copy_of(receipt).state, receipt.capture.state) == ("complete", "complete")


@pytest.mark.asyncio
async def test_a_pipe_that_stays_open_makes_the_copy_partial_too(conversation: Conversation) -> None:
    """What came after the drain window is in neither (F2)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo said; sleep 60 & exit 0", shell=True, keep="raw", drain_timeout=0.05)
        assert receipt.process is not None
        for pid in receipt.process.survivors or ():
            os.kill(pid, signal.SIGKILL)
    assert copied(conversation, receipt) == b"said\n"
    assert (copy_of(receipt).state, copy_of(receipt).reason) == ("partial", "drain-timeout")


@pytest.mark.asyncio
async def test_without_a_capture_there_is_no_copy(conversation: Conversation) -> None:
    """No directory, no file; a command that does not start leaves none behind (D1, F6)."""
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(["echo", "text"], keep="raw")
    assert (receipt.stdout, facts_of(receipt).reason, facts_of(receipt).raw_copy) == ("text\n", "no-directory", None)
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(SpawnError):
            await supervisor.run(["/nonexistent/program"], keep="raw")
    assert list((conversation.path / "tool-outputs" / "captures").iterdir()) == []


@pytest.mark.asyncio
async def test_the_copy_of_a_killed_supervisor_is_recovered_counted_and_removed(
    conversation: Conversation, host_program: Callable[..., list[str]], until: Callable[..., Any]
) -> None:
    """It is partial like the text, gets its name, counts against the allowance, and goes with the capture (D5, D6)."""
    with killed_in_the_end(host_program("raw_host", str(conversation.path))):
        (capture,) = conversation.captures()
        await until(lambda: (capture / "stdout.raw.live").stat().st_size == 7)
        (live,) = await list_captures(conversation.path)
        assert (copy_of(live).state, copy_of(live).size) == ("pending", 7)
    await recover(conversation.path)
    (receipt,) = await list_captures(conversation.path)
    assert conversation.published(receipt) == receipt
    assert copied(conversation, receipt) == b"raw\x00\x1b[m"
    assert (copy_of(receipt).state, copy_of(receipt).reason) == ("partial", "supervisor-lost")
    assert copy_of(receipt).reference.endswith("/stdout.raw")
    assert await conversation.used() == len(b"raw" + b"raw\x00\x1b[m")
    await remove_captures(conversation.path, [receipt.capture_id])
    assert conversation.captures() == []
