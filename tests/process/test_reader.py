"""The one reader of a pipe: bytes, ends, pausing (contract B1)."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.process import reader as module
from supervisor.process.reader import Reader

if TYPE_CHECKING:
    from conftest import ReaderRig


def test_new_reader_is_paused_and_delivers_nothing(reader_rig_class: type[ReaderRig]) -> None:
    """It asks the loop for nothing before the first resume."""
    reader_rig = reader_rig_class()
    os.write(reader_rig.end, b"x")
    assert not reader_rig.reader.is_reading()
    assert reader_rig.loop.ready == {}
    reader_rig.reader.resume_reading()
    assert reader_rig.reader.is_reading()
    reader_rig.turn()
    assert reader_rig.owner.data == [b"x"]
    reader_rig.close()


def test_nothing_is_delivered_after_a_pause_from_within_the_callback(reader_rig: ReaderRig) -> None:
    """Backpressure holds at once, at the end of the pipe too; resuming goes on where it stopped."""
    reader_rig.owner.on_data = reader_rig.reader.pause_reading
    reader_rig.write(b"one")
    os.write(reader_rig.end, b"two")
    assert reader_rig.loop.ready == {}
    os.close(reader_rig.end)
    reader_rig.end = -1
    assert reader_rig.owner.lost == []
    reader_rig.owner.on_data = lambda: None
    reader_rig.reader.resume_reading()
    reader_rig.reader.resume_reading()
    reader_rig.turn()
    reader_rig.turn()
    reader_rig.loop.run_soon()
    assert reader_rig.owner.data == [b"one", b"two"]
    assert reader_rig.owner.lost == [(1, None)]
    assert not reader_rig.reader.is_reading()
    reader_rig.reader.resume_reading()
    assert reader_rig.loop.ready == {}


def test_end_is_told_once_and_from_the_loop(reader_rig: ReaderRig) -> None:
    """close() and the end of the pipe together are one loss; it never comes from within the call."""
    reader_rig.reader.close()
    reader_rig.reader.close()
    assert reader_rig.reader.is_closing()
    assert reader_rig.owner.lost == []
    reader_rig.loop.run_soon()
    assert reader_rig.owner.lost == [(1, None)]
    assert reader_rig.reader.unread() == 0


def test_close_from_within_the_callback_stops_at_once(reader_rig: ReaderRig) -> None:
    """The descriptor is gone when the callback returns, and nobody may touch it."""
    reader_rig.owner.on_data = reader_rig.reader.close
    reader_rig.write(b"x")
    assert reader_rig.loop.ready == {}
    reader_rig.loop.run_soon()
    assert reader_rig.owner.lost == [(1, None)]


def test_spurious_readiness_is_not_an_end(reader_rig: ReaderRig) -> None:
    """EAGAIN means nothing at all (field report H5-010)."""
    reader_rig.turn()
    reader_rig.loop.run_soon()
    assert (reader_rig.owner.data, reader_rig.owner.lost) == ([], [])


def test_unread_bytes_are_counted_without_reading(reader_rig: ReaderRig) -> None:
    """What waits in the pipe at the exit is read off the clock (contract F2), so it must be known."""
    os.write(reader_rig.end, b"12345")
    assert reader_rig.reader.unread() == 5
    reader_rig.turn()
    assert reader_rig.reader.unread() == 0


def test_terminal_whose_other_end_closed_is_at_its_end(reader_rig: ReaderRig) -> None:
    """Linux gives EIO there, where a pipe gives an end of file."""
    master, slave = os.openpty()
    loop, owner = reader_rig.loop, reader_rig.owner
    reader = Reader(loop, owner, 1, master)  # type: ignore[arg-type]
    reader.resume_reading()
    os.close(slave)
    loop.ready[master]()
    loop.run_soon()
    assert owner.lost == [(1, None)]


def test_any_other_error_is_the_reason_of_the_loss(reader_rig: ReaderRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is carried, not swallowed."""
    error = OSError(errno.ENXIO, "x")

    def fail(_descriptor: int, _buffers: object) -> int:
        raise error

    monkeypatch.setattr(os, "readv", fail)
    reader_rig.turn()
    reader_rig.loop.run_soon()
    assert reader_rig.owner.lost == [(1, error)]


def test_raising_owner_is_reported_and_the_reader_goes_on(reader_rig: ReaderRig) -> None:
    """The bytes after the exception still arrive (contract B5)."""

    def fail() -> None:
        raise KeyError("ours")

    reader_rig.owner.on_data = fail
    reader_rig.write(b"one")
    reader_rig.write(b"two")
    assert reader_rig.owner.data == [b"one", b"two"]
    assert [type(error) for error in reader_rig.loop.reported] == [KeyError, KeyError]


def test_interrupt_of_the_user_is_not_contained(reader_rig: ReaderRig) -> None:
    """KeyboardInterrupt is nobody's error."""

    def fail() -> None:
        raise KeyboardInterrupt

    reader_rig.owner.on_data = fail
    with pytest.raises(KeyboardInterrupt):
        reader_rig.write(b"one")


def test_delivered_bytes_outlive_the_next_read(reader_rig: ReaderRig) -> None:
    """The scratch is shared and reused, what was delivered is a copy."""
    reader_rig.write(b"a" * 1000)
    reader_rig.write(b"b" * 1000)
    assert reader_rig.owner.data == [b"a" * 1000, b"b" * 1000]


def test_each_thread_has_its_own_scratch() -> None:
    """Loops of two threads read at the same time; readers of one loop share."""
    views = [module.scratch(), module.scratch()]
    thread = threading.Thread(target=lambda: views.append(module.scratch()))
    thread.start()
    thread.join()
    assert views[0].obj is views[1].obj
    assert views[0].obj is not views[2].obj


@given(
    st.lists(
        st.one_of(st.binary(min_size=1, max_size=9000), st.sampled_from(["turn", "tick", "pause", "resume", "later"])),
        max_size=60,
    )
)
def test_bytes_arrive_whole_and_in_order_whatever_happens(
    reader_rig_class: type[ReaderRig], steps: list[bytes | str]
) -> None:
    """Any order of writes, turns, timers and pauses: nothing lost, doubled or reordered, nothing while paused."""
    reader_rig = reader_rig_class()
    written: list[bytes] = []
    paused = True
    reader_rig.owner.on_data = lambda: pytest.fail("data while paused") if paused else None
    clock = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.time, "monotonic", lambda: clock[0])
        for step in steps:
            if isinstance(step, bytes) and reader_rig.reader.unread() + len(step) < 60000:
                os.write(reader_rig.end, step)
                written.append(step)
            elif step == "turn" and reader_rig.loop.ready:
                reader_rig.turn()
            elif step == "tick" and reader_rig.loop.timers:
                reader_rig.tick()
            elif step == "later":
                clock[0] += 0.005
            elif step == "pause":
                paused = True
                reader_rig.reader.pause_reading()
            elif step == "resume":
                paused = False
                reader_rig.reader.resume_reading()
        os.close(reader_rig.end)
        reader_rig.end = -1
        paused = False
        reader_rig.reader.resume_reading()
        while not reader_rig.reader.is_closing():
            assert bool(reader_rig.loop.ready) != bool(reader_rig.loop.timers)
            if reader_rig.loop.ready:
                reader_rig.turn()
            else:
                reader_rig.tick()
        reader_rig.loop.run_soon()
    assert b"".join(reader_rig.owner.data) == b"".join(written)
    assert reader_rig.owner.lost == [(1, None)]
    assert (reader_rig.loop.ready, reader_rig.loop.timers) == ({}, [])


@pytest.mark.asyncio
async def test_real_loop_delivers_a_chatty_and_a_bulky_writer_whole(reader_rig: ReaderRig) -> None:
    """Both loops, real timers, a writer thread that does both."""
    loop = asyncio.get_running_loop()
    owner = reader_rig.owner
    done = asyncio.Event()
    owner.pipe_lost = lambda _fd, _error: done.set()  # type: ignore[method-assign]
    descriptor, end = os.pipe()
    os.set_blocking(descriptor, False)
    reader = Reader(loop, owner, 1, descriptor)
    reader.resume_reading()
    lines = [b"%d\n" % number for number in range(3000)]
    expected = b"".join(lines) + b"z" * (1 << 20)

    def write() -> None:
        for line in lines:
            os.write(end, line)
        rest = memoryview(b"z" * (1 << 20))
        while rest:
            rest = rest[os.write(end, rest) :]
        os.close(end)

    thread = threading.Thread(target=write)
    thread.start()
    async with asyncio.timeout(30):
        await done.wait()
    thread.join()
    assert b"".join(owner.data) == expected
