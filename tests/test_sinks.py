"""Where decided text goes: limits, faults, and one spill from byte 0 (contract A7, B5, D5, D8)."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.limits import Limits
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.retention import Retention
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream
from supervisor.sinks import Kept, MemorySink, Nowhere, Sink, SpoolSink, trimmed
from supervisor.storage import Reservation, SpoolFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.sansio.words import CaptureReason, StreamName

PATIENCE: Final = 30.0
EURO: Final = "\u20ac".encode()


class Memory:
    """A spool without a file: `text` is what it took; it may fail after `room` bytes, or never come back."""

    def __init__(self) -> None:
        self.text = b""
        self.room = 1 << 30
        self.outstanding = False
        self.abandoned = False

    @property
    def size(self) -> int:
        """Bytes taken."""
        return len(self.text)

    async def write(self, chunks: Sequence[bytes]) -> None:
        """Take what there is room for."""
        taken = b"".join(chunks)
        self.text += taken[: self.room - self.size]
        if self.size == self.room:
            raise SpoolFault("no-space", errno.ENOSPC)

    def abandon(self) -> None:
        """Note it."""
        self.abandoned = True


class Allowance:
    """The allowance of a conversation that is not shared: `limit` bytes, each step of which may wait or fail."""

    def __init__(self, limit: float) -> None:
        self.free = limit
        self.granted = 0.0
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.answer.set()
        self.fault: CaptureReason | None = None

    def admit(self, capture_id: str) -> None:
        """Know the only capture."""

    def ceiling(self, capture_id: str) -> float:
        """Return what the only capture was granted."""
        del capture_id
        return self.granted

    async def grow(self, capture_id: str, wanted: int, at_least: int) -> None:
        """Grant what was wanted, or what is left."""
        del capture_id
        self.asked.set()
        await self.answer.wait()
        if self.fault is not None:
            raise SpoolFault(self.fault, None)
        step = wanted if wanted <= self.free else min(at_least, self.free)
        self.granted += step
        self.free -= step

    def let_go(self, capture_id: str) -> None:
        """Forget the capture."""
        del capture_id
        self.granted = 0


def reservation(limit: float = 1e9) -> Reservation:
    """Return a reservation of an allowance of its own."""
    return Reservation(Allowance(limit), "one")


def spool_sink(
    spool: Memory, *, name: StreamName = "stdout", job: float = 1000, reserve: float = 0, conversation: float = 1e9
) -> SpoolSink:
    """Return a sink over `spool` within these limits."""
    retention = Retention(Limits(job_bytes=job, stderr_reserve_bytes=reserve))
    return SpoolSink(name, spool, retention, reservation(conversation))  # type: ignore[arg-type]


def stream(name: StreamName = "stdout") -> Stream:
    """Return a stream without secrets."""
    return Stream(name, Sanitizer(NeedleSet.build()), Preview(1000, 4000))


@pytest.mark.asyncio
async def test_nowhere_keeps_nothing() -> None:
    """It is asked like any sink, and nothing is ever out (B9, D1)."""
    sink = Nowhere()
    assert await sink.write([b"text"]) == Kept(0)
    assert await sink.spill() == Kept(0)
    sink.give_up()
    assert sink.late() == 0


@pytest.mark.asyncio
async def test_a_spool_takes_what_is_within_the_limits() -> None:
    """All of it, and spilling adds nothing."""
    spool = Memory()
    sink = spool_sink(spool)
    assert await sink.write([b"one ", b"two"]) == Kept(7)
    assert await sink.spill() == Kept(0)
    assert spool.text == b"one two"


@pytest.mark.asyncio
@pytest.mark.parametrize(("limit", "kept"), [(3, 3), (4, 4), (5, 4), (6, 4), (7, 7), (8, 8)])
async def test_the_jobs_limit_cuts_at_a_character(limit: int, kept: int) -> None:
    """The file is whole UTF-8; what the last character did not fill stays free (D5, E3)."""
    spool = Memory()
    sink = spool_sink(spool, job=limit)
    assert await sink.write([b"abc", b"d" + EURO + b"e", b"f"]) == Kept(kept, "job-limit")
    assert len(spool.text) == kept
    spool.text.decode()


@pytest.mark.asyncio
async def test_what_exactly_fills_the_limit_ends_nothing() -> None:
    """Only a byte that is refused is a reason."""
    sink = spool_sink(Memory(), job=4)
    assert await sink.write([b"abcd"]) == Kept(4)
    assert await sink.write([b"e"]) == Kept(0, "job-limit")


@pytest.mark.asyncio
async def test_stderr_has_room_that_stdout_leaves_alone() -> None:
    """One account for both streams, and the last part of it is stderr's (D5)."""
    out, err = Memory(), Memory()
    retention = Retention(Limits(job_bytes=10, stderr_reserve_bytes=4))
    shared = reservation()
    stdout = SpoolSink("stdout", out, retention, shared)  # type: ignore[arg-type]
    stderr = SpoolSink("stderr", err, retention, shared)  # type: ignore[arg-type]
    assert await stdout.write([b"0123456789"]) == Kept(6, "job-limit")
    assert await stderr.write([b"why"]) == Kept(3)
    assert await stderr.write([b"so?"]) == Kept(1, "job-limit")


@pytest.mark.asyncio
async def test_the_conversations_allowance_is_named_when_it_is_what_ended() -> None:
    """Both limits refuse bytes here, and the tighter one is the cause; the cut is a character's (D5)."""
    spool = Memory()
    sink = spool_sink(spool, job=8, conversation=5)
    assert await sink.write([b"abc" + EURO, b"defgh"]) == Kept(3, "conversation-limit")
    assert spool.text == b"abc"


@pytest.mark.asyncio
async def test_two_streams_that_wait_for_one_step_stay_within_the_jobs_limit() -> None:
    """What one of them may keep is taken before it waits, and what it did not get is there for the other (D5)."""
    out, err = Memory(), Memory()
    retention = Retention(Limits(job_bytes=10, stderr_reserve_bytes=0))
    allowance = Allowance(8)
    allowance.answer.clear()
    shared = Reservation(allowance, "one")
    stdout = SpoolSink("stdout", out, retention, shared)  # type: ignore[arg-type]
    stderr = SpoolSink("stderr", err, retention, shared)  # type: ignore[arg-type]
    writes = asyncio.gather(stdout.write([b"01234"]), stderr.write([b"abc" + EURO + EURO]))
    await allowance.asked.wait()
    allowance.answer.set()
    assert await writes == [Kept(5), Kept(3, "conversation-limit")]
    assert (out.text, err.text) == (b"01234", b"abc")
    assert retention.taken == 8


@pytest.mark.asyncio
async def test_an_allowance_that_cannot_be_asked_ends_the_keeping_with_its_reason() -> None:
    """The file ends where it ended before, which is known (B5, D8)."""
    allowance = Allowance(1e9)
    spool = Memory()
    sink = SpoolSink("stdout", spool, Retention(Limits()), Reservation(allowance, "one"))  # type: ignore[arg-type]
    assert await sink.write([b"before"]) == Kept(6)
    allowance.fault = "writer-stalled"
    assert await sink.write([b"x" * 64 * 1024]) == Kept(0, "writer-stalled")
    assert spool.text == b"before"


@pytest.mark.asyncio
async def test_a_write_given_up_while_it_waits_for_the_allowance_kept_nothing() -> None:
    """Nothing was with the kernel; what an earlier write kept is not counted twice (B4)."""
    allowance = Allowance(1e9)
    spool = Memory()
    sink = SpoolSink("stdout", spool, Retention(Limits()), Reservation(allowance, "one"))  # type: ignore[arg-type]
    await sink.write([b"before"])
    allowance.answer.clear()
    allowance.asked.clear()
    write = asyncio.ensure_future(sink.write([b"x" * 64 * 1024]))
    await allowance.asked.wait()
    sink.give_up()
    assert sink.late() == 0
    write.cancel()
    await asyncio.wait({write})
    assert spool.text == b"before"


@pytest.mark.asyncio
async def test_a_fault_in_mid_batch_keeps_exactly_what_the_kernel_took() -> None:
    """Also in a later write: only its own bytes count (B5)."""
    spool = Memory()
    spool.room = 10
    sink = spool_sink(spool)
    assert await sink.write([b"12345678"]) == Kept(8)
    assert await sink.write([b"90", b"lost"]) == Kept(2, "no-space")
    assert spool.text == b"1234567890"


@pytest.mark.asyncio
async def test_a_write_that_was_given_up_is_known_once_it_is_back() -> None:
    """Until then nobody knows how much of it is on disk (D8)."""
    spool = Memory()
    sink = spool_sink(spool)
    await sink.write([b"before"])
    await sink.write([b"late"])
    sink.give_up()
    assert spool.abandoned
    spool.outstanding = True
    assert sink.late() is None
    spool.outstanding = False
    assert sink.late() == 4


@given(st.lists(st.text(min_size=1, max_size=6).map(str.encode), max_size=8), st.integers(0, 60))
def test_trimmed_text_is_the_longest_prefix_of_whole_characters(chunks: list[bytes], at_most: int) -> None:
    """However the characters lie in the chunks."""
    text = b"".join(chunks)
    kept = b"".join(trimmed(chunks, at_most))
    assert all(trimmed(chunks, at_most))
    assert text.startswith(kept)
    assert len(kept) <= at_most
    rest = text[len(kept) :].decode()
    assert kept.decode() + rest == text.decode()
    assert not rest or len(kept) + len(rest[0].encode()) > at_most


class Door:
    """Opens spools for memory sinks, once for all who ask, as a launch does."""

    def __init__(self, answer: CaptureReason | None = None) -> None:
        self.asked = 0
        self.opened = 0
        self.answer = answer
        self.lock = asyncio.Lock()
        self.spools: dict[StreamName, Memory] = {"stdout": Memory(), "stderr": Memory()}
        self.ready = asyncio.Event()

    async def open(self, name: StreamName) -> Sink | CaptureReason:
        """Wait for the test, then give this stream's sink."""
        self.asked += 1
        async with self.lock:
            if not self.opened:
                await self.ready.wait()
                self.opened += 1
        return self.answer or spool_sink(self.spools[name], name=name)


@pytest.mark.asyncio
async def test_what_fits_the_receipt_stays_in_memory() -> None:
    """No file is opened for a small success (A7)."""
    door = Door()
    sink = MemorySink(lambda: True, lambda: door.open("stdout"))
    assert await sink.write([b"small"]) == Kept(0)
    assert door.opened == 0
    sink.give_up()
    assert sink.late() == 0


@pytest.mark.asyncio
async def test_both_streams_spill_from_byte_0_into_one_capture() -> None:
    """Both ask at once, the capture is opened once, and each file begins with the first byte of its stream (A7)."""
    door = Door()
    fits = True
    out = MemorySink(lambda: fits, lambda: door.open("stdout"))
    err = MemorySink(lambda: fits, lambda: door.open("stderr"))
    assert await out.write([b"out 0 "]) == Kept(0)
    assert await err.write([b"err 0 "]) == Kept(0)
    fits = False
    spills = asyncio.gather(out.write([b"out 1 "]), err.write([b"err 1 "]))
    await asyncio.sleep(0)
    assert not spills.done()
    door.ready.set()
    assert await spills == [Kept(12), Kept(12)]
    assert await out.write([b"out 2"]) == Kept(5)
    assert await out.spill() == Kept(0), "spilled again, nothing is written twice"
    assert (door.asked, door.opened) == (2, 1), "each asks once, and the first opens for both"
    assert door.spools["stdout"].text == b"out 0 out 1 out 2"
    assert door.spools["stderr"].text == b"err 0 err 1 "


@pytest.mark.asyncio
async def test_a_capture_that_cannot_be_opened_ends_retention() -> None:
    """The reason is the storage's, and what was held is let go (D2)."""
    door = Door(answer="unsafe-directory")
    door.ready.set()
    sink = MemorySink(lambda: True, lambda: door.open("stdout"))
    await sink.write([b"held"])
    assert await sink.spill() == Kept(0, "unsafe-directory")
    assert sink._chunks == []


@pytest.mark.asyncio
async def test_a_spill_that_is_given_up_while_it_opens_writes_nothing() -> None:
    """What was held is let go at once, so the file that may still come stays empty (B4)."""
    door = Door()
    sink = MemorySink(lambda: False, lambda: door.open("stdout"))
    write = asyncio.ensure_future(sink.write([b"held"]))
    await asyncio.sleep(0)
    sink.give_up()
    assert sink.late() == 0
    door.ready.set()
    assert await write == Kept(0)
    assert door.spools["stdout"].text == b""
    sink.give_up()
    assert door.spools["stdout"].abandoned
    assert sink.late() == 0
