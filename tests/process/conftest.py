"""What the tests of `supervisor.process` share: a protocol that records, and a start that cleans up."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest
import pytest_asyncio

from supervisor.process import Launch, spawn
from supervisor.process import reader as reader_module
from supervisor.process.reader import Reader
from supervisor.process.spawn import spawn_watched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from supervisor.process import Child

PROGRAMS: Final = Path(__file__).parents[1] / "programs"
PATIENCE: Final = 30.0
"""Seconds after which a test gives up; nothing waits for it to pass."""


class Recorder(asyncio.SubprocessProtocol):
    """Keeps what it hears, in order, and lets a test wait for it."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.data = {1: b"", 2: b""}
        self.reads: list[int] = []
        self.changed = asyncio.Event()

    def note(self, event: Any) -> None:  # noqa: ANN401 - a word or a tuple
        """Keep it."""
        self.events.append(event)
        self.changed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: ARG002, D102
        self.note("made")

    def connection_lost(self, exc: Exception | None) -> None:
        """The last of all."""
        self.note(("gone", exc))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep it."""
        assert type(data) is bytes
        self.data[fd] += data
        self.reads.append(len(data))
        self.changed.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Keep it."""
        self.note(("lost", fd, type(exc) if exc else None))

    def process_exited(self) -> None:
        """Keep it."""
        self.note("exited")

    def pause_writing(self) -> None:
        """Keep it."""
        self.note("pause")

    def resume_writing(self) -> None:
        """Keep it."""
        self.note("resume")

    async def until(self, true: Callable[[], object]) -> None:
        """Return when `true()` is, looking after everything heard."""
        async with asyncio.timeout(PATIENCE):
            while not true():
                self.changed.clear()
                await self.changed.wait()

    async def heard(self, *events: Any) -> None:  # noqa: ANN401 - as `note`
        """Return when all the events were heard, in whatever order."""
        await self.until(lambda: all(event in self.events for event in events))

    async def line(self, fd: int = 1) -> str:
        """Return the first line, when it is whole."""
        await self.until(lambda: b"\n" in self.data[fd])
        return self.data[fd].split(b"\n")[0].decode()


class Start(Protocol):
    """What the fixture `start` gives."""

    async def __call__(self, *argv: str, reading: bool = True, **options: Any) -> tuple[Child, Recorder]: ...  # noqa: ANN401, D102


class ReadOwner:
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


class HandLoop:
    """A loop whose turns and timers a test makes by hand."""

    def __init__(self) -> None:
        self.ready: dict[int, Callable[[], None]] = {}
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.soon: list[Callable[[], None]] = []
        self.reported: list[BaseException] = []

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Note it."""
        self.ready[descriptor] = callback

    def is_closed(self) -> bool:
        """Return False: a test stops making turns instead."""
        return False

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


class ReaderRig:
    """A reader on a real pipe with a hand-driven loop."""

    def __init__(self) -> None:
        self.loop = HandLoop()
        self.owner = ReadOwner()
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


@pytest.fixture(scope="session")
def reader_rig_class() -> type[ReaderRig]:
    """Return the class, for a test that makes many or wants a new one."""
    return ReaderRig


@pytest.fixture
def reader_rig() -> Iterator[ReaderRig]:
    """Yield a reader that is resumed."""
    made = ReaderRig()
    made.reader.resume_reading()
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a one-element list that is the monotonic clock."""
    now = [100.0]
    monkeypatch.setattr(reader_module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def program() -> Callable[..., tuple[str, ...]]:
    """Return the command for a program of tests/programs and its arguments."""

    def command(name: str, *arguments: str) -> tuple[str, ...]:
        return (sys.executable, "-S", "-E", str(PROGRAMS / f"{name}.py"), *arguments)

    return command


@pytest.fixture
def host_program() -> Callable[..., tuple[str, ...]]:
    """Return the same for a program that imports `supervisor`, from wherever this process has it."""

    def command(name: str, *arguments: str) -> tuple[str, ...]:
        code = f"import runpy, sys; sys.path[:] = {sys.path!r}; del sys.argv[0]; runpy.run_path(sys.argv[0])"
        return (sys.executable, "-c", code, str(PROGRAMS / f"{name}.py"), *arguments)

    return command


@pytest_asyncio.fixture
async def recorder() -> Recorder:
    """Return a protocol that is not connected yet."""
    return Recorder()


async def starter(function: Callable[..., Any]) -> AsyncIterator[Start]:
    """Yield a start through `function`, and end at last what it started."""
    started: list[tuple[Child, Recorder]] = []

    async def start(*argv: str, reading: bool = True, **options: Any) -> tuple[Child, Recorder]:  # noqa: ANN401
        recorder = Recorder()
        child: Child = await function(recorder, Launch(argv, **options))
        started.append((child, recorder))
        if reading:
            for reader in child.readers.values():
                reader.resume_reading()
        return child, recorder

    yield start
    for child, recorder in started:
        child.close()
        await recorder.heard(("gone", None))
        assert recorder.events.count(("gone", None)) == 1
        assert recorder.events.count("exited") == 1


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Start]:
    """Start with `spawn`, whichever way that takes here."""
    async for function in starter(spawn):
        yield function


@pytest_asyncio.fixture(params=[True, False], ids=["pidfd", "thread"])
async def start_both(request: pytest.FixtureRequest) -> AsyncIterator[Start]:
    """Start with either implementation behind the seam."""
    async for function in starter(functools.partial(spawn_watched, by_pidfd=request.param)):
        yield function
