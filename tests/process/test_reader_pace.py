"""When a reader reads how often: larger pipes for bulk, a timer for the chatty (contract B1)."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest
    from conftest import ReaderRig


def test_pipe_that_is_full_three_times_is_enlarged_once(reader_rig: ReaderRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast child then writes a megabyte before it waits; twice full is not enough."""
    asked: list[int] = []
    real = fcntl.fcntl
    monkeypatch.setattr(fcntl, "fcntl", lambda *arguments: asked.append(arguments[1]) or real(*arguments))
    for _ in range(2):
        reader_rig.write(b"x" * 65536)
    assert asked == []
    for _ in range(5):
        reader_rig.write(b"x" * 65536)
    assert asked == [fcntl.F_SETPIPE_SZ]
    assert real(reader_rig.descriptor, fcntl.F_GETPIPE_SZ) == 1 << 20


def test_refused_enlargement_is_no_error(reader_rig: ReaderRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """EPERM is what an unprivileged user gets after 64 large pipes."""
    asked: list[int] = []

    def refuse(*arguments: int) -> int:
        asked.append(arguments[1])
        raise PermissionError(errno.EPERM, "x")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    for _ in range(10):
        reader_rig.write(b"x" * 65536)
    assert len(reader_rig.owner.data) == 10
    assert len(asked) == 1


def test_system_without_pipe_sizes_is_no_error(reader_rig: ReaderRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Linux has F_SETPIPE_SZ."""
    monkeypatch.delattr(fcntl, "F_SETPIPE_SZ")
    for _ in range(10):
        reader_rig.write(b"x" * 65536)
    assert len(reader_rig.owner.data) == 10


def make_chatty(reader_rig: ReaderRig, clock: list[float], size: int = 10) -> None:
    """Eight small reads within one tick."""
    for _ in range(8):
        reader_rig.write(b"x" * size)
        clock[0] += 0.0001


def test_chatty_child_is_read_by_the_timer(reader_rig: ReaderRig, clock: list[float]) -> None:
    """After eight small reads in a tick the pipe is left alone for one, and all that gathered is one read."""
    make_chatty(reader_rig, clock)
    assert reader_rig.loop.ready == {}
    for _ in range(50):
        os.write(reader_rig.end, b"y" * 10)
    reader_rig.tick()
    assert reader_rig.owner.data[-1] == b"y" * 500
    assert reader_rig.loop.timers
    reader_rig.tick()  # nothing gathered: back to the loop's own readiness
    assert reader_rig.loop.timers == []
    reader_rig.write(b"z")
    assert reader_rig.owner.data[-1] == b"z"


def test_slow_small_writes_are_read_as_they_come(reader_rig: ReaderRig, clock: list[float]) -> None:
    """A prompt is seen at once: one line each 0.2 ms is not chatty."""
    for _ in range(40):
        reader_rig.write(b"x")
        clock[0] += 0.0002
    assert reader_rig.loop.timers == []
    assert len(reader_rig.owner.data) == 40


def test_end_of_the_pipe_is_seen_by_the_timer(reader_rig: ReaderRig, clock: list[float]) -> None:
    """No data is lost and no timer is left."""
    make_chatty(reader_rig, clock)
    os.write(reader_rig.end, b"last")
    os.close(reader_rig.end)
    reader_rig.end = -1
    reader_rig.tick()
    reader_rig.tick()
    reader_rig.loop.run_soon()
    assert reader_rig.owner.data[-1] == b"last"
    assert reader_rig.owner.lost == [(1, None)]
    assert reader_rig.loop.timers == []


def test_pause_between_ticks_cancels_the_timer(reader_rig: ReaderRig, clock: list[float]) -> None:
    """Nothing arrives while it is paused; resuming goes back to the loop's readiness."""
    make_chatty(reader_rig, clock)
    reader_rig.reader.pause_reading()
    assert reader_rig.loop.timers == []
    reader_rig.reader.resume_reading()
    reader_rig.write(b"z")
    assert reader_rig.owner.data[-1] == b"z"


def test_resume_between_ticks_keeps_the_timer(reader_rig: ReaderRig, clock: list[float]) -> None:
    """A resume without a pause changes nothing."""
    make_chatty(reader_rig, clock)
    reader_rig.reader.resume_reading()
    assert reader_rig.loop.ready == {}
    assert len(reader_rig.loop.timers) == 1


def test_pause_within_a_tick_stops_it(reader_rig: ReaderRig, clock: list[float]) -> None:
    """As in any other read."""
    make_chatty(reader_rig, clock)
    reader_rig.owner.on_data = reader_rig.reader.pause_reading
    os.write(reader_rig.end, b"a")
    reader_rig.tick()
    assert (reader_rig.loop.timers, reader_rig.loop.ready) == ([], {})


def test_tick_that_found_the_pipe_nearly_full_ends_the_ticks_for_a_while(
    reader_rig: ReaderRig, clock: list[float]
) -> None:
    """The child was probably stopped by the full pipe; ticks come back only after the penalty, which doubles."""
    for penalty in (0.02, 0.04):
        make_chatty(reader_rig, clock)
        os.write(reader_rig.end, b"x" * 60000)
        reader_rig.tick()
        assert reader_rig.loop.timers == []
        clock[0] += penalty - 0.002
        make_chatty(reader_rig, clock)
        assert reader_rig.loop.timers == []
        clock[0] += 0.002
    make_chatty(reader_rig, clock)
    assert reader_rig.loop.timers


def test_fast_small_writes_enlarge_the_pipe_instead(reader_rig: ReaderRig, clock: list[float]) -> None:
    """Reads under an eighth of the pipe, but so many that a tick would fill it."""
    for _ in range(8):
        reader_rig.write(b"x" * 8000)
    assert clock == [100.0]
    assert reader_rig.loop.timers == []
    for _ in range(8):
        reader_rig.write(b"x" * 100_000)
        reader_rig.write(b"x" * 200_000)
    for _ in range(8):
        reader_rig.write(b"x" * 130_000)
    assert fcntl.fcntl(reader_rig.descriptor, fcntl.F_GETPIPE_SZ) == 1 << 20


def test_one_tick_reads_at_most_one_pipe(
    reader_rig: ReaderRig, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that refills it while we read must not keep the loop."""
    make_chatty(reader_rig, clock)
    monkeypatch.setattr(reader_rig.reader, "_scratch", memoryview(bytearray(1024)))
    reader_rig.owner.on_data = lambda: os.write(reader_rig.end, b"x" * 1024)
    os.write(reader_rig.end, b"x" * 1024)
    reader_rig.tick()
    assert len(reader_rig.owner.data) == 8 + 64
