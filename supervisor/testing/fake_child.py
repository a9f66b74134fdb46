"""A child that a test plays: real pipes, a scripted exit.

Mocks of a subprocess answer from memory: they have no output while the child lives, no full pipe, no kill, no
descendant that keeps a pipe open. Here only what the kernel would say of the process is scripted (see `scripted.py`).
Bytes go through pipe(7), are read by the product's own reader, and reach the disk by the product's own way.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal as signals
import warnings
from typing import TYPE_CHECKING, Final, Self

from ..clock import SystemClock
from ..errors import SpawnError
from ..process.faults import spawn_error
from ..sansio.exits import Exited, Signalled
from .mistakes import check_data, check_failure, check_script, check_stream
from .pipes import ReadEnd, WriteEnd, anew, open_pipes
from .reactions import HARMLESS, Default, Delay, ExitWith, Ignore, check_reaction, ignore, status_of, told
from .scripted import ScriptedTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..clock import Clock, Handle
    from ..process import Child, Launch
    from ..sansio.words import StreamName
    from .history import History
    from .reactions import Reaction

    Script = Callable[["FakeChild"], Awaitable[None]]

FIRST_FAKE_PID: Final = 1 << 30
"""No process can have it: a futex keeps its owner's thread id in 30 bits (FUTEX_TID_MASK in linux/futex.h), so Linux
stays below, as its PID_MAX_LIMIT of 2^22 does; macOS stops at 99,999. A signal sent there by mistake reaches nobody."""

_pids = itertools.count(FIRST_FAKE_PID, 2)


class FakeChild:
    """One process, played by a test. Give `spawn` to a `Supervisor`; use it from that supervisor's loop.

    `exit` and `close` may come before the start and then happen at it; `feed` and `read_stdin` wait for it. A signal
    that would end a process ends it, with that signal, unless `on_signal` or `ignore` was told otherwise.

    What the supervisor does to it is a `BrokenPipeError` of the script's next step, which a script may expect; what no
    process can do (write after its exit, exit twice) is a `RuntimeError`. Every descriptor is closed when the
    supervisor releases the child; one that was never released closes them when it is collected, with a ResourceWarning.

    Args:
        script: What it does by itself from its start on, given the child; ended with it. Without one the test does all.
            If it raises, the child ends by SIGABRT, and the loop's exception handler and `FakeChildren.check` tell.
        clock: What `delay` goes by; None: the machine's.

    Attributes:
        pid: its process id, which no real process can have; that of its descendant (`hold_pipes`) is one higher.
        launched: what it was started with; None before.
        signals: the numbers of the signals that it took, those to its group included, in order.
        script_error: what its script has raised; None: nothing.
    """

    def __init__(self, script: Script | None = None, *, clock: Clock | None = None) -> None:
        self.pid: Final = next(_pids)
        self.launched: Launch | None = None
        self.signals: Final[list[int]] = []
        self.script_error: Exception | None = None
        self._failure: OSError | SpawnError | None = None
        self._why_not_started: Exception = RuntimeError("the fake child's start failed")
        self._settled_start = asyncio.Event()
        self._transport: ScriptedTransport | None = None
        self._stdin: ReadEnd | None = None
        self._outputs: dict[StreamName, WriteEnd] = {}
        self._closed: set[StreamName] = set()
        self._reactions: dict[int, Reaction] = {}
        self._clock: Final = clock or SystemClock()
        self._delayed: list[Handle] = []
        self._script: Final = script
        self._playing: asyncio.Task[None] | None = None
        self._status: Exited | Signalled | None = None
        self._descendant = False
        self._released = False
        self._signal_taken = asyncio.Event()
        self._why_over: Exception | None = None

    @classmethod
    def replay(cls, history: History, *, clock: Clock | None = None) -> Self:
        """Return a child that does once more what was recorded, in that order; it reads all of its stdin.

        Args:
            history: From `record` or `History.parse`.
            clock: Keep to the recorded times on this clock; None: write as fast as the supervisor reads.
        """
        return cls(lambda child: history.play(child, clock), clock=clock)

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Start it, as `supervisor.process.spawn` would: running, its readers paused. Give it to `Supervisor(spawn=)`.

        Raises:
            SpawnError: after `fail_to_spawn`, and if there are no descriptors for its pipes.
            AssertionError: it ran already; one object plays one process.
        """
        # A real start lasts at least one turn of the loop, and whoever starts it must bear what happens in it.
        await asyncio.sleep(0)
        if self._transport is not None:
            raise AssertionError("this FakeChild was started already; each plays one process")
        self.launched = launch
        try:
            return self._start(protocol, launch)
        except OSError as error:
            raise spawn_error(error, launch) from error
        finally:
            self._settled_start.set()

    def fail_to_spawn(self, error: OSError | SpawnError) -> None:
        """Let its start fail. An OSError becomes the `SpawnError` that the system's own would.

        What was missing is then diagnosed as ever: from the number and from what is on the disk [F6].

        Raises: TypeError, ValueError for what no start fails with; RuntimeError if it was started already.
        """
        check_failure(error)
        if self._transport is not None:
            raise RuntimeError("the fake child was started already")
        self._failure = error

    async def started(self) -> Launch:
        """Return what it was started with, once it runs.

        Raises: RuntimeError if its start failed; UnexpectedCommand if `FakeChildren` was asked for something else.
        """
        await self._settled_start.wait()
        if self.launched is None or self._transport is None:
            raise anew(self._why_not_started)
        return self.launched

    def not_coming(self, why: Exception) -> None:
        """Whoever waits for its start gets an exception like `why`; it may come all the same. See `FakeChildren`."""
        self._why_not_started = why
        self._settled_start.set()

    def _start(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        if isinstance(self._failure, SpawnError):
            # The supervisor adds its receipt to it, so each start has one of its own.
            told = self._failure
            raise SpawnError(str(told), errno=told.errno, fault=told.fault, subject=told.subject)
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        ours, theirs = open_pipes(launch)
        self._stdin = ReadEnd(loop, theirs[0])
        self._outputs = {"stdout": WriteEnd(loop, theirs[1]), "stderr": WriteEnd(loop, theirs[2])}
        self._transport = ScriptedTransport(loop, protocol, self.pid, ours, self)
        self._transport.start()
        for stream in self._closed:
            self._close_output(stream)
        if self._status is not None:
            self._leave(self._transport, self._status)
        if self._script is not None:
            self._playing = loop.create_task(self._play(self._script))
        return self._transport

    async def feed(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Write to its stdout or stderr; return when all is in the pipe, which may be before anybody has read it.

        A pipe holds 64 KiB at first: for more it waits until the supervisor reads, as a process would.

        Raises:
            BrokenPipeError: the supervisor ended the child, or reads no more of it.
            RuntimeError: the script itself has ended the child or closed the stream, or its start failed.
            TypeError, ValueError: no bytes, or no such stream.

        Cancellation: a part of `data` may be in the pipe.
        """
        check_stream(stream)
        check_data(data)
        await self.started()
        await self._outputs[stream].write(data)

    def close(self, stream: StreamName) -> None:
        """Close its stdout or stderr while it runs on; a merged pipe ends when both are closed. May be called again.

        After `exit(hold_pipes=True)` it is the descendant's, which ends with the second of them.

        Raises: ValueError for another stream.
        """
        check_stream(stream)
        self._closed.add(stream)
        if self._transport is not None:
            self._close_output(stream)

    def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """End by itself with `code` (0 if neither is given), or as if by `signal`; its pipes end with it.

        Args:
            code: 0 to 255.
            signal: The number of the signal that is said to have ended it. `signals` does not get it.
            hold_pipes: A descendant in its group keeps the pipes: `feed`, `close` and `read_stdin` are then the
                descendant's, and the signals to the group too. It ends by a signal, or when both streams are closed.

        Raises: ValueError for a code and a signal, or one that cannot be; RuntimeError if it has ended already.
        """
        status = status_of(code, signal)
        if self._status is not None:
            raise RuntimeError(f"the fake child has ended already, {told(self._status)}")
        if hold_pipes and self._all_closed():
            raise RuntimeError("no pipe is open that a descendant could hold")
        self._status = status
        self._descendant = hold_pipes
        if self._transport is not None:
            self._leave(self._transport, status)

    def ignore(self, *numbers: int) -> None:
        """Let these signals not end it, nor its descendant, from now on; they are still among `signals`.

        With SIGKILL among them it is a process that cannot be killed, such as one in state D.
        """
        for number in numbers:
            self.on_signal(number, ignore())

    def on_signal(self, number: int, reaction: Reaction) -> None:
        """React like that to each signal of this number from now on: `ignore()`, `exit_with()`, `delay()`.

        Raises: ValueError for what no process can do: end otherwise on a KILL; TypeError for what is no reaction.
        """
        check_reaction(number, reaction)
        self._reactions[int(number)] = reaction

    async def read_stdin(self, count: int | None = None) -> bytes:
        """Read the next `count` bytes of its stdin, fewer only at the end of file; None: all up to there.

        It reads nothing by itself: a script that does not read lets the pipe fill up. Without a stdin it is at its end.

        Raises: as `feed`.
        Cancellation: what was read until then is in `stdin_received`.
        """
        await self.started()
        assert self._stdin is not None
        return await self._stdin.read(count)

    @property
    def stdin_received(self) -> bytes:
        """All that was read of its stdin so far."""
        return b"" if self._stdin is None else bytes(self._stdin.received)

    async def received(self, number: int) -> None:
        """Return once it has taken a signal of this number.

        Raises: as `feed`, if it has ended without; ValueError if there is no such signal.
        """
        wanted = signals.Signals(number)
        while wanted not in self.signals:
            if self._why_over is not None:
                raise anew(self._why_over)
            self._signal_taken.clear()
            await self._signal_taken.wait()

    def members(self) -> tuple[int, ...]:
        """Return the pids of the live members of its group. Called by the transport."""
        leader = (self.pid,) if self._transport is not None and self._status is None else ()
        return (*leader, self.pid + 1) if self._descendant else leader

    def take_signal(self, number: int, *, group: bool) -> None:
        """Take a signal that was sent to it alone or to its group. Called by the transport."""
        if not (self._status is None or (group and self._descendant)):
            return
        number = int(number)  # not a `signal.Signals`: a receipt has plain numbers
        self.signals.append(number)
        self._signal_taken.set()
        self._react(number, self._reactions.get(number, Default()))

    def released(self) -> None:
        """Give everything back. Called by the transport, when it is released itself."""
        self._released = True
        for handle in self._delayed:
            handle.cancel()
        if self._playing is not None:
            self._playing.cancel()
        self._close_ends(BrokenPipeError("the supervisor has released the fake child"))

    def _react(self, number: int, reaction: Reaction) -> None:
        match reaction:
            case Ignore():
                return
            case Delay(seconds, then):
                when = self._clock.now() + seconds
                self._delayed.append(self._clock.call_at(when, lambda: self._react(number, then)))
            case ExitWith(status):
                self._end(status, f"the fake child has ended on signal {number}")
            case Default():
                if number in HARMLESS:
                    return
                self._end(Signalled(number), f"the fake child was ended by signal {number}")

    def _end(self, status: Exited | Signalled, why: str) -> None:
        """End whoever lives of its group; the leader's end is told if it was alive."""
        self._descendant = False
        self._close_ends(BrokenPipeError(why))
        if self._status is None and self._transport is not None:
            self._status = status
            self._transport.watch.end(status)

    async def _play(self, script: Script) -> None:
        try:
            running = script(self)
            check_script(running)
            await running
        except BrokenPipeError:
            return  # the supervisor has ended the child in the middle of it
        except Exception as error:  # noqa: BLE001 - a test's own code: the job must end, and the test hear of it
            self.script_error = error
            message = "the script of a fake child failed; the child ends by SIGABRT"
            asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
            self._end(Signalled(signals.SIGABRT), message)

    def _leave(self, transport: ScriptedTransport, status: Exited | Signalled) -> None:
        if not self._descendant:
            self._close_ends(RuntimeError(f"the fake child has ended by its script, {told(status)}"))
        transport.watch.end(status)

    def _close_output(self, stream: StreamName) -> None:
        self._outputs[stream].close(RuntimeError(f"the script has closed the fake child's {stream}"))
        if self._descendant and self._all_closed():
            self._descendant = False
            self._close_ends(RuntimeError("the fake child's descendant has ended by its script"))

    def _all_closed(self) -> bool:
        return self._closed >= {"stdout", "stderr"}

    def _close_ends(self, why: Exception) -> None:
        self._why_over = self._why_over or why
        self._signal_taken.set()
        for end in (self._stdin, *self._outputs.values()):
            if end is not None:
                end.close(why)

    def __del__(self) -> None:
        transport = self._transport
        if transport is None or self._released:
            return
        # Its loop is gone: it would keep the readers, which lead here. So nobody can be told, only closed.
        for pipe in (transport.stdin, *transport.readers.values()):
            if pipe is not None and not pipe.is_closing():
                os.close(pipe.get_extra_info("pipe"))
        self._close_ends(RuntimeError("the fake child was collected"))
        warnings.warn(f"{self!r} was started and never released", ResourceWarning, stacklevel=1, source=self)
