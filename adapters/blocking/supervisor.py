"""The supervisor of one conversation, for callers on any thread."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from supervisor import Supervisor, SupervisorClosed

from .completions import BlockingCompletions, Subscription
from .job import BlockingJob
from .loop import shared

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self, Unpack

    from supervisor import Job, Limits, OptionsDict, Receipt, Rule

    from .completions import Callback
    from .loop import LoopThread

    Command = str | Sequence[str | os.PathLike[str]]

T = TypeVar("T")


class BlockingSupervisor:
    """Runs commands and owns their output; `supervisor.Supervisor` for threads, whose words mean the same.

    Use it as `with BlockingSupervisor(directory) as supervisor`, or call `open` and `close`. All that are open share
    one event loop, in one daemon thread, so there may be many: one for each conversation. Every method may be called
    from any thread, by any number at once. What is not closed is closed at the interpreter's exit, after all threads
    that are no daemons: its jobs are ended, and their receipts published. In a fork of the process everything that was
    made before raises `WrongProcess`; a supervisor that is made there is a good one.

    `timeout` is in seconds, None: no limit; after it `TimeoutError` is raised. All methods raise RuntimeError before
    `open`, and on the loop's own thread.

    Args:
        directory: The conversation that owns the captures, as for `Supervisor`.
        limits: As for `Supervisor`.
        secrets: As for `Supervisor`.
        rules: As for `Supervisor`.
        redaction: As for `Supervisor`.
        durability: As for `Supervisor`.
        admission: As for `Supervisor`.
        supervisor: One that was not entered yet, instead of all of these.

    Raises: ValueError, TypeError as `Supervisor`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        limits: Limits | None = None,
        secrets: Mapping[str, str] | None = None,
        rules: Iterable[Rule] = (),
        redaction: Literal["default", "none"] = "default",
        durability: Literal["barrier", "none"] = "barrier",
        admission: Literal["refuse", "queue"] = "refuse",
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor: Final = supervisor or Supervisor(
            directory,
            limits=limits,
            secrets=secrets,
            rules=rules,
            redaction=redaction,
            durability=durability,
            admission=admission,
        )
        self._lock: Final = threading.Lock()
        self._thread: LoopThread | None = None
        self._subscriptions: Final[list[Subscription]] = []
        self._closing: asyncio.Task[None] | None = None
        self._state: Literal["new", "open", "closed"] = "new"

    def open(self, timeout: float | None = None) -> Self:
        """Return this supervisor, which can start jobs now, whatever the directory is like. Once.

        Raises: TimeoutError: the directory does not answer; it may be tried again.
        """
        with self._lock:
            if self._state != "new":
                raise RuntimeError("a BlockingSupervisor is opened once")
            thread = shared.take()
            try:
                thread.call(self._supervisor.__aenter__, timeout)
            except BaseException:
                shared.give_back(thread)
                raise
            self._thread, self._state = thread, "open"
        shared.opened(self)
        return self

    def close(self, timeout: float | None = None) -> None:
        """End what still runs (`supervisor-shutdown`); return when it is settled and no callback runs. May be repeated.

        Raises: TimeoutError: the closing goes on, and another call waits for it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            if self._state == "new":
                self._state = "closed"
        thread = self._thread
        if thread is None:
            return
        thread.check()
        if self._is_closed():
            return
        try:
            thread.call(self._close, timeout, goes_on=True)
        except RuntimeError:
            if not self._is_closed():  # else another thread was faster, and the loop has ended with it
                raise
            return
        for subscription in tuple(self._subscriptions):
            subscription.stop(None if deadline is None else max(0.0, deadline - time.monotonic()))
        with self._lock:
            first, self._state = self._state == "open", "closed"
        if first:
            shared.closed(self)
            shared.give_back(thread)

    def begin_closing(self) -> None:
        """Ask for the end, and give no callback a new completion; return at once. `close` waits for the end.

        The interpreter's exit begins with this: what no callback was given then, the next supervisor offers.
        """
        thread = self._opened()
        for subscription in tuple(self._subscriptions):
            subscription.stop_soon()
        thread.begin(self._close)

    def kill(self) -> None:
        """Kill the process groups of all live jobs, whatever their `kill_after`; return at once."""
        for job in self.jobs:
            if not job.done and job.pid is not None:
                with suppress(ProcessLookupError, PermissionError):  # all have ended; one has another user
                    os.killpg(job.pid, signal.SIGKILL)  # a job that is not done keeps its leader's pid from others

    def start(self, command: Command, timeout: float | None = None, **options: Unpack[OptionsDict]) -> BlockingJob:
        """Start a command and return its job, once its launch is on record.

        Args:
            command: A list, run without a shell; or one string with `shell=True`.
            timeout: After it, or when a signal's handler interrupts this, what was started is ended.
            **options: As for `Supervisor.start`.

        Raises: ValueError, TypeError, SpawnError, TooManyJobs, SupervisorClosed as `Supervisor.start`; TimeoutError.
        """
        thread = self._opened()

        def unwanted(job: Job) -> None:
            thread.begin_here(job.terminate)

        return self._handle(thread.call(lambda: self._supervisor.start(command, **options), timeout, undo=unwanted))

    def run(self, command: Command, timeout: float | None = None, **options: Unpack[OptionsDict]) -> Receipt:
        """Run a command to its end and return its receipt. A small success leaves no file.

        A signal's handler that interrupts this (`KeyboardInterrupt`) ends the command. To end it after a time, use
        `time_limit`; to go on with its job after a time, `start` it and `wait`.

        Raises: as `start`; TimeoutError: the command goes on, and is among `jobs`.
        """
        return self._opened().call(lambda: self._supervisor.run(command, **options), timeout, goes_on=True)

    def add_secret(self, name: str, value: str) -> None:
        """Search for one more known value, in jobs that live and in later ones; as `Supervisor.add_secret`."""
        self._opened().ask(partial(self._supervisor.add_secret, name, value))

    def completions(self, timeout: float | None = None) -> BlockingCompletions:
        """Return an iterator over completions, as `Supervisor.completions` has it; each step waits for `timeout`."""
        thread = self._opened()
        return BlockingCompletions(thread, self._supervisor.completions(), timeout)

    def on_completion(self, callback: Callback) -> Subscription:
        """Have each completion given to the callback, on a thread of its own; see `Subscription`."""
        subscription = Subscription(self._opened(), self._supervisor.completions(), callback)
        self._subscriptions.append(subscription)
        return subscription

    @property
    def jobs(self) -> tuple[BlockingJob, ...]:
        """The live jobs and the last ended ones, oldest first; foreground runs among them."""
        return tuple(self._handle(job) for job in self._asked(lambda: self._supervisor.jobs))

    def job(self, job_id: str) -> BlockingJob:
        """Return the job of that id. Raises: UnknownCapture, also for one that ended long ago."""
        return self._handle(self._asked(lambda: self._supervisor.job(job_id)))

    def join(self, timeout: float | None = None) -> None:
        """Return when no job is live, those started meanwhile included. Raises: TimeoutError: the jobs go on."""
        self._opened().call(self._supervisor.join, timeout)

    def call(self, function: Callable[[Supervisor], Coroutine[Any, Any, T]], timeout: float | None = None) -> T:
        """Return what a function of the supervisor returns that has no blocking form here. Raises: TimeoutError."""
        return self._opened().call(lambda: function(self._supervisor), timeout)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _close(self) -> None:
        """Close once, however often it is asked for; what is cancelled is only the wait."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._supervisor.__aexit__(None, None, None))
        await asyncio.shield(self._closing)

    def _is_closed(self) -> bool:
        """Ask anew: another thread may have closed it."""
        return self._state == "closed"

    def _opened(self) -> LoopThread:
        if self._thread is None:
            raise RuntimeError("a BlockingSupervisor is used after `open`, or inside its `with` block")
        self._thread.check()
        if self._state == "closed":
            raise SupervisorClosed("the supervisor is closed")
        return self._thread

    def _asked(self, function: Callable[[], T]) -> T:
        """Return what the supervisor knows; closed, it changes no more."""
        if self._thread is not None and self._state == "closed":
            self._thread.check()
            return function()
        return self._opened().ask(function)

    def _handle(self, job: Job) -> BlockingJob:
        assert self._thread is not None
        return BlockingJob(job, self._thread)
