"""The write end of stdin: order, flow control, ends (contract F7)."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from supervisor.process import writer as module
from supervisor.process.writer import Writer, write_without_sigpipe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio


class Owner:
    """Keeps what the writer tells."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.changed = asyncio.Event()

    def pause_writing(self) -> None:
        """Keep it."""
        self.events.append("pause")

    def resume_writing(self) -> None:
        """Keep it."""
        self.events.append("resume")
        self.changed.set()

    def pipe_lost(self, fd: int, error: Exception | None) -> None:
        """Keep it."""
        assert fd == 0
        self.events.append(type(error) if error else None)
        self.changed.set()

    async def heard(self, event: object) -> None:
        """Return when it was."""
        async with asyncio.timeout(30):
            while event not in self.events:
                self.changed.clear()
                await self.changed.wait()


class Rig:
    """A writer on a real pipe."""

    def __init__(self) -> None:
        self.owner = Owner()
        self.end, descriptor = os.pipe()
        os.set_blocking(descriptor, False)
        os.set_blocking(self.end, False)
        self.writer = Writer(asyncio.get_running_loop(), self.owner, descriptor)

    def read(self) -> bytes:
        """Return what the pipe holds now."""
        try:
            return os.read(self.end, 1 << 20)
        except BlockingIOError:
            return b""

    async def read_all(self) -> bytes:
        """Return everything up to the end of the pipe."""
        loop = asyncio.get_running_loop()
        found: list[bytes] = []
        done = loop.create_future()

        def ready() -> None:
            data = self.read()
            found.append(data)
            if not data:
                loop.remove_reader(self.end)
                done.set_result(None)

        loop.add_reader(self.end, ready)
        async with asyncio.timeout(30):
            await done
        return b"".join(found)

    def close_end(self) -> None:
        """Close the child's end."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    """Yield a writer."""
    made = Rig()
    yield made
    made.writer.abort()
    made.close_end()
    await asyncio.sleep(0)


async def test_small_write_is_in_the_pipe_at_once(rig: Rig) -> None:
    """No buffer, no turn of the loop; an empty write does nothing."""
    rig.writer.write(b"one")
    rig.writer.write(b"")
    rig.writer.write(memoryview(b"two"))
    assert rig.read() == b"onetwo"
    assert rig.writer.get_write_buffer_size() == 0
    assert rig.owner.events == []


async def test_large_write_pauses_and_resumes_the_owner_once(rig: Rig) -> None:
    """Above the high mark it is told to stop, at the low one to go on; all bytes arrive in order (asyncio's rule)."""
    data = os.urandom(300_000)
    rig.writer.write(data[:200_000])
    assert rig.owner.events == ["pause"]
    rig.writer.write(data[200_000:])
    assert rig.writer.get_write_buffer_size() > module.HIGH_WATER
    rig.writer.write_eof()
    assert await rig.read_all() == data
    await rig.owner.heard(None)
    assert rig.owner.events == ["pause", "resume", None]


async def test_low_mark_is_below_the_high_one(rig: Rig) -> None:
    """Between the two nothing is told, so that an owner is not told at every read."""
    rig.writer.set_write_buffer_limits(high=100_000, low=1_000)
    rig.writer.write(b"x" * 65536)
    rig.writer.write(b"y" * 100_001)
    assert rig.owner.events == ["pause"]
    assert len(rig.read()) == 65536
    async with asyncio.timeout(30):
        while rig.writer.get_write_buffer_size() > 100_000:  # noqa: ASYNC110 - nothing tells, which is the point
            await asyncio.sleep(0)
    assert rig.owner.events == ["pause"]
    while not rig.writer.get_write_buffer_size() <= 1_000:
        rig.read()
        await asyncio.sleep(0)
    assert rig.owner.events == ["pause", "resume"]


async def test_end_waits_for_the_buffer_and_refuses_more(rig: Rig) -> None:
    """After write_eof() or close() nothing is accepted, and the end comes after the last byte."""
    assert rig.writer.can_write_eof()
    rig.writer.write(b"x" * 100_000)
    rig.writer.close()
    rig.writer.close()
    assert rig.writer.is_closing()
    rig.writer.write(b"late")
    assert await rig.read_all() == b"x" * 100_000
    await rig.owner.heard(None)
    rig.writer.write_eof()
    assert rig.owner.events.count(None) == 1


async def test_end_without_a_buffer_closes_at_once(rig: Rig) -> None:
    """The child sees the end of its stdin without a turn of the loop, the owner hears from the loop."""
    rig.writer.write_eof()
    assert os.read(rig.end, 1) == b""
    assert rig.owner.events == []
    await rig.owner.heard(None)


async def test_abort_drops_the_buffer_and_frees_a_waiting_owner(rig: Rig) -> None:
    """Whoever waits for room must not wait for ever."""
    rig.writer.write(b"x" * 200_000)
    rig.writer.abort()
    rig.writer.abort()
    assert rig.writer.get_write_buffer_size() == 0
    await rig.owner.heard(None)
    assert rig.owner.events == ["pause", "resume", None]


async def test_closed_other_end_is_told_with_its_error(rig: Rig) -> None:
    """EPIPE closes the pipe; later writes are dropped without another word."""
    rig.close_end()
    rig.writer.write(b"x")
    rig.writer.write(b"y")
    await rig.owner.heard(BrokenPipeError)
    assert rig.owner.events == [BrokenPipeError]
    assert rig.writer.is_closing()


async def test_other_end_closed_under_a_full_buffer_is_noticed_by_itself(rig: Rig) -> None:
    """An owner that waits for room hears of the end although it writes nothing."""
    rig.writer.write(b"x" * 200_000)
    rig.close_end()
    await rig.owner.heard(BrokenPipeError)
    assert rig.owner.events == ["pause", "resume", BrokenPipeError]


async def test_buffer_is_flushed_in_pieces_and_the_loop_left_alone_afterwards(rig: Rig) -> None:
    """When the buffer is empty the loop is not asked for writability any more; writing goes on directly."""
    rig.writer.write(b"x" * 100_000)
    received = 0
    async with asyncio.timeout(30):
        while received < 100_000:
            received += len(rig.read())
            await asyncio.sleep(0)
    rig.writer.write(b"next")
    assert rig.read() == b"next"


async def test_marks_can_be_set(rig: Rig) -> None:
    """As asyncio's transports; a changed mark is looked at at once."""
    assert rig.writer.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
    rig.writer.write(b"x" * (65536 + 1000))
    assert rig.owner.events == []
    rig.writer.set_write_buffer_limits(high=500, low=100)
    assert rig.owner.events == ["pause"]
    rig.writer.set_write_buffer_limits(low=1000)
    assert rig.writer.get_write_buffer_limits() == (1000, 4000)
    assert rig.owner.events == ["pause", "resume"]
    rig.writer.set_write_buffer_limits(high=8000)
    assert rig.writer.get_write_buffer_limits() == (2000, 8000)
    rig.writer.set_write_buffer_limits()
    assert rig.writer.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
    with pytest.raises(ValueError, match="low <= high"):
        rig.writer.set_write_buffer_limits(high=1, low=2)


async def test_deadly_sigpipe_is_taken_off_the_queue(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """With SIGPIPE at its default the error is an exception all the same, and no signal is left pending."""
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_DFL)
    descriptor = rig.writer.get_extra_info("pipe")
    assert write_without_sigpipe(descriptor, bytearray(b"fine")) == 4
    rig.close_end()
    with pytest.raises(BrokenPipeError):
        write_without_sigpipe(descriptor, bytearray(b"x"))
    assert signal.SIGPIPE not in signal.sigpending()
    assert signal.SIGPIPE not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


async def test_host_that_fetches_sigpipe_itself_keeps_its_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was pending before is not ours to take."""
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        signal.raise_signal(signal.SIGPIPE)
        rig.close_end()
        with pytest.raises(BrokenPipeError):
            write_without_sigpipe(rig.writer.get_extra_info("pipe"), bytearray(b"x"))
        assert signal.SIGPIPE in signal.sigpending()
        signal.sigwait({signal.SIGPIPE})
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
