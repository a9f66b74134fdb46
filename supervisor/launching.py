"""How a job begins: capture, child, launch record, and only then the first read [A7].

The order is the promise: a command whose capture could be opened has its files before it runs, and a record of its
launch, with a pending receipt, before its first byte is taken from the pipe.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from .course import DESCRIPTORS, Course
from .errors import SpawnError, StorageError
from .live import Window
from .matching import matcher_of
from .pipelines import prepared
from .pump import Pump
from .rawcopy import RawCopying, first_bytes, raw_name
from .reporting import clean, launch_record, not_searched, pending_receipt
from .request import PIPE
from .sansio.preview import Preview
from .sansio.retention import RawRetention, Retention
from .sansio.sanitizer import Sanitizer
from .sansio.stream import Stream
from .sinks import MemorySink, Nowhere, Sink, SpoolSink

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from .sansio.words import CaptureReason, StreamName

STDIN_SLICE: Final = 1024 * 1024
"""How much of a given stdin is put into the pipe's buffer at once, so that it is not all held twice."""


class Protocol(asyncio.SubprocessProtocol):
    """Tells a course what its transport says."""

    def __init__(self, course: Course) -> None:
        self._course: Final = course
        self._names: Final[dict[int, StreamName]] = {1: "stdout", 2: "stderr"}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Bytes came out of a pipe."""
        self._course.output_seen(self._names[fd], data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A pipe ended. The child's closing its stdin is no error of the job."""
        if fd == 0:
            self._course.writable.set()
        else:
            self._course.pipe_ended(self._names[fd], exc)

    def process_exited(self) -> None:
        """The leader ended."""
        self._course.exit_noticed()

    def pause_writing(self) -> None:
        """The buffer of stdin is full."""
        self._course.writable.clear()

    def resume_writing(self) -> None:
        """The buffer of stdin has room."""
        self._course.writable.set()


async def launch(course: Course) -> None:
    """Return when the child runs, its launch is on record, and its first byte may be read; or when it is not wanted.

    Raises: SpawnError, after telling the lifecycle.
    """
    await course.services.turnstile.turn()
    await _prepare(course)
    lifecycle = course.lifecycle
    if lifecycle.cause is not None:
        course.act(lifecycle.not_spawned())
        return
    try:
        child = await course.services.spawn(Protocol(course), prepared(course))
    except SpawnError:
        course.act(lifecycle.not_spawned())
        raise
    course.adopt(child)
    if course.capture is not None:
        await _record(course)
    for name, pump in course.pumps.items():
        pump.start()
        reader = child.get_pipe_transport(DESCRIPTORS[name])
        assert isinstance(reader, asyncio.ReadTransport)
        pump.valve = reader
        reader.resume_reading()
    _feed_stdin(course)


async def _prepare(course: Course) -> None:
    """Open the capture of a kept job, and make the pumps."""
    services, options = course.services, course.request.options
    names: tuple[StreamName, ...] = ("stdout",) if options.merge else ("stdout", "stderr")
    if services.redact:
        course.limitations.extend(not_searched(course.needles))
    if options.capture == "spool":
        course.unavailable = services.unavailable
        course.limitations.extend(services.limitations)
        # A copy holds the first byte too, so a foreground run with one has its files from the start.
        if (course.kept or options.keep == "raw") and services.conversation is not None:
            await open_capture(course, names)
    retention = Retention(services.limits, merged=options.merge)
    for_copies = RawRetention(retention)
    for name in names:
        course.pumps[name] = _pump(course, name, retention)
        if options.keep == "raw":
            course.pumps[name].raw_copy = _raw_copy(course, name, for_copies)
    services.live_streams += len(names)


async def open_capture(course: Course, names: tuple[StreamName, ...]) -> bool:
    """Open the capture's files, or learn why there will be none; return whether there are."""
    conversation = course.services.conversation
    assert conversation is not None
    copies = tuple(map(raw_name, names)) if course.request.options.keep == "raw" else ()
    try:
        course.capture = await conversation.create_capture(course.capture_id, (*names, *copies))
    except StorageError as error:
        course.unavailable = error.reason
        course.limitations.append(str(error))
        return False
    return True


def _pump(course: Course, name: StreamName, retention: Retention) -> Pump:
    services, options = course.services, course.request.options
    limits = services.limits
    chars = limits.preview_stdout_chars if name == "stdout" else limits.preview_stderr_chars
    needles = course.needles
    engine = matcher_of(needles, redact=services.redact)
    sanitizer = Sanitizer(needles, redact=services.redact, engine=engine, stream=True)
    stream = Stream(name, sanitizer, Preview(chars, limits.preview_bytes))
    pump = Pump(
        stream,
        _sink(course, name, retention),
        clock=services.clock,
        stall_timeout=limits.stall_timeout,
        high_mark=services.high_mark,
        on_hold=course.hold,
        on_unhold=course.unhold,
        on_progress=course.progress[name].happened,
    )
    if options.capture == "none":
        stream.mute()
    elif course.unavailable is not None:
        pump.end_retention(course.unavailable)
    if options.window_bytes:
        pump.tap = Window(options.window_bytes)
    return pump


def _raw_copy(course: Course, name: StreamName, retention: RawRetention) -> RawCopying | None:
    """Return the copy of a stream; None where there is no capture, as the receipt says."""
    if course.capture is None:
        return None
    spool = course.capture.spools[raw_name(name)]
    sink = SpoolSink(name, spool, retention, course.capture.reservation, trim=first_bytes)
    services = course.services
    return RawCopying(name, sink, clock=services.clock, stall_timeout=services.limits.stall_timeout)


def _sink(course: Course, name: StreamName, retention: Retention) -> Sink:
    if course.capture is not None:
        return SpoolSink(name, course.capture.spools[name], retention, course.capture.reservation)
    if course.kept or course.unavailable is not None or course.request.options.capture == "none":
        return Nowhere()

    async def open_spool() -> Sink | CaptureReason:
        await _open_once(course)
        if course.capture is None:
            assert course.unavailable is not None
            return course.unavailable
        return SpoolSink(name, course.capture.spools[name], retention, course.capture.reservation)

    return MemorySink(course.fits_receipt, open_spool)


async def _open_once(course: Course) -> None:
    """Open the capture of a foreground run; the second of two streams finds it open, or unavailable."""
    async with course.opening:
        wanted = course.capture is None and course.unavailable is None
        if wanted and await open_capture(course, tuple(course.pumps)):
            await _record(course)


async def _record(course: Course) -> None:
    """Write the launch record: who owns the capture, whether a completion is owed for it, and its receipt so far."""
    assert course.capture is not None
    assert course.services.conversation is not None
    owner, receipt = course.services.conversation.owner, pending_receipt(course)
    record = launch_record(owner, receipt, kept=course.kept, environment=_environment(course))
    try:
        await course.capture.record_launch(record)
    except StorageError as error:
        for pump in course.pumps.values():
            pump.end_retention(error.reason)


def _environment(course: Course) -> dict[str, object]:
    """Return how the environment was changed, by names; a name may contain a known value as well as any text [C8]."""
    changes = course.request.environment
    needles = course.needles
    names = {key: [clean(needles, name) for name in getattr(changes, key)] for key in ("set", "removed")}
    return {**asdict(changes), **names}


def _feed_stdin(course: Course) -> None:
    stdin = course.request.options.stdin
    if stdin is None or stdin == PIPE:
        return
    source = _slices(stdin) if isinstance(stdin, bytes) else stdin
    course.feeder = asyncio.get_running_loop().create_task(_feed(course, source))


async def _slices(data: bytes) -> AsyncIterable[bytes]:
    for start in range(0, len(data), STDIN_SLICE):
        yield data[start : start + STDIN_SLICE]


async def _feed(course: Course, source: AsyncIterable[bytes]) -> None:
    """Write the source to the child. A child that does not want it all is no error of the job [F7]."""
    with suppress(BrokenPipeError):
        try:
            async for chunk in source:
                await course.write(chunk)
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 -- the caller's iterable, not ours: the child gets its EOF all the same
            course.limitations.append("stdin-source-failed")
            message = "the async iterable given as stdin failed; the child got its end of file there"
            asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
    course.close_stdin()
