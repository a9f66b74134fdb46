"""`spawn()`: one child on the way from a launch to a transport, with nothing left behind if it is cancelled."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from . import given_up, leaving, spawner
from .fallback import ThreadWatch
from .faults import spawn_error
from .start import Started, start
from .status import PidfdWatch, pidfd_supported
from .transport import Child
from .tree import Tree

if TYPE_CHECKING:
    from collections.abc import Generator

    from .launch import Launch
    from .status import Watch

CANCEL_PATIENCE: Final = 1.0
"""Seconds that a cancelled `spawn()` waits for its child's end. Only an exec that is stuck needs more than a few
milliseconds; its thread then does the same whenever it returns."""


class Ticket:
    """One start under way, and the answer to who owns what comes of it: the thread, or the loop that asked.

    `settled` is done once no thread has anything more to do with it.
    """

    def __init__(self, launch: Launch, loop: asyncio.AbstractEventLoop, *, by_pidfd: bool) -> None:
        self.settled: asyncio.Future[None] = loop.create_future()
        self._start = functools.partial(start, launch, by_pidfd=by_pidfd)
        self._loop = loop
        self._lock = threading.Lock()
        self._begun = False
        self._abandoned = False
        self._outcome: Started | Exception | None = None

    def run(self) -> None:
        """Start the process, on a thread of the spawner, unless it was given up meanwhile."""
        with self._lock:
            if self._abandoned:
                return
            self._begun = True
            settled = self.settled
        try:
            outcome: Started | Exception = self._start()
        except Exception as error:  # noqa: BLE001 - carried to the loop and raised there
            outcome = error
        with self._lock:
            kept = not self._abandoned
            if kept:
                self._outcome = outcome
        if not kept and isinstance(outcome, Started):
            outcome.destroy()
        self._post(settled)

    def take(self) -> Started:
        """Return what was started, or raise why not; the caller owns it from now on. Only once it is settled."""
        with self._lock:
            outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Exception):
            raise outcome
        assert outcome is not None
        return outcome

    def abandon(self) -> asyncio.Future[None]:
        """Give the start up; what exists or still arrives is destroyed on a thread, and then the future is done."""
        with self._lock:
            self._abandoned = True
            late, self._outcome = self._outcome, None
        if not self._begun:
            self._settle(self.settled)
        elif isinstance(late, Started):
            self.settled = self._loop.create_future()
            try:
                spawner.shared.submit(functools.partial(self._destroy, late, self.settled))
            except RuntimeError:  # no thread to be had: then here
                self._destroy(late, self.settled)
        return self.settled

    def _destroy(self, late: Started, settled: asyncio.Future[None]) -> None:
        late.destroy()
        self._post(settled)

    def _post(self, settled: asyncio.Future[None]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, settled)
        except RuntimeError:  # the loop is closed, so nobody will come for the outcome
            with self._lock:
                late, self._outcome = self._outcome, None
            if isinstance(late, Started):
                late.destroy()

    @staticmethod
    def _settle(settled: asyncio.Future[None]) -> None:
        if not settled.done():
            settled.set_result(None)


async def spawn(protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
    """Start `launch` and return its transport, after `protocol.connection_made(transport)`.

    The child runs already. Its pipes exist and are paused: nothing is read before `resume_reading()` of each.

    Raises:
        SpawnError: it could not be started; no process, descriptor or thread of it is left (contract F6).

    Cancellation:
        When the CancelledError comes out, the child was never started, or was killed with its group and reaped. An
        exec that is stuck for over CANCEL_PATIENCE is left to its daemon thread, which does that when it returns.
    """
    try:
        return await spawn_watched(protocol, launch, by_pidfd=pidfd_supported())
    except OSError as error:
        raise spawn_error(error, launch) from error


async def spawn_watched(protocol: asyncio.SubprocessProtocol, launch: Launch, *, by_pidfd: bool) -> Child:
    """Do what `spawn` does, with the watch that is asked for. Raises OSError, with nothing left behind."""
    loop = asyncio.get_running_loop()
    given_up.reap()
    started = await start_on_thread(launch, loop, by_pidfd=by_pidfd)
    watch: Watch
    if started.pidfd is None:
        watch = ThreadWatch(loop, started.pid, started.host_peak)
    else:
        watch = PidfdWatch(loop, started.pid, started.pidfd, started.host_peak)
    tree = Tree(started.pid, launch.mark, watch.held, enclosure=started.enclosure)
    limitations = watch.limitations + started.limitations
    terminal = launch.pty is not None
    child = Child(loop, protocol, started.pid, started.pipes, watch, limitations, tree, terminal=terminal)
    try:
        child.start()
    except OSError:
        tree.forget()
        started.destroy()
        raise
    leaving.LIVE[child] = os.getpid()
    return child


async def start_on_thread(launch: Launch, loop: asyncio.AbstractEventLoop, *, by_pidfd: bool) -> Started:
    """Return what a thread of the spawner started. Raises OSError; cancellation as `spawn`."""
    ticket = Ticket(launch, loop, by_pidfd=by_pidfd)
    try:
        spawner.shared.submit(ticket.run)
    except RuntimeError as error:  # "can't start new thread" is pthread_create's EAGAIN
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    try:
        with relief(loop):
            await asyncio.wait((ticket.settled,))
    except BaseException as error:
        gone = ticket.abandon()
        if isinstance(error, asyncio.CancelledError):
            await wait_despite_cancellation(gone, loop.time() + CANCEL_PATIENCE)
        raise
    return ticket.take()


@contextmanager
def relief(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Inside, the spawner is asked to see again and again whether its threads are stuck."""
    timer: asyncio.TimerHandle | None = None

    def ask() -> None:
        nonlocal timer
        timer = loop.call_later(spawner.STUCK_AFTER, ask)
        spawner.shared.relieve()

    timer = loop.call_later(spawner.STUCK_AFTER, ask)
    try:
        yield
    finally:
        timer.cancel()


async def wait_despite_cancellation(future: asyncio.Future[None], deadline: float) -> None:
    """Return when `future` is done or the loop's clock has reached `deadline`; further cancellations are absorbed.

    The caller is about to raise a CancelledError anyway (contract F5: a second cancel does not leak a child).
    """
    loop = asyncio.get_running_loop()
    while not future.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait((future,), timeout=left)
        except asyncio.CancelledError:
            continue
