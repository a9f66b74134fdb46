"""Recording a real command: the product's own start, with somebody who writes down what it tells."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Final

from ..process import Child, Launch
from ..process import spawn as spawn_child
from ..sansio.exits import Lost
from .history import Closed, Ended, History, Moment, Wrote
from .mistakes import check_list, checked_argument

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from ..sansio.exits import ExitStatus
    from ..sansio.words import StreamName
    from ..services import Spawn

SAME_MOMENT: Final = 0.02
"""Seconds. A process's exit and the ends of its pipes reach us in any order; ends that come so soon after the exit are
taken for its own, later ones for a descendant's."""


async def record(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    merge: bool = False,
    time_limit: float = 60.0,
    drain_timeout: float = 1.0,
) -> History:
    """Run a command once, without a shell and with an empty stdin, and return what it did.

    After its exit, streams that stay open for `drain_timeout` seconds are held by a descendant, which is ended; in the
    history they never end.

    Raises:
        SpawnError: it cannot be started.
        TimeoutError: it did not exit within `time_limit` seconds; its process group was killed.
        RuntimeError: nobody saw how it ended.
        TypeError: the command is no list of arguments.

    Cancellation: its process group was killed, and nothing of it is left.
    """
    recorder = Recorder()
    check_list(command)
    launch = Launch(tuple(map(checked_argument, command)), None if cwd is None else str(cwd), env, merge=merge)
    listener = _Listener()
    child = await recorder.spawn(listener, launch)
    try:
        for descriptor in launch.outputs:
            reader = child.get_pipe_transport(descriptor)
            assert isinstance(reader, asyncio.ReadTransport)
            reader.resume_reading()
        async with asyncio.timeout(time_limit):
            await listener.exited.wait()
        await _ends(listener, len(launch.outputs), drain_timeout)
        return recorder.history()
    finally:
        child.signal_group(signal.SIGKILL)
        child.close()
        await asyncio.shield(listener.gone.wait())


class Recorder:
    """A start that writes down what the child does: for `Supervisor(spawn=)`, or for `RealChild`. One child.

    Args:
        start: What starts it.
    """

    def __init__(self, start: Spawn = spawn_child) -> None:
        self._start: Final = start
        self._launch: Launch | None = None
        self._moments: list[Moment] = []
        self._began = 0.0

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Start the child. Raises: as the start does; AssertionError for a second one."""
        if self._launch is not None:
            raise AssertionError("a Recorder records one child")
        self._launch = launch
        self._began = time.monotonic()
        return await self._start(_Tee(protocol, self), launch)

    def history(self) -> History:
        """Return what was seen so far.

        Raises: RuntimeError if it was not started, or no exit was seen.
        """
        if self._launch is None or not any(isinstance(moment, Ended) for moment in self._moments):
            raise RuntimeError("no exit of a recorded child was seen")
        return History(self._launch.argv, self._launch.merge, _ordered(self._moments, len(self._launch.outputs)))

    def note_output(self, stream: StreamName, data: bytes) -> None:
        """Write a chunk down."""
        self._moments.append(Wrote(self._passed(), stream, data))

    def note_end(self, stream: StreamName) -> None:
        """Write the end of a stream down."""
        self._moments.append(Closed(self._passed(), stream))

    def note_exit(self, status: ExitStatus | None) -> None:
        """Write the exit down."""
        if status is not None and not isinstance(status, Lost):
            self._moments.append(Ended(self._passed(), status))

    def _passed(self) -> float:
        return round(time.monotonic() - self._began, 6)


def _ordered(moments: Sequence[Moment], streams: int) -> tuple[Moment, ...]:
    """Return the moments with an exit that the process's own ends of file followed at once put after them."""
    ((index, ended),) = ((index, moment) for index, moment in enumerate(moments) if isinstance(moment, Ended))
    later = moments[index + 1 :]
    ends = sum(isinstance(moment, Closed) for moment in moments)
    if not later or ends < streams or later[-1].at - ended.at > SAME_MOMENT:
        return tuple(moments)
    return (*moments[:index], *later, Ended(later[-1].at, ended.status))


async def _ends(listener: _Listener, count: int, seconds: float) -> None:
    """Return when so many streams have ended, or the time is over."""
    try:
        async with asyncio.timeout(seconds):
            while listener.ends < count:
                listener.ended.clear()
                await listener.ended.wait()
    except TimeoutError:
        pass


class _Tee(asyncio.SubprocessProtocol):
    """Passes on what it hears, and has it written down."""

    def __init__(self, protocol: asyncio.SubprocessProtocol, recorder: Recorder) -> None:
        self._child: Child | None = None
        self._protocol: Final = protocol
        self._recorder: Final = recorder
        self._names: Final[dict[int, StreamName]] = {1: "stdout", 2: "stderr"}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The exit may be told before the start has returned.
        if isinstance(transport, Child):
            self._child = transport
        self._protocol.connection_made(transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._recorder.note_output(self._names[fd], data)
        self._protocol.pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        reader = None if self._child is None else self._child.readers.get(fd)
        if reader is not None and reader.at_end:  # else it was we who closed it
            self._recorder.note_end(self._names[fd])
        self._protocol.pipe_connection_lost(fd, exc)

    def process_exited(self) -> None:
        self._recorder.note_exit(None if self._child is None else self._child.exit)
        self._protocol.process_exited()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()


class _Listener(asyncio.SubprocessProtocol):
    """Waits for the ends."""

    def __init__(self) -> None:
        self.exited: Final = asyncio.Event()
        self.ended: Final = asyncio.Event()
        self.gone: Final = asyncio.Event()
        self.ends = 0

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd:
            self.ends += 1
            self.ended.set()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.gone.set()
