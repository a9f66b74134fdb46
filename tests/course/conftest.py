"""A course with a scripted child and a virtual clock: no process, no disk, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest_asyncio

from supervisor.course import Course
from supervisor.limits import Limits
from supervisor.pump import Pump
from supervisor.request import Command, Options, checked
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.preview import Preview
from supervisor.sansio.sanitizer import Sanitizer
from supervisor.sansio.stream import Stream
from supervisor.services import Services
from supervisor.sinks import MemorySink, Nowhere

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from supervisor.sansio.exits import ExitStatus
    from supervisor.sansio.words import StreamName

SECRET: Final = "hunter2-hunter2"
MIDNIGHT: Final = datetime(2026, 1, 1, tzinfo=UTC)
MakeCourse = Callable[..., Course]


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
    """Time that a test moves by hand, from call to call."""

    def __init__(self) -> None:
        self.time = 100.0
        self.alarms: list[Alarm] = []

    def now(self) -> float:
        """Virtual seconds."""
        return self.time

    def wall(self) -> datetime:
        """The same, as a time of day."""
        return MIDNIGHT + timedelta(seconds=self.time)

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back when `advance` gets there."""
        self.alarms.append(Alarm(when, callback))
        return self.alarms[-1]

    @property
    def waiting(self) -> list[Alarm]:
        """The calls that are still to come, by time."""
        return sorted((alarm for alarm in self.alarms if not alarm.cancelled), key=lambda alarm: alarm.when)

    def advance(self, seconds: float) -> None:
        """Move on, stopping at each call."""
        until = self.time + seconds
        while self.waiting and self.waiting[0].when <= until:
            alarm = self.waiting[0]
            self.alarms.remove(alarm)
            self.time = max(self.time, alarm.when)
            alarm.callback()
        self.time = until


class Reader:
    """One output pipe's reader."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        """Note it; the test tells the end, as the loop would later."""
        self.closed = True


class Writer(asyncio.WriteTransport):
    """The child's stdin."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Keep it."""
        self.written += data

    def write_eof(self) -> None:
        """End it."""
        self.ended = True

    def is_closing(self) -> bool:
        """After its end nothing can be written."""
        return self.ended


class ScriptedChild:
    """A child of which the test says how it behaves; signals are noted and have no effect of their own."""

    def __init__(self) -> None:
        self.exit: ExitStatus | None = None
        self.usage = None
        self.limitations = ("a-limitation",)
        self.signals: list[int] = []
        self.members: tuple[int, ...] | None = (4242,)
        self.left_behind: tuple[int, ...] | None = ()
        self.holding: tuple[int, ...] | None = None
        self.tree_limitation: str | None = "tree-by-something"
        self.waiting = {1: 0, 2: 0}
        self.pipes: dict[int, Reader | Writer] = {0: Writer(), 1: Reader(), 2: Reader()}
        self.ending: str | None = None
        self.out_of_memory = False

    def get_pid(self) -> int:
        """Any number."""
        return 4242

    def get_pipe_transport(self, fd: int) -> Reader | Writer | None:
        """The transports of its three descriptors."""
        return self.pipes.get(fd)

    def unread(self, fd: int) -> int:
        """What the test says."""
        return self.waiting[fd]

    def signal_group(self, number: int) -> bool:
        """Note it."""
        self.signals.append(number)
        return True

    def group_members(self) -> tuple[int, ...] | None:
        """What the test says."""
        return self.members

    def press(self) -> tuple[int, ...] | None:
        """What the test says."""
        return self.members

    def holders(self) -> tuple[int, ...] | None:
        """What the test says."""
        return self.holding

    def survivors(self) -> tuple[int, ...] | None:
        """What the test says."""
        return self.left_behind

    def release(self) -> None:
        """Note it."""
        self.ending = "released"

    def abandon(self) -> None:
        """Note it."""
        self.ending = "abandoned"


def add_pump(course: Course, name: StreamName, *, memory: bool) -> Pump:
    """Give the course a stream whose text stays in memory, or goes nowhere."""
    limits = course.services.limits
    chars = limits.preview_stdout_chars if name == "stdout" else limits.preview_stderr_chars
    sanitizer = Sanitizer(course.services.needles(None), redact=course.services.redact)

    async def refuse() -> Any:  # noqa: ANN401 -- it never returns
        raise NotImplementedError

    course.pumps[name] = Pump(
        Stream(name, sanitizer, Preview(chars, limits.preview_bytes)),
        MemorySink(lambda: True, refuse) if memory else Nowhere(),
        clock=course.services.clock,
        stall_timeout=limits.stall_timeout,
        high_mark=course.services.high_mark,
        on_hold=course.hold,
        on_unhold=course.unhold,
        on_progress=lambda: None,
    )
    course.pumps[name].start()
    return course.pumps[name]


@pytest_asyncio.fixture
async def make_course() -> AsyncIterator[MakeCourse]:
    """Make courses; whatever is left of their pumps is ended afterwards."""
    made: list[Course] = []

    def make(
        command: Command = ("pytest", "-q"),
        *,
        kept: bool = False,
        limits: Limits | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Course:
        async def never(*_: object) -> Any:  # noqa: ANN401 -- it never returns
            raise NotImplementedError

        needles = NeedleSet.build({"TOKEN": SECRET})
        services = Services(VirtualClock(), limits or Limits(), never, lambda _: needles, redact=True)
        course = Course("3", "a-capture", checked(command, Options(**options)), services, kept=kept)
        for name in ("stdout",) if course.request.options.merge else ("stdout", "stderr"):
            add_pump(course, name, memory=not kept)
        made.append(course)
        return course

    yield make
    for course in made:
        course.stop_clock()
        for pump in course.pumps.values():
            pump.pipe_ended()
            await pump.finish(whole=False)
            await pump.flush(spill=False)


@pytest_asyncio.fixture
async def course(make_course: MakeCourse) -> Course:
    """A course without limits that has no child yet."""
    return make_course()


@pytest_asyncio.fixture
async def child() -> ScriptedChild:
    """A child that no course has adopted."""
    return ScriptedChild()
