"""One write in flight, one batch behind it, and what becomes of a write that does not come back (B3-B5, D8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from supervisor.outbox import BATCH_BYTES, Outbox
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.rules import NO_RULES
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream, Verdict
from supervisor.sinks import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.sansio.words import CaptureReason

SOON = 0.001
"""Seconds: a deadline that is meant to pass."""
PATIENCE = 30.0
"""Seconds: one that is not."""


class Disk:
    """A sink whose writes come back when the test says so. `file` is what it kept."""

    def __init__(self) -> None:
        self.file = b""
        self.line: int | None = None
        self.batches: list[list[bytes]] = []
        self.answer: asyncio.Future[Kept] | None = None
        self.spilled = 0
        self.given_up = 0
        self.kept_late: int | None = None
        self.started = asyncio.Event()

    async def write(self, chunks: Sequence[bytes]) -> Kept:
        """Take the batch and wait for the answer."""
        self.batches.append(list(chunks))
        self.answer = asyncio.get_running_loop().create_future()
        self.started.set()
        return await self.answer

    async def spill(self) -> Kept:
        """Keep nothing."""
        self.spilled += 1
        return Kept(0)

    def give_up(self) -> None:
        """Count it."""
        self.given_up += 1

    def in_line(self) -> int | None:
        """Return what the test says: by default the write is with the disk."""
        return self.line

    def late(self) -> int | None:
        """What the test says."""
        return self.kept_late

    async def accept(self, count: int | None = None, ended: CaptureReason | None = None) -> None:
        """Let the write that is out come back: with all of its bytes, or with `count` and a reason."""
        await asyncio.wait_for(self.started.wait(), PATIENCE)
        self.started.clear()
        batch = b"".join(self.batches[-1])
        kept = batch if count is None else batch[:count]
        self.file += kept
        assert self.answer is not None
        self.answer.set_result(Kept(len(kept), ended))


class Bench:
    """A stream, its outbox and its disk."""

    def __init__(self) -> None:
        self.stream = Stream("stdout", Sanitizer(NeedleSet.build(), rules=NO_RULES), Preview(100, 400))
        self.disk = Disk()
        self.progress = 0
        self.outbox = Outbox(self.stream, self.disk, self.count)
        self.defects: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.defects.append(context))

    def count(self) -> None:
        """The outbox tells of progress."""
        self.progress += 1

    def put(self, text: bytes) -> None:
        """As the pump: decided by the stream, then handed on."""
        self.stream.observe(len(text))
        self.outbox.put(self.stream.feed(text, bulk=False))

    async def landed(self) -> None:
        """Return when no write is out."""
        assert await self.outbox.flush(PATIENCE)


@pytest_asyncio.fixture
async def bench() -> Bench:
    """A bench on the running loop."""
    return Bench()


@pytest.mark.asyncio
async def test_the_first_text_is_written_at_once_and_the_rest_in_one_batch(bench: Bench) -> None:
    """What comes while a write is out goes with the next one, in order; nothing is written twice."""
    for text in (b"a", b"b", b"c"):
        bench.put(text)
    bench.outbox.put(b"")
    await bench.disk.accept()
    await bench.disk.accept()
    await bench.landed()
    assert bench.disk.batches == [[b"a"], [b"b", b"c"]]
    assert bench.disk.file == b"abc"
    assert bench.stream.ledger.committed == 3
    assert bench.progress == 2
    assert bench.stream.verdict().state == "complete"


@pytest.mark.asyncio
async def test_nothing_is_written_of_nothing(bench: Bench) -> None:
    """An empty text makes no hop to a thread."""
    bench.outbox.put(b"")
    assert bench.outbox.flight is None
    assert await bench.outbox.flush(SOON)
    assert await bench.outbox.settle(SOON)


@pytest.mark.asyncio
async def test_there_is_room_until_a_batch_waits(bench: Bench) -> None:
    """Whoever puts waits while a whole batch is waiting, and goes on when it is on its way (B3)."""
    bench.put(b"x")
    bench.put(b"y" * (BATCH_BYTES - 1))
    await bench.outbox.room()
    bench.put(b"z")
    room = asyncio.ensure_future(bench.outbox.room())
    await bench.disk.started.wait()
    assert not room.done()
    await bench.disk.accept()
    await asyncio.wait_for(room, PATIENCE)
    await bench.disk.accept()
    await bench.landed()
    assert bench.stream.ledger.committed == BATCH_BYTES + 1


@pytest.mark.asyncio
async def test_a_cancelled_wait_for_room_loses_nothing(bench: Bench) -> None:
    """The text is in the batch, whoever waits."""
    bench.put(b"x")
    bench.put(b"y" * BATCH_BYTES)
    room = asyncio.ensure_future(bench.outbox.room())
    await bench.disk.started.wait()
    room.cancel()
    with pytest.raises(asyncio.CancelledError):
        await room
    await bench.disk.accept()
    await bench.disk.accept()
    await bench.landed()
    assert len(bench.disk.file) == BATCH_BYTES + 1


@pytest.mark.asyncio
async def test_a_fault_in_mid_batch_books_exactly_what_was_kept(bench: Bench) -> None:
    """The boundary is the file's size, and what waited is dropped (B5)."""
    bench.put(b"abcdef")
    bench.put(b"waiting")
    room = asyncio.ensure_future(bench.outbox.room())
    await bench.disk.accept(4, "no-space")
    await room
    await bench.landed()
    bench.put(b"later")
    counts = bench.stream.ledger.snapshot()
    assert counts.committed == len(bench.disk.file) == 4
    assert counts.uncommitted == len("efwaitinglater")
    assert len(bench.disk.batches) == 1
    assert bench.stream.verdict() == Verdict("partial", "no-space")
    assert bench.disk.given_up == 0, "no write was out"


@pytest.mark.asyncio
async def test_an_abandoned_write_that_comes_back_late_is_booked_exactly(bench: Bench) -> None:
    """Given up while it was out; what it kept then is on disk, so it counts (B4)."""
    bench.put(b"abcdef")
    bench.put(b"waiting")
    await bench.disk.started.wait()
    bench.outbox.end("writer-stalled")
    assert bench.disk.given_up == 1
    assert bench.outbox.flight is None
    assert await bench.outbox.flush(SOON), "nothing is out that will be waited for"
    assert bench.stream.ledger.committed == 0
    await bench.disk.accept(5, "io-error")
    assert await bench.outbox.settle(PATIENCE)
    assert await bench.outbox.settle(SOON), "settled again, it is not booked again"
    assert bench.stream.ledger.committed == len(bench.disk.file) == 5
    assert bench.stream.reason == "writer-stalled", "the first cause stays (A3)"


@pytest.mark.asyncio
@pytest.mark.realtime
@pytest.mark.parametrize(("late", "known"), [(3, True), (0, True), (None, False)])
async def test_a_write_that_does_not_come_back_is_settled_by_what_the_sink_knows(
    bench: Bench, late: int | None, *, known: bool
) -> None:
    """After the deadline the sink is asked once; where it does not know either, nobody does (D8)."""
    bench.put(b"abcdef")
    await bench.disk.started.wait()
    bench.outbox.end("writer-stalled")
    bench.disk.kept_late = late
    assert await bench.outbox.settle(SOON) is known
    assert bench.stream.ledger.committed == (late or 0)
    assert bench.disk.answer is not None
    assert bench.disk.answer.cancelled(), "nobody waits for it any more"


@pytest.mark.asyncio
@pytest.mark.realtime
async def test_a_write_that_takes_too_long_fails_the_flush_and_a_slow_one_does_not(bench: Bench) -> None:
    """Each write has its own deadline, so that many slow ones are not mistaken for a stuck one."""
    bench.put(b"a")
    assert not await bench.outbox.flush(SOON)
    flush = asyncio.ensure_future(bench.outbox.flush(PATIENCE))
    bench.put(b"b")
    await bench.disk.accept()
    await bench.disk.accept()
    assert await flush
    assert bench.disk.file == b"ab"


@pytest.mark.asyncio
async def test_spilling_asks_the_sink_unless_retention_has_ended(bench: Bench) -> None:
    """What may not be kept is not spilled either."""
    bench.outbox.spill()
    await bench.landed()
    assert bench.disk.spilled == 1
    bench.outbox.end("job-limit")
    bench.outbox.spill()
    await bench.landed()
    assert bench.disk.spilled == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("abandoned", [False, True])
async def test_a_sink_that_raises_costs_the_capture_and_is_told(bench: Bench, *, abandoned: bool) -> None:
    """A defect of ours is contained and not silent, also in a write that was given up before (B5)."""
    bench.put(b"abc")
    await bench.disk.started.wait()
    if abandoned:
        bench.outbox.end("writer-stalled")
    assert bench.disk.answer is not None
    bench.disk.answer.set_exception(RuntimeError("a defect"))
    await bench.landed()
    assert await bench.outbox.settle(PATIENCE)
    assert bench.stream.verdict() == Verdict("failed", "internal")
    assert [type(defect["exception"]) for defect in bench.defects] == [RuntimeError]
    bench.stream.observe(3)
    bench.outbox.put(b"def")
    assert len(bench.disk.batches) == 1
    assert bench.stream.ledger.snapshot().settled


@pytest.mark.asyncio
async def test_a_write_that_is_cancelled_from_outside_costs_the_capture_in_silence(bench: Bench) -> None:
    """A loop that is torn down cancels what is on it; that is no event for its handler."""
    bench.put(b"abc")
    await bench.disk.started.wait()
    assert bench.outbox.flight is not None
    bench.outbox.flight.cancel()
    await bench.landed()
    assert bench.stream.verdict().state == "failed"
    assert bench.defects == []


SCRIPT = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=20).map(bytes.hex).map(str.encode),
        st.integers(0, 60),
        st.just("land"),
        st.just("stall"),
    ),
    max_size=25,
)


@given(SCRIPT)
def test_what_is_committed_is_always_the_file(script: list[bytes | int | str]) -> None:
    """Whatever comes between puts: the file is a prefix of the text, and the ledger knows its length (B5, B6)."""

    async def play() -> None:
        bench = Bench()
        text = b""
        for step in script:
            if isinstance(step, bytes):
                bench.put(step)
                text += step
            elif bench.outbox.flight is not None:
                if step == "stall":
                    await bench.disk.started.wait()
                    bench.outbox.end("writer-stalled")
                    continue
                flight = bench.outbox.flight
                await bench.disk.accept(step if isinstance(step, int) else None, "no-space" if step != "land" else None)
                await asyncio.wait({flight})
            assert bench.stream.ledger.committed == len(bench.disk.file)
            assert text.startswith(bench.disk.file)
            assert bench.stream.ledger.committed + bench.stream.ledger.uncommitted == len(text)
        while bench.outbox.flight is not None:
            flight = bench.outbox.flight
            await bench.disk.accept()
            await asyncio.wait({flight})
        if bench.disk.started.is_set():
            await bench.disk.accept(1)
        assert await bench.outbox.settle(PATIENCE)
        assert bench.stream.ledger.committed == len(bench.disk.file)
        assert bench.disk.file == text or not bench.stream.retaining
        assert (bench.stream.verdict().state == "complete") is bench.stream.retaining

    asyncio.run(play())


@pytest.mark.asyncio
async def test_an_abandoned_write_keeps_the_outbox_busy_and_its_end_is_told(bench: Bench) -> None:
    """Whoever follows the file must not take it for finished, and learns when it is (contract E3)."""
    bench.put(b"text")
    assert bench.outbox.busy
    bench.outbox.end("writer-stalled")
    assert bench.outbox.busy
    told = bench.progress
    await bench.disk.accept()
    while bench.outbox.busy:  # noqa: ASYNC110 - the task ends within turns of the loop
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert bench.progress == told + 1
    assert await bench.outbox.settle(SOON)
