"""What goes wrong under a pump: our own code, a disk that does not answer, an ending that cannot wait (B5, D8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

import pytest

from supervisor.outbox import BATCH_BYTES
from supervisor.pump import SLICE_BYTES
from supervisor.sansio.stream import Verdict

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 30.0
Where = Literal["sanitiser", "quiet", "preview", "tap", "last"]


class Defect(Exception):
    """A fault of our own code."""


def break_down(bench: Bench, where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one part of the pump's own code fail from now on."""

    def fail(*_: object, **__: object) -> bytes:
        raise Defect

    if where == "tap":
        bench.tap.fault = Defect()
    elif where == "preview":
        monkeypatch.setattr(bench.stream.preview, "feed", fail)
    else:
        name = {"sanitiser": "feed", "quiet": "quiet", "last": "finish"}[where]
        monkeypatch.setattr(type(bench.stream.sanitizer), name, fail)


@pytest.mark.parametrize("where", ["sanitiser", "quiet", "preview", "tap", "last"])
async def test_a_defect_of_ours_costs_the_capture_and_not_the_child(
    bench: Bench, where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails: the pipe is drained to its end, each byte has its account, and the loop's handler hears once."""
    bench.feed(b"before ")
    await asyncio.wait_for(bench.tap.shown.wait(), PATIENCE)
    break_down(bench, where, monkeypatch)
    for _ in range(4):
        bench.feed(b"x" * 30, b"y" * 200)
        await asyncio.sleep(0)
        bench.check()
    assert await bench.end() == Verdict("failed", "internal")
    assert [type(defect["exception"]) for defect in bench.defects] == [Defect]
    assert "stdout" in bench.defects[0]["message"]
    assert bench.stream.ledger.observed == len(b"before ") + 4 * 230
    assert bench.disk.file.startswith(b"before ")
    assert bench.stream.ledger.committed <= len(bench.disk.file)
    assert bench.holds in ([], [True, False] * (len(bench.holds) // 2)), "no hold is left"


async def test_what_waits_behind_a_defect_is_dropped_and_counted(
    idle_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces that were read before the defect showed are neither fed nor lost to the accounts (B6)."""
    bench = idle_bench
    bench.high_mark = 10 * SLICE_BYTES
    break_down(bench, "sanitiser", monkeypatch)
    bench.feed(*[b"x" * SLICE_BYTES] * 3)
    bench.pump.start()
    assert await bench.end() == Verdict("failed", "internal")
    counts = bench.stream.ledger.snapshot()
    assert (counts.observed, counts.discarded, counts.accepted) == (3 * SLICE_BYTES, 3 * SLICE_BYTES, 0)


@pytest.mark.realtime
async def test_a_write_that_never_returns_leaves_the_boundary_unknown(hasty_bench: Bench) -> None:
    """The job ends all the same, and says that nobody knows where the file ends (D8)."""
    bench = hasty_bench
    bench.disk.gate.clear()
    bench.disk.known = False
    bench.feed(b"text")
    assert await bench.end() == Verdict("failed", "writer-stuck")
    assert not bench.pump.boundary_known
    assert bench.tap.text == b"text"


@pytest.mark.realtime
async def test_a_write_that_is_too_slow_at_the_end_has_a_known_boundary(hasty_bench: Bench) -> None:
    """It was called back before anything was kept, which the sink knows (B5)."""
    bench = hasty_bench
    bench.disk.gate.clear()
    bench.feed(b"text")
    assert await bench.end() == Verdict("partial", "writer-stalled")
    assert bench.pump.boundary_known
    assert bench.stream.ledger.committed == len(bench.disk.file) == 0


@pytest.mark.realtime
async def test_a_stuck_disk_does_not_keep_a_job_with_a_backlog_from_ending(hasty_bench: Bench) -> None:
    """The child has ended below the high mark, so no pause will ever stall: taking the backlog has its own deadline."""
    bench = hasty_bench
    bench.high_mark = 100 * BATCH_BYTES
    bench.disk.gate.clear()
    bench.disk.known = False
    bench.feed(b"first")
    await asyncio.wait_for(bench.disk.waiting.wait(), PATIENCE)
    bench.feed(*[b"x" * SLICE_BYTES] * 8)
    assert await bench.end() == Verdict("failed", "writer-stuck")
    assert bench.stream.ledger.observed == 5 + 8 * SLICE_BYTES
    assert len(bench.tap.text) == bench.stream.ledger.observed, "sanitiser and preview went on to the end"


@pytest.mark.realtime
async def test_a_slow_disk_with_a_backlog_loses_nothing(hasty_bench: Bench) -> None:
    """Each write has the whole deadline: together they may take longer (B4)."""
    bench = hasty_bench
    bench.pump._stall_timeout = 0.5  # type: ignore[misc] -- longer than one write takes, shorter than all
    bench.disk.delay = 0.1
    bench.high_mark = 100 * BATCH_BYTES
    bench.feed(*[b"x" * SLICE_BYTES] * 24)
    assert await bench.end() == Verdict("complete", None)
    assert len(bench.disk.file) == 24 * SLICE_BYTES
    assert bench.disk.writes * bench.disk.delay > 0.5


async def test_a_pump_that_is_aborted_stops_at_once(bench: Bench) -> None:
    """Its task ends, its clock stands, its hold on the child is over, and nothing more is written."""
    bench.disk.gate.clear()
    bench.feed(b"first")
    await asyncio.wait_for(bench.disk.waiting.wait(), PATIENCE)
    bench.feed(b"x" * 200)
    assert bench.holds == [True]
    bench.pump.abort()
    assert bench.holds == [True, False]
    assert bench.clock.waiting == []
    assert bench.stream.verdict() == Verdict("partial", "internal")
    bench.disk.gate.set()
    assert await bench.pump.outbox.settle(PATIENCE)
    assert bench.disk.file == b"first"
    assert bench.stream.ledger.committed == 5


async def test_a_pump_that_never_began_can_be_aborted(idle_bench: Bench) -> None:
    """A launch may fail before it."""
    idle_bench.pump.abort()
    assert not idle_bench.stream.retaining


async def test_a_pump_without_pipe_and_tap_ends(idle_bench: Bench) -> None:
    """Of a job that was never started: no valve, nobody who watches, and an end."""
    bench = idle_bench
    bench.pump.tap = bench.pump.valve = None
    bench.feed(b"x" * 200)
    bench.pump.start()
    bench.pump.pipe_ended()
    await bench.pump.finish(whole=True)
    await bench.pump.flush(spill=True)
    assert bench.stream.verdict() == Verdict("complete", None)
    assert bench.valve.calls == []
