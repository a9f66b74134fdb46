"""The one reader of a pipe: bytes, ends, pausing, and when it reads how often (contract B1)."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.process import reader as module
from supervisor.process.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Owner:
    """Keeps what the reader tells."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.lost: list[tuple[int, Exception | None]] = []
        self.on_data: Callable[[], object] = lambda: None

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep it."""
        assert fd == 1
        self.data.append(data)
        self.on_data()

    def pipe_lost(self, fd: int, error: Exception | None) -> None:
        """Keep it."""
        self.lost.append((fd, error))


class Loop:
    """A loop whose turns and timers a test makes by hand."""

    def __init__(self) -> None:
        self.ready: dict[int, Callable[[], None]] = {}
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.soon: list[Callable[[], None]] = []
        self.reported: list[BaseException] = []

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Note it."""
        self.ready[descriptor] = callback

    def remove_reader(self, descriptor: int) -> None:
        """Forget it."""
        del self.ready[descriptor]

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:  # noqa: ANN401
        """Note it."""
        entry = (delay, callback)
        self.timers.append(entry)
        loop = self

        class Handle:
            def cancel(self) -> None:
                loop.timers.remove(entry)

        return Handle()

    def call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        """Note it."""
        self.soon.append(lambda: callback(*arguments))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note it."""
        self.reported.append(context["exception"])

    def run_soon(self) -> None:
        """Make what was asked for soon."""
        while self.soon:
            self.soon.pop(0)()


class Rig:
    """A reader on a real pipe with a hand-driven loop."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.owner = Owner()
        self.descriptor, self.end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self.end, False)
        self.reader = Reader(self.loop, self.owner, 1, self.descriptor)  # type: ignore[arg-type]

    def turn(self) -> None:
        """Let the loop see that the pipe is readable."""
        self.loop.ready[self.descriptor]()

    def write(self, data: bytes) -> None:
        """Write and let it be read."""
        os.write(self.end, data)
        self.turn()

    def tick(self) -> None:
        """Let the timer run."""
        (_delay, callback) = self.loop.timers.pop()
        callback()

    def close(self) -> None:
        """Close both ends."""
        self.reader.close()
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Yield a reader that is resumed."""
    made = Rig()
    made.reader.resume_reading()
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a one-element list that is the monotonic clock."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_new_reader_is_paused_and_delivers_nothing() -> None:
    """It asks the loop for nothing before the first resume."""
    rig = Rig()
    os.write(rig.end, b"x")
    assert not rig.reader.is_reading()
    assert rig.loop.ready == {}
    rig.reader.resume_reading()
    assert rig.reader.is_reading()
    rig.turn()
    assert rig.owner.data == [b"x"]
    rig.close()


def test_nothing_is_delivered_after_a_pause_from_within_the_callback(rig: Rig) -> None:
    """Backpressure holds at once, at the end of the pipe too; resuming goes on where it stopped."""
    rig.owner.on_data = rig.reader.pause_reading
    rig.write(b"one")
    os.write(rig.end, b"two")
    assert rig.loop.ready == {}
    os.close(rig.end)
    rig.end = -1
    assert rig.owner.lost == []
    rig.owner.on_data = lambda: None
    rig.reader.resume_reading()
    rig.reader.resume_reading()
    rig.turn()
    rig.turn()
    rig.loop.run_soon()
    assert rig.owner.data == [b"one", b"two"]
    assert rig.owner.lost == [(1, None)]
    assert not rig.reader.is_reading()
    rig.reader.resume_reading()
    assert rig.loop.ready == {}


def test_end_is_told_once_and_from_the_loop(rig: Rig) -> None:
    """close() and the end of the pipe together are one loss; it never comes from within the call."""
    rig.reader.close()
    rig.reader.close()
    assert rig.reader.is_closing()
    assert rig.owner.lost == []
    rig.loop.run_soon()
    assert rig.owner.lost == [(1, None)]
    assert rig.reader.unread() == 0


def test_close_from_within_the_callback_stops_at_once(rig: Rig) -> None:
    """The descriptor is gone when the callback returns, and nobody may touch it."""
    rig.owner.on_data = rig.reader.close
    rig.write(b"x")
    assert rig.loop.ready == {}
    rig.loop.run_soon()
    assert rig.owner.lost == [(1, None)]


def test_spurious_readiness_is_not_an_end(rig: Rig) -> None:
    """EAGAIN means nothing at all (field report H5-010)."""
    rig.turn()
    rig.loop.run_soon()
    assert (rig.owner.data, rig.owner.lost) == ([], [])


def test_unread_bytes_are_counted_without_reading(rig: Rig) -> None:
    """What waits in the pipe at the exit is read off the clock (contract F2), so it must be known."""
    os.write(rig.end, b"12345")
    assert rig.reader.unread() == 5
    rig.turn()
    assert rig.reader.unread() == 0


def test_terminal_whose_other_end_closed_is_at_its_end() -> None:
    """Linux gives EIO there, where a pipe gives an end of file."""
    master, slave = os.openpty()
    loop, owner = Loop(), Owner()
    reader = Reader(loop, owner, 1, master)  # type: ignore[arg-type]
    reader.resume_reading()
    os.close(slave)
    loop.ready[master]()
    loop.run_soon()
    assert owner.lost == [(1, None)]


def test_any_other_error_is_the_reason_of_the_loss(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is carried, not swallowed."""
    error = OSError(errno.ENXIO, "x")

    def fail(_descriptor: int, _buffers: object) -> int:
        raise error

    monkeypatch.setattr(os, "readv", fail)
    rig.turn()
    rig.loop.run_soon()
    assert rig.owner.lost == [(1, error)]


def test_raising_owner_is_reported_and_the_reader_goes_on(rig: Rig) -> None:
    """The bytes after the exception still arrive (contract B5)."""

    def fail() -> None:
        raise KeyError("ours")

    rig.owner.on_data = fail
    rig.write(b"one")
    rig.write(b"two")
    assert rig.owner.data == [b"one", b"two"]
    assert [type(error) for error in rig.loop.reported] == [KeyError, KeyError]


def test_interrupt_of_the_user_is_not_contained(rig: Rig) -> None:
    """KeyboardInterrupt is nobody's error."""

    def fail() -> None:
        raise KeyboardInterrupt

    rig.owner.on_data = fail
    with pytest.raises(KeyboardInterrupt):
        rig.write(b"one")


def test_delivered_bytes_outlive_the_next_read(rig: Rig) -> None:
    """The scratch is shared and reused, what was delivered is a copy."""
    rig.write(b"a" * 1000)
    rig.write(b"b" * 1000)
    assert rig.owner.data == [b"a" * 1000, b"b" * 1000]


def test_each_thread_has_its_own_scratch() -> None:
    """Loops of two threads read at the same time; readers of one loop share."""
    views = [module.scratch(), module.scratch()]
    thread = threading.Thread(target=lambda: views.append(module.scratch()))
    thread.start()
    thread.join()
    assert views[0].obj is views[1].obj
    assert views[0].obj is not views[2].obj


def test_pipe_that_is_full_three_times_is_enlarged_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast child then writes a megabyte before it waits; twice full is not enough."""
    asked: list[int] = []
    real = fcntl.fcntl
    monkeypatch.setattr(fcntl, "fcntl", lambda *arguments: asked.append(arguments[1]) or real(*arguments))
    for _ in range(2):
        rig.write(b"x" * 65536)
    assert asked == []
    for _ in range(5):
        rig.write(b"x" * 65536)
    assert asked == [fcntl.F_SETPIPE_SZ]
    assert real(rig.descriptor, fcntl.F_GETPIPE_SZ) == 1 << 20


def test_refused_enlargement_is_no_error(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """EPERM is what an unprivileged user gets after 64 large pipes."""
    asked: list[int] = []

    def refuse(*arguments: int) -> int:
        asked.append(arguments[1])
        raise PermissionError(errno.EPERM, "x")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    for _ in range(10):
        rig.write(b"x" * 65536)
    assert len(rig.owner.data) == 10
    assert len(asked) == 1


def test_system_without_pipe_sizes_is_no_error(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Linux has F_SETPIPE_SZ."""
    monkeypatch.delattr(fcntl, "F_SETPIPE_SZ")
    for _ in range(10):
        rig.write(b"x" * 65536)
    assert len(rig.owner.data) == 10


def make_chatty(rig: Rig, clock: list[float], size: int = 10) -> None:
    """Eight small reads within one tick."""
    for _ in range(8):
        rig.write(b"x" * size)
        clock[0] += 0.0001


def test_chatty_child_is_read_by_the_timer(rig: Rig, clock: list[float]) -> None:
    """After eight small reads in a tick the pipe is left alone for one, and all that gathered is one read."""
    make_chatty(rig, clock)
    assert rig.loop.ready == {}
    for _ in range(50):
        os.write(rig.end, b"y" * 10)
    rig.tick()
    assert rig.owner.data[-1] == b"y" * 500
    assert rig.loop.timers
    rig.tick()  # nothing gathered: back to the loop's own readiness
    assert rig.loop.timers == []
    rig.write(b"z")
    assert rig.owner.data[-1] == b"z"


def test_slow_small_writes_are_read_as_they_come(rig: Rig, clock: list[float]) -> None:
    """A prompt is seen at once: one line each 0.2 ms is not chatty."""
    for _ in range(40):
        rig.write(b"x")
        clock[0] += 0.0002
    assert rig.loop.timers == []
    assert len(rig.owner.data) == 40


def test_end_of_the_pipe_is_seen_by_the_timer(rig: Rig, clock: list[float]) -> None:
    """No data is lost and no timer is left."""
    make_chatty(rig, clock)
    os.write(rig.end, b"last")
    os.close(rig.end)
    rig.end = -1
    rig.tick()
    rig.tick()
    rig.loop.run_soon()
    assert rig.owner.data[-1] == b"last"
    assert rig.owner.lost == [(1, None)]
    assert rig.loop.timers == []


def test_pause_between_ticks_cancels_the_timer(rig: Rig, clock: list[float]) -> None:
    """Nothing arrives while it is paused; resuming goes back to the loop's readiness."""
    make_chatty(rig, clock)
    rig.reader.pause_reading()
    assert rig.loop.timers == []
    rig.reader.resume_reading()
    rig.write(b"z")
    assert rig.owner.data[-1] == b"z"


def test_resume_between_ticks_keeps_the_timer(rig: Rig, clock: list[float]) -> None:
    """A resume without a pause changes nothing."""
    make_chatty(rig, clock)
    rig.reader.resume_reading()
    assert rig.loop.ready == {}
    assert len(rig.loop.timers) == 1


def test_pause_within_a_tick_stops_it(rig: Rig, clock: list[float]) -> None:
    """As in any other read."""
    make_chatty(rig, clock)
    rig.owner.on_data = rig.reader.pause_reading
    os.write(rig.end, b"a")
    rig.tick()
    assert (rig.loop.timers, rig.loop.ready) == ([], {})


def test_tick_that_found_the_pipe_nearly_full_ends_the_ticks_for_a_while(rig: Rig, clock: list[float]) -> None:
    """The child was probably stopped by the full pipe; ticks come back only after the penalty, which doubles."""
    for penalty in (0.02, 0.04):
        make_chatty(rig, clock)
        os.write(rig.end, b"x" * 60000)
        rig.tick()
        assert rig.loop.timers == []
        clock[0] += penalty - 0.002
        make_chatty(rig, clock)
        assert rig.loop.timers == []
        clock[0] += 0.002
    make_chatty(rig, clock)
    assert rig.loop.timers


def test_fast_small_writes_enlarge_the_pipe_instead(rig: Rig, clock: list[float]) -> None:
    """Reads under an eighth of the pipe, but so many that a tick would fill it."""
    for _ in range(8):
        rig.write(b"x" * 8000)
    assert clock == [100.0]
    assert rig.loop.timers == []
    for _ in range(8):
        rig.write(b"x" * 100_000)
        rig.write(b"x" * 200_000)
    for _ in range(8):
        rig.write(b"x" * 130_000)
    assert fcntl.fcntl(rig.descriptor, fcntl.F_GETPIPE_SZ) == 1 << 20


def test_one_tick_reads_at_most_one_pipe(rig: Rig, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that refills it while we read must not keep the loop."""
    make_chatty(rig, clock)
    monkeypatch.setattr(rig.reader, "_scratch", memoryview(bytearray(1024)))
    rig.owner.on_data = lambda: os.write(rig.end, b"x" * 1024)
    os.write(rig.end, b"x" * 1024)
    rig.tick()
    assert len(rig.owner.data) == 8 + 64


@given(
    st.lists(
        st.one_of(st.binary(min_size=1, max_size=9000), st.sampled_from(["turn", "tick", "pause", "resume", "later"])),
        max_size=60,
    )
)
def test_bytes_arrive_whole_and_in_order_whatever_happens(steps: list[bytes | str]) -> None:
    """Any order of writes, turns, timers and pauses: nothing lost, doubled or reordered, nothing while paused."""
    rig = Rig()
    written: list[bytes] = []
    paused = True
    rig.owner.on_data = lambda: pytest.fail("data while paused") if paused else None
    clock = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.time, "monotonic", lambda: clock[0])
        for step in steps:
            if isinstance(step, bytes) and rig.reader.unread() + len(step) < 60000:
                os.write(rig.end, step)
                written.append(step)
            elif step == "turn" and rig.loop.ready:
                rig.turn()
            elif step == "tick" and rig.loop.timers:
                rig.tick()
            elif step == "later":
                clock[0] += 0.005
            elif step == "pause":
                paused = True
                rig.reader.pause_reading()
            elif step == "resume":
                paused = False
                rig.reader.resume_reading()
        os.close(rig.end)
        rig.end = -1
        paused = False
        rig.reader.resume_reading()
        while not rig.reader.is_closing():
            assert bool(rig.loop.ready) != bool(rig.loop.timers)
            if rig.loop.ready:
                rig.turn()
            else:
                rig.tick()
        rig.loop.run_soon()
    assert b"".join(rig.owner.data) == b"".join(written)
    assert rig.owner.lost == [(1, None)]
    assert (rig.loop.ready, rig.loop.timers) == ({}, [])


@pytest.mark.asyncio
async def test_real_loop_delivers_a_chatty_and_a_bulky_writer_whole() -> None:
    """Both loops, real timers, a writer thread that does both."""
    loop = asyncio.get_running_loop()
    owner = Owner()
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
