"""What a child gets to read: nothing, bytes, an async iterable, or what the caller writes (F7)."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import PIPE, Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

LARGE = b"".join(b"%07d\n" % number for number in range(640_000))
"""5 MB: more than every pipe and buffer on the way together."""


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    """Yield `data` in pieces."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def test_without_stdin_a_child_reads_an_end_of_file(conversation: Conversation) -> None:
    """It is the null device, not ours and not a terminal."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("cat; readlink /proc/self/fd/0", shell=True)
    assert receipt.stdout == "/dev/null\n"


@pytest.mark.parametrize("kind", ["bytes", "iterable"])
async def test_five_megabytes_go_through_cat_unchanged(conversation: Conversation, kind: str) -> None:
    """Neither direction waits for the other for ever, and the end is told."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["cat"], stdin=LARGE if kind == "bytes" else pieces(LARGE, 100_003))
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert receipt.ok
    assert receipt.capture.state == "complete"
    assert facts.sha256 == hashlib.sha256(LARGE).hexdigest()


async def test_empty_bytes_are_an_end_of_file(conversation: Conversation) -> None:
    """They are a stdin of their own: an empty pipe, whose end comes at once."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("cat; echo done", shell=True, stdin=b"")
    assert receipt.stdout == "done\n"


async def test_a_pipe_is_written_until_its_end_of_file(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """The caller sees the answer before it writes on; after the end nothing more can be written."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE, window_bytes=1024)
        await job.write(b"one\n")
        assert await first_text(job) == "one\n"
        await job.write(b"two\n")
        await job.write_eof()
        await job.write_eof()
        with pytest.raises(BrokenPipeError):
            await job.write(b"three\n")
        receipt = await job.wait()
        with pytest.raises(BrokenPipeError):
            await job.write(b"four\n")
        await job.write_eof()
    assert conversation.text(receipt) == b"one\ntwo\n"


async def test_writing_waits_for_a_child_that_reads_slowly(
    conversation: Conversation, program: Callable[..., list[str]], first_text: Callable[..., Any]
) -> None:
    """The buffer is bounded: the writer is held up until the child reads (B3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("late_copier"), stdin=PIPE, window_bytes=1024)
        await first_text(job)
        writing = asyncio.create_task(job.write(LARGE))
        _, pending = await asyncio.wait({writing}, timeout=0.05)
        assert pending
        await job.send_signal(signal.SIGUSR1)
        await writing
        await job.write_eof()
        receipt = await job.wait()
    assert conversation.text(receipt) == b"ready\n" + LARGE


@pytest.mark.parametrize("kind", ["bytes", "iterable", "pipe"])
async def test_a_child_that_never_reads_exits_as_it_likes(conversation: Conversation, kind: str) -> None:
    """What it did not want is no error of the job, and nobody waits for it."""
    given: Any = {"bytes": LARGE, "iterable": pieces(LARGE, 100_003), "pipe": PIPE}[kind]
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "echo out; exit 6"], stdin=given)
        receipt = await job.wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 6)
    assert receipt.capture.state == "complete"
    assert "stdin-source-failed" not in receipt.limitations


async def test_a_child_that_never_reads_can_be_ended(conversation: Conversation) -> None:
    """A full pipe holds up the feeder only."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sleep", "60"], stdin=LARGE, time_limit=0.2)
    assert receipt.process is not None
    assert receipt.process.reason == "time-limit"


async def test_an_iterable_that_never_ends_is_given_up_with_the_child(conversation: Conversation) -> None:
    """Its generator is closed, so whatever it holds is released."""
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield b"first\n"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["head", "-n", "1"], stdin=endless())
        assert receipt.ok
        assert receipt.stdout == "first\n"
        async with asyncio.timeout(5):
            await closed.wait()


async def test_an_iterable_that_raises_gives_the_child_its_end_of_file(conversation: Conversation) -> None:
    """The error is the caller's own: the loop's handler gets it, the receipt names it, the child goes on."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def failing() -> AsyncIterator[bytes]:
        yield b"before\n"
        raise LookupError("private detail")

    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("cat; exit 5", shell=True, stdin=failing())
    assert receipt.process is not None
    assert receipt.process.code == 5
    assert receipt.stdout == "before\n"
    assert "stdin-source-failed" in receipt.limitations
    assert b"private detail" not in receipt.to_json()
    assert [type(context["exception"]) for context in told] == [LookupError]


async def test_writing_needs_an_open_pipe(conversation: Conversation) -> None:
    """Asking for it on a job without one is the caller's mistake."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["true"], stdin=b"given")
        with pytest.raises(ValueError, match="PIPE"):
            await job.write(b"more")
        with pytest.raises(ValueError, match="PIPE"):
            await job.write_eof()
        with pytest.raises(TypeError):
            await supervisor.run(["true"], stdin="text")  # type: ignore[arg-type]
        await job.wait()
