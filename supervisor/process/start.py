"""The blocking half of a spawn: pipes, process, pidfd. Runs on a thread of `spawner`; all or nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import limited, native, terminal
from .status import peak_of_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cgroup import Enclosure
    from .launch import Launch

BUSY_WAITS: Final = (0.002, 0.004, 0.008, 0.016)
"""Seconds. A program that was just written is "text file busy" while a child that another thread is starting still
holds a copy of the descriptor it was written with, until that child's exec (golang/go#22315)."""


@dataclass(frozen=True, slots=True)
class Started:
    """A process and what belongs to it; whoever holds this object owns all of it."""

    pid: int
    pidfd: int | None
    """None if none was asked for; -1 if the system had reaped the child before one could be had (SIGCHLD ignored)."""
    pipes: Mapping[int, int]
    """Our non-blocking end for each of the child's descriptors 0, 1 and 2 that got a pipe."""
    host_peak: int
    """The host's peak memory when it spawned; see `status.usage`."""
    limitations: tuple[str, ...] = ()
    enclosure: Enclosure | None = None
    """The cgroup in which it was started; None if it needed none, or none is to be had."""

    def destroy(self) -> None:
        """Kill the group, reap the leader, close everything. Blocks until the leader is dead."""
        close_all(self.pipes)
        if self.pidfd != -1:
            kill_and_reap(self.pid)
        if self.pidfd is not None and self.pidfd != -1:
            os.close(self.pidfd)
        if self.enclosure is not None:
            self.enclosure.end()


def close_all(ends: Mapping[int, int]) -> None:
    """Close every descriptor among the values."""
    for descriptor in ends.values():
        os.close(descriptor)


def kill_and_reap(pid: int) -> None:
    """Kill the group of a child that has just been started and wait for the child."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def open_ends(launch: Launch, ours: dict[int, int], theirs: dict[int, int]) -> None:
    """Open the child's three descriptors into `theirs` and our ends into `ours`, as far as it gets."""
    if launch.pty is not None:
        terminal.open_ends(launch.pty, ours, theirs, writable=launch.stdin == "pipe")
        return
    for fd in launch.outputs:
        ours[fd], theirs[fd] = os.pipe()
        os.set_blocking(ours[fd], False)
    if launch.stdin == "pipe":
        theirs[0], ours[0] = os.pipe()
        os.set_blocking(ours[0], False)
    else:
        theirs[0] = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def popen(launch: Launch, theirs: Mapping[int, int], kept: int | None = None) -> int:
    """Start with the standard library and return the pid; `kept` stays open under its number.

    A new session (which also keeps 3.13 off posix_spawn, where it would hold the GIL until the exec), no other
    descriptors, SIGPIPE and SIGXFSZ as the system has them. `preexec_fn`, `user` and the like would force a fork.
    """
    process = subprocess.Popen(
        launch.argv,
        stdin=theirs[0],
        stdout=theirs[1],
        stderr=theirs.get(2, theirs[1]),
        cwd=launch.cwd,
        env=launch.environment(),
        close_fds=True,
        pass_fds=() if kept is None else (kept,),
        start_new_session=True,
        restore_signals=True,
    )
    # Any number will do: the object now believes it was reaped, so neither its finaliser nor a later Popen takes
    # the status away from the pidfd.
    process.returncode = 0
    return process.pid


def create_process(
    launch: Launch, theirs: Mapping[int, int], enclosure: Enclosure | None = None
) -> tuple[int, tuple[str, ...]]:
    """Start the process; return its pid and what could not be had for it. Raises OSError, with nothing started."""
    oddities = native.signal_oddities()
    natively = (bool(oddities) or launch.pty is not None) and native.available()
    if launch.pty is not None and not natively:
        raise terminal.NoTerminal(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    def create(launch: Launch, kept: int | None = None) -> int:
        return native.spawn(launch, theirs, kept) if natively else popen(launch, theirs, kept)

    if launch.child_limits is None:
        pid = create(launch)
    else:
        pid = limited.create(launch, enclosure, create, kept_as=native.KEPT if natively else None)
    return pid, () if natively else oddities


def start(launch: Launch, *, by_pidfd: bool) -> Started:
    """Start `launch` and return what then exists. Raises OSError, with everything undone."""
    ours: dict[int, int] = {}
    theirs: dict[int, int] = {}
    with ExitStack() as undo:
        undo.callback(close_all, ours)
        enclosure, unsupported = limited.enclose(launch)
        if enclosure is not None:
            undo.callback(enclosure.end)
        try:
            open_ends(launch, ours, theirs)
            pid, limitations = create_with_retries(launch, theirs, enclosure)
        finally:
            close_all(theirs)
        host_peak = peak_of_host()  # after the exec, and so not below the peak that it booked
        undo.callback(kill_and_reap, pid)
        pidfd = open_pidfd(pid) if by_pidfd else None
        undo.pop_all()
    return Started(pid, pidfd, ours, host_peak, limitations + unsupported, enclosure)


def create_with_retries(
    launch: Launch, theirs: Mapping[int, int], enclosure: Enclosure | None = None
) -> tuple[int, tuple[str, ...]]:
    """`create_process`, tried again a few times while the program is busy (field report H5-056)."""
    for pause in BUSY_WAITS:
        try:
            return create_process(launch, theirs, enclosure)
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
        time.sleep(pause)
    return create_process(launch, theirs, enclosure)


def open_pidfd(pid: int) -> int:
    """Return a pidfd for a child of ours, or -1 if it is gone already, which only happens where SIGCHLD is ignored."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1
