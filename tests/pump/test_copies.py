"""A pump with a raw copy: the text never waits for it, the child does, and each has its own end (B3, B4, B8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from supervisor.rawcopy import RawCopying, first_bytes, raw_name
from supervisor.sansio.stream import Verdict

if TYPE_CHECKING:
    from conftest import Bench, Disk

    from supervisor.sinks import Kept

pytestmark = pytest.mark.asyncio
PIECE = b"\x1b[1mtext of it\x1b[m"
TEXT = b"text of it"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is full at once, so that a few bytes meet what megabytes meet."""
    monkeypatch.setattr("supervisor.outbox.BATCH_BYTES", 10)


def copy_for(bench: Bench) -> tuple[RawCopying, Disk]:
    """Give the bench's pump a copy on a disk of its own."""
    disk = type(bench.disk)()
    copy = bench.pump.raw_copy = RawCopying("stdout", disk, clock=bench.clock, stall_timeout=5.0)
    return copy, disk


async def turns(count: int = 50) -> None:
    """Let everything go on that can."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_the_copy_has_every_byte_and_the_text_its_own(bench: Bench) -> None:
    """Each in its file, whatever was stripped."""
    copy, disk = copy_for(bench)
    bench.feed(PIECE, PIECE)
    assert await bench.end() == Verdict("complete", None)
    assert (bench.disk.file, disk.file) == (TEXT * 2, PIECE * 2)
    assert (copy.name, copy.state, copy.size, copy.observed, copy.boundary_known) == (
        raw_name("stdout"),
        "complete",
        len(disk.file),
        len(disk.file),
        True,
    )


async def test_a_copy_without_room_holds_the_child_up_until_its_own_deadline(bench: Bench) -> None:
    """What was read is text already; when the write was given five seconds, the child goes on and the text is whole."""
    copy, disk = copy_for(bench)
    disk.gate.clear()
    for _ in range(12):
        bench.feed(PIECE)
        await turns()
    assert bench.disk.file == TEXT * 2  # one in flight, one that waits; the third is still in the queue
    assert bench.valve.calls == ["pause"]
    bench.clock.advance(4.9)
    await turns()
    assert copy.retaining
    bench.clock.advance(0.1)
    await turns()
    assert (copy.retaining, copy.reason) == (False, "writer-stalled")
    assert bench.valve.calls == ["pause", "resume"]
    disk.gate.set()
    assert await bench.end() == Verdict("complete", None)
    assert bench.disk.file == TEXT * 12
    assert (copy.state, copy.size, copy.observed) == ("partial", len(PIECE), 12 * len(PIECE))


async def test_a_write_of_the_text_is_not_to_blame_for_a_copy_without_room(
    idle_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is out, and has just begun, when the pause has lasted long enough to give persistence up."""
    piece = PIECE * 10
    monkeypatch.setattr("supervisor.pump.SLICE_BYTES", len(piece))
    bench = idle_bench
    copy, disk = copy_for(bench)
    bench.disk.gate.clear()
    disk.gate.clear()
    bench.feed(*[piece] * 9)  # the pause begins now, by our own slowness
    bench.clock.time = 3.0
    bench.pump.start()
    await turns()
    assert (bench.pump.outbox.flight is not None, copy.has_room, bench.valve.calls) == (True, False, ["pause"])
    bench.clock.advance(2.0)
    await turns()
    assert (bench.stream.retaining, copy.retaining) == (True, True)
    bench.disk.gate.set()
    disk.gate.set()
    assert await bench.end() == Verdict("complete", None)
    assert (copy.state, disk.file) == ("complete", piece * 9)


async def test_the_texts_write_has_its_whole_time_once_the_copy_holds_nothing_up(
    idle_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause is older than the copy's deadline by then (B4)."""
    piece = PIECE * 10
    monkeypatch.setattr("supervisor.pump.SLICE_BYTES", len(piece))
    bench = idle_bench
    copy, disk = copy_for(bench)
    bench.disk.gate.clear()
    disk.gate.clear()
    bench.feed(*[piece] * 9)
    bench.clock.time = 2.0
    bench.pump.start()
    for seconds in (3.0, 2.0):  # the pause is looked at, then the copy is at its deadline
        await turns()
        bench.clock.advance(seconds)
    await turns()
    assert (copy.reason, bench.stream.retaining) == ("writer-stalled", True)
    bench.clock.advance(4.9)
    await turns()
    assert bench.stream.retaining
    bench.clock.advance(0.1)
    await turns()
    assert bench.stream.reason == "writer-stalled"
    bench.disk.gate.set()
    disk.gate.set()
    assert await bench.end() == Verdict("partial", "writer-stalled")


async def test_a_copy_that_fails_ends_alone(bench: Bench) -> None:
    """The world's fault keeps its prefix; our own makes nothing of it trustworthy, and is told to the loop."""
    copy, disk = copy_for(bench)
    disk.full_at = 5
    bench.feed(PIECE, PIECE)
    assert await bench.end() == Verdict("complete", None)
    assert (copy.state, copy.reason, copy.size, disk.file) == ("partial", "no-space", 5, PIECE[:5])
    copy.end("job-limit")
    assert copy.reason == "no-space"


async def test_a_defect_in_writing_a_copy_costs_the_copy(bench: Bench) -> None:
    """Nothing of it is trustworthy then."""
    copy, disk = copy_for(bench)

    async def broken(_: object) -> Kept:
        raise RuntimeError("broken")

    disk.write = broken  # type: ignore[method-assign, assignment]
    bench.feed(PIECE)
    assert await bench.end() == Verdict("complete", None)
    assert (copy.state, copy.reason) == ("failed", "internal")
    assert [str(context["exception"]) for context in bench.defects] == ["broken"]
    assert "stdout.raw" in bench.defects[0]["message"]


async def test_what_ends_the_pumps_retention_ends_the_copys(bench: Bench) -> None:
    """A record that could not be written, a pipe that failed, an ending that cannot be orderly."""
    copy, _ = copy_for(bench)
    bench.pump.end_retention("io-error")
    bench.feed(PIECE)
    assert await bench.end() == Verdict("partial", "io-error")
    assert (copy.state, copy.reason, copy.size) == ("partial", "io-error", 0)


async def test_a_write_that_never_comes_back_leaves_the_copys_length_unknown(bench: Bench) -> None:
    """And the text's known (D8)."""
    copy, disk = copy_for(bench)
    disk.gate.clear()
    disk.known = False
    bench.feed(PIECE)
    await turns()
    ending = asyncio.ensure_future(bench.end())
    for _ in range(2):
        await turns()
        bench.clock.advance(5.0)
    assert await ending == Verdict("complete", None)
    assert bench.pump.boundary_known
    assert (copy.state, copy.reason, copy.boundary_known) == ("failed", "writer-stuck", False)


async def test_a_copy_ends_with_bytes_missing_only_for_a_reason() -> None:
    """Otherwise it is a defect of ours, and no complete copy."""
    copy = RawCopying("stderr", object(), clock=object(), stall_timeout=1.0)  # type: ignore[arg-type]
    copy.observed = 1
    with pytest.raises(AssertionError, match="bytes missing"):
        _ = copy.state


async def test_raw_bytes_are_cut_anywhere() -> None:
    """At the byte: they have no characters."""
    assert first_bytes([b"ab", "é".encode(), b"c"], 3) == [b"ab", b"\xc3"]
    assert first_bytes([b"ab", b"", b"c"], 2) == [b"ab"]
    assert first_bytes([b"ab"], 0) == []
    assert first_bytes([b"ab"], 9) == [b"ab"]
