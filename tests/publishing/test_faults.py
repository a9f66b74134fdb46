"""A disk that fails in the middle, or just before publication: the receipt says what is kept, and never too much."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

import pytest

from supervisor import Limits, Receipt, list_captures, open_capture, publish_text
from supervisor.storage import Files, LocalStorage
from supervisor.testing import FailingStorage

if TYPE_CHECKING:
    from conftest import Conversation


class FailingCall(Files):
    """The system's calls, of which those of one name fail for names that end so."""

    def __init__(self, name: str, ending: str) -> None:
        self._failing = name, ending

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Rename, or fail."""
        self._check("rename_exclusive", target)
        super().rename_exclusive(source, target, parent=parent)

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create, or fail."""
        self._check("create", name)
        return super().create(name, parent=parent, flags=flags)

    def _check(self, name: str, subject: str) -> None:
        if name == self._failing[0] and subject.endswith(self._failing[1]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.asyncio
@pytest.mark.parametrize(("number", "reason"), [(errno.ENOSPC, "no-space"), (errno.EIO, "io-error")])
async def test_a_disk_that_fails_in_the_middle_keeps_the_prefix(
    conversation: Conversation, number: int, reason: str
) -> None:
    """The boundary is the file's size, and the end is in the preview [B5]."""
    storage = FailingStorage()
    storage.fill_after(1000, number=number)
    async with open_capture(conversation.path, source="browser", storage=storage) as capture:
        await capture.write("x" * 600 + "\n")
        await capture.write("y" * 600 + "\n")
        await capture.write("END\n")
    receipt = capture.receipt
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", reason)
    assert conversation.text(receipt) == (b"x" * 600 + b"\n" + b"y" * 600)[:1000]
    assert receipt.stdout.endswith("END\n")
    assert await list_captures(conversation.path) == [receipt]


@pytest.mark.asyncio
async def test_short_writes_lose_nothing(conversation: Conversation) -> None:
    """Three bytes at a time."""
    storage = FailingStorage()
    storage.write_short(3)
    text = "".join(f"{number}\n" for number in range(300))
    receipt = await publish_text(conversation.path, text, storage=storage)
    assert (receipt.capture.state, conversation.text(receipt).decode()) == ("complete", text)


@pytest.mark.asyncio
@pytest.mark.parametrize("step", ["text", "receipt", "directory"])
async def test_a_sync_that_fails_is_told(conversation: Conversation, step: str) -> None:
    """Of text or names it costs `complete`; of the receipt it costs the barrier [D4]."""
    storage = FailingStorage()
    storage.fail_sync(step)  # type: ignore[arg-type]
    receipt = await publish_text(conversation.path, "one\n", storage=storage)
    assert receipt.capture.state == ("complete" if step == "receipt" else "partial")
    assert receipt.durability is not None
    assert not receipt.durability.barrier
    assert receipt.durability.error


@pytest.mark.asyncio
async def test_a_failure_before_publication_leaves_a_leftover(conversation: Conversation) -> None:
    """The receipt comes from memory and says that it is not on disk; on disk the capture is partial for ever [D6]."""
    storage = LocalStorage(FailingCall("rename_exclusive", "receipt.json"))
    receipt = await publish_text(conversation.path, "one\n", storage=storage)
    assert receipt.durability is not None
    assert (receipt.durability.barrier, receipt.stdout) == (False, "one\n")
    assert "publishing the receipt" in str(receipt.durability.error)
    assert not (conversation.of(receipt) / "receipt.json").exists()
    assert conversation.text(receipt) == b"one\n"
    (listed,) = await list_captures(conversation.path)
    assert (listed.capture.state, listed.capture.reason) == ("partial", "supervisor-lost")


@pytest.mark.asyncio
async def test_a_launch_record_that_cannot_be_written_ends_persistence(conversation: Conversation) -> None:
    """Nobody could tell what the files are of; the text is in the preview."""
    storage = LocalStorage(FailingCall("create", "unfinished"))
    receipt = await publish_text(conversation.path, "one\n", storage=storage)
    assert (receipt.capture.state, receipt.capture.reason, receipt.stdout) == ("partial", "io-error", "one\n")
    assert conversation.text(receipt) == b""


@pytest.mark.asyncio
async def test_a_write_that_never_returns_holds_nobody_up(conversation: Conversation) -> None:
    """The writer goes on after `stall_timeout`, and the end is bounded [B4, D8]."""
    storage = FailingStorage()
    storage.hold_writes()
    limits = Limits(stall_timeout=0.2, queue_bytes=1000)
    try:
        async with asyncio.timeout(20):
            async with open_capture(conversation.path, source="browser", storage=storage, limits=limits) as capture:
                for _ in range(8):
                    await capture.write("x" * 400_000)
    finally:
        storage.release()
    assert (capture.receipt.capture.state, capture.receipt.capture.reason) == ("failed", "writer-stuck")
    assert Receipt.parse(capture.receipt.to_json()).streams["stdout"] is not None
