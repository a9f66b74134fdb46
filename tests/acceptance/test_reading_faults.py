"""Readers of a job when the disk or its owner does what it should not (B4, D1, D8, E1)."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import PIPE, Cursor, Job, Limits, StorageError, Supervisor, following
from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Conversation, PageWithText, Until

    from supervisor.storage import LocalStorage

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 60.0
LINES: Final = 600_000


async def text_of(job: Job) -> str:
    """Follow to the end."""
    return "".join([page.text async for page in job.follow()])


async def test_a_directory_that_vanishes_is_an_error_of_the_reader_alone(
    conversation: Conversation, page_with_text: PageWithText
) -> None:
    """The job ends as it would have; who reads is told that there is nothing left to read (D1)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(b"text\n")
        await page_with_text(job)
        shutil.rmtree(conversation.path / "tool-outputs" / "captures" / job.capture_id)
        with pytest.raises(StorageError) as caught:
            await job.read()
        assert caught.value.reason == "no-directory"
        await job.write_eof()
        receipt = await job.wait()
    assert receipt.process is not None
    assert receipt.process.code == 0


@pytest.mark.realtime
async def test_a_stuck_read_holds_up_nobody_else(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, page_with_text: PageWithText
) -> None:
    """It ends by its deadline as `writer-stuck`; spools have threads of their own (D8, E1)."""
    free = threading.Event()

    class Stuck(Files):
        def read(self, descriptor: int, count: int, *, offset: int) -> bytes:
            free.wait(PATIENCE)
            return super().read(descriptor, count, offset=offset)

    limits = Limits(stall_timeout=0.2)
    async with Supervisor(conversation.path, limits=limits) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(b"text\n")
        await page_with_text(job)
        with monkeypatch.context() as patch:
            patch.setattr(following, "_files", Stuck())
            reads = await asyncio.gather(*(job.read() for _ in range(20)), return_exceptions=True)
        assert {read.reason for read in reads if isinstance(read, StorageError)} == {"writer-stuck"}
        assert len(reads) == 20
        await job.write_eof()
        assert (await job.wait()).capture.state == "complete"
        assert (await job.read()).text == "text\n"
        free.set()


@pytest.mark.realtime
async def test_a_write_that_comes_back_late_is_waited_for(
    conversation: Conversation, disk: Callable[..., LocalStorage], until: Until
) -> None:
    """Persistence was given up, but what the kernel then took is committed text: the end is not before it (B4, E3)."""
    free = threading.Event()

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        free.wait(PATIENCE)
        return os.writev(descriptor, buffers)

    limits = Limits(queue_bytes=65536, stall_timeout=0.1)
    async with (
        Supervisor(conversation.path, limits=limits, storage=disk(write, ["stdout.live"])) as supervisor,
        asyncio.timeout(PATIENCE),
    ):
        job = await supervisor.start(f"seq {LINES}; exec cat", shell=True, stdin=PIPE)
        follower = asyncio.ensure_future(text_of(job))
        stream = job._course.pumps["stdout"].stream
        await until(lambda: stream.reason is not None)
        assert not follower.done()
        assert not (await job.read()).eof
        free.set()
        text = await follower
        assert text
        last = await job.read(cursor=Cursor(job.capture_id, "stdout", 0, len(text)))
        assert (last.state, last.reason, last.eof) == ("partial", "writer-stalled", True)
        await job.write_eof()
        assert text.encode() == conversation.text(await job.wait())
