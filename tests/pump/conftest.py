"""A pump with a virtual clock, a scripted disk, a valve and a tap, for the tests of its parts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest_asyncio

from supervisor.clock import SystemClock
from supervisor.pump import Pump
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream, Verdict
from supervisor.sinks import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from supervisor.clock import Clock

PATIENCE: Final = 30.0
"""Seconds after which a test gives up; nothing waits for it to pass."""
HIGH: Final = 100
"""Bytes: the bench's high mark."""
SECRET: Final = b"hunter2-hunter2"


class Alarm:
    """A call that is to come."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """It does not come."""
        self.cancelled = True


class VirtualClock:
    """Time that a test moves by hand."""

    def __init__(self) -> None:
        self.time = 0.0
        self.alarms: list[Alarm] = []

    def now(self) -> float:
        """Virtual seconds."""
        return self.time

    def wall(self) -> datetime:
        """No pump asks for it."""
        raise NotImplementedError

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back when `advance` gets there."""
        self.alarms.append(Alarm(when, callback))
        return self.alarms[-1]

    @property
    def waiting(self) -> list[Alarm]:
        """The calls that are still to come."""
        return [alarm for alarm in self.alarms if not alarm.cancelled]

    def advance(self, seconds: float) -> None:
        """Move on, and call what is due."""
        self.time += seconds
        for alarm in [alarm for alarm in self.waiting if alarm.when <= self.time]:
            self.alarms.remove(alarm)
            alarm.callback()


class Disk:
    """A sink that keeps what it gets while its gate is open; a write that meets a closed one waits."""

    def __init__(self) -> None:
        self.file = b""
        self.line: int | None = None
        self.writes = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        self.known: bool = True
        self.delay = 0.0
        self.full_at: int | None = None

    async def write(self, chunks: Sequence[bytes]) -> Kept:
        """Keep all, or up to `full_at`."""
        self.writes += 1
        if not self.gate.is_set():
            self.waiting.set()
            await self.gate.wait()
        if self.delay:
            await asyncio.sleep(self.delay)
        text = b"".join(chunks)
        if self.full_at is not None and len(self.file) + len(text) > self.full_at:
            text = text[: self.full_at - len(self.file)]
            self.file += text
            return Kept(len(text), "no-space")
        self.file += text
        return Kept(len(text))

    async def spill(self) -> Kept:
        """Nothing is held."""
        return Kept(0)

    def give_up(self) -> None:
        """Nothing to do: the test opens the gate or does not."""

    def in_line(self) -> int | None:
        """Return what the test says: by default the write is with the disk."""
        return self.line

    def late(self) -> int | None:
        """Nothing, if that is known."""
        return 0 if self.known else None


class Tap:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.text = b""
        self.closed = False
        self.fault: Exception | None = None
        self.shown = asyncio.Event()

    def add(self, text: bytes) -> None:
        """Keep it, or fail."""
        if self.fault is not None:
            raise self.fault
        self.text += text
        self.shown.set()

    def close(self) -> None:
        """The end."""
        self.closed = True


class Valve:
    """A pipe's reader that is paused and resumed."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.resumed = asyncio.Event()

    def pause_reading(self) -> None:
        """Note it."""
        self.calls.append("pause")

    def resume_reading(self) -> None:
        """Note it."""
        self.calls.append("resume")
        self.resumed.set()


class Bench:
    """A pump with all that it touches."""

    def __init__(self, *, stall_timeout: float = 5.0, waits: Clock | None = None) -> None:
        self.high_mark = HIGH
        self.clock, self.disk, self.tap, self.valve = VirtualClock(), Disk(), Tap(), Valve()
        self.stream = Stream("stdout", Sanitizer(NeedleSet.build({"TOKEN": SECRET})), Preview(8000, 16384))
        self.holds: list[bool] = []
        self.pump = Pump(
            self.stream,
            self.disk,
            clock=waits or self.clock,
            stall_timeout=stall_timeout,
            high_mark=lambda: self.high_mark,
            on_hold=lambda: self.holds.append(True),
            on_unhold=lambda: self.holds.append(False),
            on_progress=lambda: None,
        )
        self.pump.tap, self.pump.valve = self.tap, self.valve
        self.defects: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.defects.append(context))

    def feed(self, *pieces: bytes) -> None:
        """The pipe gives these."""
        for piece in pieces:
            self.pump.data_received(piece)
            self.check()

    def check(self) -> None:
        """The identity of the raw bytes, and the representation's (B6)."""
        counts = self.stream.ledger.snapshot()
        assert counts.observed == counts.accepted + counts.pending + counts.discarded
        assert counts.committed <= len(self.disk.file)

    async def end(self, *, whole: bool = True) -> Verdict:
        """The pipe ends, everything is taken and written."""
        self.pump.pipe_ended()
        async with asyncio.timeout(PATIENCE):
            await self.pump.finish(whole=whole)
        return await self.written()

    async def written(self) -> Verdict:
        """The second half of an end: nothing may be left of the pump then."""
        async with asyncio.timeout(PATIENCE):
            await self.pump.flush(spill=True)
        self.check()
        assert self.stream.ledger.snapshot().settled
        assert self.clock.waiting == []
        assert self.tap.closed
        return self.stream.verdict()


@pytest_asyncio.fixture
async def bench() -> Bench:
    """A bench with a started pump."""
    made = Bench()
    made.pump.start()
    return made


@pytest_asyncio.fixture
async def idle_bench() -> Bench:
    """A bench whose pump takes nothing yet: our own slowness."""
    return Bench()


@pytest_asyncio.fixture
async def hasty_bench() -> Bench:
    """A bench with a started pump whose patience with a write passes in real time."""
    made = Bench(stall_timeout=0.005, waits=SystemClock())
    made.pump.start()
    return made
