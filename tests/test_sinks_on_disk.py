"""The boundary that a sink tells, on real files: a full disk, and a write that was given up (contract B4, B5, D8)."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import TYPE_CHECKING, Final

import pytest

from supervisor.limits import Limits
from supervisor.outbox import Outbox
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.retention import Retention
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream, Verdict
from supervisor.sinks import SpoolSink
from supervisor.storage import Files, LocalStorage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PATIENCE: Final = 30.0


def stream() -> Stream:
    """Return a stream without secrets."""
    return Stream("stdout", Sanitizer(NeedleSet.build()), Preview(1000, 4000))


class Choking(Files):
    """A disk that, once `armed`, takes `room` bytes and then fails; or that waits before each write."""

    def __init__(self, room: int | None = None) -> None:
        self.room = room
        self.armed = False
        self.entered = threading.Event()
        self.go = threading.Event()

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Take a part, as writev(2) may."""
        if not self.armed:
            return super().write(descriptor, buffers)
        if self.room is None:
            self.entered.set()
            self.go.wait(PATIENCE)
            return super().write(descriptor, buffers)
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = super().write(descriptor, [memoryview(buffers[0])[: self.room]])
        self.room -= count
        return count


@pytest.mark.asyncio
async def test_the_boundary_on_a_full_disk_is_the_files_size(tmp_path: Path) -> None:
    """Real files: a short write, then ENOSPC in mid-batch (B5)."""
    files = Choking(room=5)
    conversation = await LocalStorage(files).open(tmp_path, limits=Limits(), durability="none")
    capture = await conversation.create_capture("one", ("stdout",))
    files.armed = True
    subject = stream()
    sink = SpoolSink("stdout", capture.spools["stdout"], Retention(Limits()), capture.reservation)
    outbox = Outbox(subject, sink, lambda: None)
    subject.observe(8)
    outbox.put(subject.feed(b"12345678", bulk=False))
    assert await outbox.flush(PATIENCE)
    assert subject.ledger.committed == capture.spools["stdout"].path.stat().st_size == 5
    assert subject.verdict() == Verdict("partial", "no-space")
    await conversation.close()


@pytest.mark.asyncio
async def test_the_boundary_of_an_abandoned_write_is_the_files_size(tmp_path: Path) -> None:
    """Real files: given up in the kernel, it comes back, and what it kept is booked to the byte (B4, D8)."""
    files = Choking()
    conversation = await LocalStorage(files).open(tmp_path, limits=Limits(), durability="none")
    capture = await conversation.create_capture("one", ("stdout",))
    files.armed = True
    subject = stream()
    sink = SpoolSink("stdout", capture.spools["stdout"], Retention(Limits()), capture.reservation)
    outbox = Outbox(subject, sink, lambda: None)
    subject.observe(8)
    outbox.put(subject.feed(b"12345678", bulk=False))
    assert await asyncio.to_thread(files.entered.wait, PATIENCE)
    outbox.end("writer-stalled")
    assert sink.late() is None
    files.go.set()
    assert await outbox.settle(PATIENCE)
    assert subject.ledger.committed == capture.spools["stdout"].path.stat().st_size == 8
    assert subject.verdict() == Verdict("partial", "writer-stalled")
    await conversation.close()
