"""One stream between its pipe and its sink: order, flow control and accounts (contract B1-B6, C1)."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest

from supervisor.pump import LEAST_SLICE_BYTES, SLICE_BYTES, TURN_SECONDS
from supervisor.sansio.stream import Verdict
from supervisor.sinks import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Bench

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 30.0
HIGH: Final = 100
SECRET: Final = b"hunter2-hunter2"


@pytest.mark.parametrize("size", [1, 2, 7, 15, 1000])
async def test_the_file_does_not_depend_on_the_pieces(bench: Bench, size: int) -> None:
    """Any cut of the bytes gives the same text, on disk, at the tap and in the preview (C1, B2)."""
    raw = b"begin \xe2\x82\xac " + SECRET + b"\r\n" + b"\x1b[31mred\x1b[0m " + b"x" * 200 + b" end"
    bench.feed(*(raw[start : start + size] for start in range(0, len(raw), size)))
    assert await bench.end() == Verdict("complete", None)
    expected = "begin \u20ac [REDACTED:TOKEN]\nred " + "x" * 200 + " end"
    assert bench.disk.file.decode() == bench.tap.text.decode() == expected
    assert bench.stream.preview.render(8000, 16384).head == expected
    assert bench.stream.ledger.committed == len(bench.disk.file)
    assert bench.stream.ledger.accepted == len(raw)


async def test_what_is_undecided_only_for_want_of_more_is_shown_when_the_pipe_is_quiet(bench: Bench) -> None:
    """A prompt is visible at once; the beginning of a secret is not (C3, design decision 3)."""
    bench.feed(b"Name? hun")
    async with asyncio.timeout(PATIENCE):
        await bench.tap.shown.wait()
    assert bench.tap.text == b"Name? "
    assert bench.stream.ledger.held == 3
    assert await bench.end() == Verdict("complete", None)
    assert bench.disk.file == b"Name? hun"


async def test_a_long_backlog_is_taken_in_slices(bench: Bench) -> None:
    """A firehose does not keep the loop: one slice a turn (B3)."""
    turns = 0
    bench.feed(*[b"x" * SLICE_BYTES] * 4)
    bench.pump.pipe_ended()
    finish = asyncio.ensure_future(bench.pump.finish(whole=True))
    while not finish.done():
        await asyncio.sleep(0)
        turns += 1
        bench.check()
    assert turns > 4
    assert await bench.written() == Verdict("complete", None)
    assert len(bench.disk.file) == 4 * SLICE_BYTES


async def test_text_that_is_slow_to_search_is_cut_finer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other job of the loop waits for a turn; what comes of the text is the same (B3, C1)."""
    clock = itertools.count(step=2 * TURN_SECONDS)
    monkeypatch.setattr("supervisor.pump.time", SimpleNamespace(perf_counter=partial(next, clock)))
    fed = list[int]()
    feed = bench.stream.feed

    def counted(raw: bytes, *, bulk: bool) -> bytes:
        fed.append(len(raw))
        return feed(raw, bulk=bulk)

    monkeypatch.setattr(bench.stream, "feed", counted)
    bench.feed(b"x" * SLICE_BYTES)
    assert await bench.end() == Verdict("complete", None)
    assert set(fed) == {LEAST_SLICE_BYTES}
    assert len(bench.disk.file) == sum(fed) == SLICE_BYTES


async def test_the_pipe_stops_at_the_high_mark_and_goes_on_at_the_low_one(bench: Bench) -> None:
    """Once each way; our hold ends when reading does go on (B4)."""
    bench.feed(b"x" * (HIGH - 1))
    assert bench.valve.calls == []
    bench.feed(b"x", b"what came in the same turn")
    assert bench.valve.calls == ["pause"]
    assert bench.holds == [True]
    assert len(bench.clock.waiting) == 1
    await asyncio.wait_for(bench.valve.resumed.wait(), PATIENCE)
    assert bench.valve.calls == ["pause", "resume"]
    assert bench.holds == [True, False]
    assert bench.clock.waiting == [], "a pause that is over cannot stall"
    assert bench.stream.ledger.pending <= HIGH // 4
    assert await bench.end() == Verdict("complete", None)


async def test_reading_goes_on_at_the_low_mark_and_not_before(idle_bench: Bench) -> None:
    """Between the marks the pipe stays stopped, so that it is not switched for each slice."""
    bench = idle_bench
    bench.high_mark = 4 * SLICE_BYTES
    bench.feed(*[b"x" * SLICE_BYTES] * 4)
    assert bench.valve.calls == ["pause"]
    bench.pump.start()
    while bench.stream.ledger.pending > SLICE_BYTES:
        assert bench.valve.calls == ["pause"]
        await asyncio.sleep(0)
    assert bench.stream.ledger.pending == SLICE_BYTES
    assert bench.valve.calls == ["pause", "resume"], "at the low mark, which is a quarter"
    assert await bench.end() == Verdict("complete", None)


async def test_a_pause_that_lasts_ends_persistence_and_frees_the_child(bench: Bench) -> None:
    """A write that is out for the whole of it is given up; the rest is read, shown and discarded (B4, B5)."""
    bench.disk.gate.clear()
    bench.feed(b"first ")
    await asyncio.wait_for(bench.disk.waiting.wait(), PATIENCE)
    bench.feed(b"x" * HIGH)
    bench.clock.advance(4.9)
    assert bench.stream.retaining
    bench.clock.advance(0.1)
    assert bench.stream.reason == "writer-stalled"
    await asyncio.wait_for(bench.valve.resumed.wait(), PATIENCE)
    bench.feed(b" last error")
    bench.disk.gate.set()
    assert await bench.end() == Verdict("partial", "writer-stalled")
    assert bench.disk.file == b"first ", "the write that came back late is on disk, and nothing after it"
    assert bench.stream.ledger.committed == 6
    assert bench.stream.ledger.discarded >= len(" last error")
    assert bench.tap.text.endswith(b" last error")


async def test_a_pause_that_is_our_own_slowness_only_goes_on(idle_bench: Bench) -> None:
    """Nothing is out, so no disk is to blame: the deadline is set anew (B4)."""
    bench = idle_bench
    bench.feed(b"x" * HIGH)
    for round_ in range(1, 4):
        bench.clock.advance(5)
        assert bench.stream.retaining
        assert [alarm.when for alarm in bench.clock.waiting] == [5 * (round_ + 1)]
    bench.pump.start()
    await asyncio.wait_for(bench.valve.resumed.wait(), PATIENCE)
    bench.clock.advance(100)
    assert await bench.end() == Verdict("complete", None)
    assert bench.disk.file == b"x" * HIGH


async def test_a_stall_of_a_pause_that_is_over_changes_nothing(bench: Bench) -> None:
    """The alarm may have been on its way already."""
    bench.feed(b"x" * HIGH)
    late = bench.clock.waiting[0]
    bench.disk.gate.clear()
    bench.pump.pipe_ended()
    await asyncio.wait_for(bench.disk.waiting.wait(), PATIENCE)
    late.callback()
    assert bench.stream.retaining
    assert bench.clock.waiting == []
    bench.disk.gate.set()
    assert await bench.end() == Verdict("complete", None)


async def test_a_full_disk_ends_persistence_and_not_the_stream(bench: Bench) -> None:
    """The prefix stays, the boundary is the file's size, sanitiser and preview go on (B5)."""
    bench.disk.full_at = 10
    bench.feed(b"12345678")
    await asyncio.wait_for(bench.tap.shown.wait(), PATIENCE)
    bench.feed(b"abcdef", SECRET, b" the end")
    assert await bench.end() == Verdict("partial", "no-space")
    assert len(bench.disk.file) == bench.stream.ledger.committed == 10
    assert bench.tap.text == b"12345678abcdef[REDACTED:TOKEN] the end"
    assert bench.stream.preview.total == len(bench.tap.text)
    assert bench.stream.ledger.uncommitted == len(bench.tap.text) - 10


async def test_a_cut_stream_ends_with_a_marker(bench: Bench) -> None:
    """What was undecided when we closed the pipe is not shown (C7)."""
    bench.feed(b"key: hunter2-")
    await bench.end(whole=False)
    assert bench.disk.file == b"key: [REDACTED:undecided]"


async def test_a_muted_stream_leaves_no_trace_but_its_counts(bench: Bench) -> None:
    """Nothing of its text gets to the disk, the tap or the preview (B9)."""
    bench.stream.mute()
    bench.feed(b"text")
    assert await bench.end() == Verdict("disabled", None)
    assert bench.disk.writes == 0
    assert bench.tap.text == b""
    assert bench.stream.preview.total == 0
    assert (bench.stream.ledger.observed, bench.stream.ledger.discarded) == (4, 4)


async def test_text_that_the_receipt_carries_counts_as_kept(bench: Bench) -> None:
    """A small success of a foreground run has no file and lacks nothing (A7)."""

    async def hold(chunks: Sequence[bytes]) -> Kept:
        del chunks
        return Kept(0)

    bench.disk.write = hold  # type: ignore[method-assign]
    bench.feed(b"small")
    bench.pump.pipe_ended()
    await bench.pump.finish(whole=True)
    assert not bench.stream.ledger.snapshot().whole
    bench.pump.keep_inline()
    await bench.pump.flush(spill=False)
    assert bench.stream.verdict() == Verdict("complete", None)
    assert bench.stream.ledger.committed == 5


async def test_an_end_that_is_told_twice_is_one_end(bench: Bench) -> None:
    """Both we and the pipe may close it."""
    bench.feed(b"text")
    bench.pump.pipe_ended()
    bench.pump.pipe_ended()
    assert await bench.end() == Verdict("complete", None)
