"""The exit of one child, read through its pidfd, and what it used.

The child stays a zombie until `reap()`: its pid, and with it the id of its group, cannot be given to anybody else
while the pipes drain. Nothing here ever waits for "any child": other parts of the host have children of their own
(contract F3, F10).
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import resource
import signal
import struct
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..sansio.exits import Exited, ExitStatus, Lost, Signalled

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

# include/uapi/linux/pidfd.h: _IOWR(0xFF, 11, struct pidfd_info) of the first published size, 64 bytes.
PIDFD_GET_INFO: Final = 0xC040FF0B
PIDFD_INFO_EXIT: Final = 1 << 3
PIDFD_INFO: Final = struct.Struct("=Q52xi")
"""`mask`, everything between, `exit_code` (a wait status)."""

RETRY_AFTER: Final = 0.001
"""Seconds."""
FOREIGN_TRIES: Final = 20
"""An exit that the kernel reaps itself is announced before its status is filed: it may take a few milliseconds."""

RSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""getrusage(2): kilobytes on Linux and the BSDs, bytes on macOS."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What wait4(2) counted: the child and those descendants that it waited for."""

    cpu: float
    """Seconds, user and system together."""
    max_rss: int | None
    """Bytes, of the largest single process; None if it stayed below what the host's own memory hides (see `usage`)."""


class Watch(ABC):
    """Sees one child end, signals it and lets it go. Used from the loop's thread."""

    limitations: tuple[str, ...] = ()

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, host_peak: int) -> None:
        self._loop = loop
        self._pid = pid
        self._host_peak = host_peak
        self._seen: Callable[[ExitStatus], None] | None = None

    def start(self, seen: Callable[[ExitStatus], None]) -> None:
        """Call `seen` once, from the loop, when the child has ended; never from within this call.

        Raises OSError, with nothing to be undone, if the system has no room for the watch.
        """
        self._seen = seen
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Arrange for `_announce`."""

    def _announce(self, status: ExitStatus) -> None:
        seen, self._seen = self._seen, None
        if seen is not None:
            seen(status)

    @abstractmethod
    def send_signal(self, number: int) -> None:
        """Raise ProcessLookupError if the child is known to be gone, PermissionError if it may not be signalled."""

    @abstractmethod
    def held(self) -> bool:
        """Whether the child is alive or an unreaped zombie, so that its pid is certainly still its own."""

    def reap(self) -> Usage | None:
        """Take the zombie away; None if somebody else did, or if it still lives. Never waits; may be called again."""
        if not self.held():
            return None
        try:
            # Python's waitid gives no usage, so the pid is used here; it is ours, as held() has just confirmed.
            pid, _status, counted = os.wait4(self._pid, os.WNOHANG)
        except OSError:  # ECHILD: somebody else was faster; whatever else it is, there is no usage to be had
            return None
        return usage(counted, self._host_peak) if pid else None

    def close(self) -> None:
        """Stop watching and give the descriptors back. May be called again."""
        self._seen = None


@functools.cache
def pidfd_supported() -> bool:
    """Whether this system has pidfd_open(2) and waitid(P_PIDFD): Linux 5.4, unless a sandbox filters them."""
    if not hasattr(os, "pidfd_open") or not hasattr(os, "P_PIDFD"):
        return False
    try:
        descriptor = os.pidfd_open(os.getpid())
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
            raise  # says nothing about the system, so nothing may be remembered
        return False
    try:
        os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True  # we are not our own child: the kernel understood the question
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def from_wait_status(status: int) -> ExitStatus:
    """Return the variant for a status as wait(2) packs it."""
    return Signalled(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else Exited(os.WEXITSTATUS(status))


def filed_status(pidfd: int) -> ExitStatus | None:
    """Return the status that the kernel filed with the pidfd when the child was reaped, or None (Linux 6.15+)."""
    info = bytearray(64)
    PIDFD_INFO.pack_into(info, 0, PIDFD_INFO_EXIT, 0)
    try:
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
    except OSError:
        return None
    mask, status = PIDFD_INFO.unpack_from(info)
    return from_wait_status(status) if mask & PIDFD_INFO_EXIT else None


def usage(counted: resource.struct_rusage, host_peak: int) -> Usage:
    """Return what `counted` says; `host_peak` is the host's own peak at the spawn, in the system's unit.

    execve(2) books the peak of the memory that it replaces to the child, and after a vfork that is the *host's*
    memory: a `/bin/true` started from a 300 MB process "used" 300 MB. A figure that does not exceed the host's is
    therefore unknown, not small (contract A4).
    """
    peak = counted.ru_maxrss
    known = peak > host_peak + host_peak // 8  # the kernel counts in per-CPU batches
    return Usage(counted.ru_utime + counted.ru_stime, peak * RSS_UNIT if known else None)


def peak_of_host() -> int:
    """Return this process's peak resident size so far, in the system's unit."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def from_waitid(result: os.waitid_result) -> ExitStatus:
    """Return the variant for what waitid(2) tells of a child that ended."""
    died = result.si_code in {os.CLD_KILLED, os.CLD_DUMPED}
    return Signalled(result.si_status) if died else Exited(result.si_status)


class PidfdWatch(Watch):
    """Watches through a pidfd on the loop; a pidfd of -1 says that the child was gone before one could be had."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, pidfd: int, host_peak: int) -> None:
        super().__init__(loop, pid, host_peak)
        self._pidfd = pidfd
        self._retry: asyncio.TimerHandle | None = None
        self._tries = 0

    def _begin(self) -> None:
        if self._pidfd < 0:
            self._loop.call_soon(self._announce, Lost())
        else:
            self._loop.add_reader(self._pidfd, self._look)

    def _look(self) -> None:
        self._retry = None
        try:
            result = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            self._look_filed()
            return
        except OSError:
            # No error but ECHILD is known (waitid(2)), and one that stays would call this back for ever.
            self._announce(Lost())
            return
        if result is None:
            self._look_again()  # dead, but a tracer has not let go of it: ptrace(2)
        else:
            self._end(from_waitid(result))

    def _look_filed(self) -> None:
        """Nobody's child any more: SIGCHLD is ignored, or another part of the host reaped it."""
        status = filed_status(self._pidfd)
        self._tries += 1
        if status is None and self._tries < FOREIGN_TRIES:
            self._look_again()
        else:
            self._end(status or Lost())

    def _look_again(self) -> None:
        """Come back by a timer: the descriptor stays readable, and would call without a pause."""
        self._loop.remove_reader(self._pidfd)
        self._retry = self._loop.call_later(RETRY_AFTER, self._look)

    def _end(self, status: ExitStatus) -> None:
        self._loop.remove_reader(self._pidfd)
        self._announce(status)

    def send_signal(self, number: int) -> None:
        """See `Watch.send_signal`. A signal to a zombie succeeds and does nothing."""
        if self._pidfd < 0:
            raise ProcessLookupError
        signal.pidfd_send_signal(self._pidfd, number)

    def held(self) -> bool:
        """See `Watch.held`."""
        if self._pidfd < 0:
            return False
        try:
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """See `Watch.close`."""
        super().close()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._pidfd >= 0:
            descriptor, self._pidfd = self._pidfd, -1
            if not self._loop.is_closed():
                self._loop.remove_reader(descriptor)
            os.close(descriptor)
