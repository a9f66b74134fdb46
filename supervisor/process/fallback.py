"""The exit of one child without a pidfd: macOS, kernels before 5.4, sandboxes that filter the calls.

One daemon thread per child waits for it, and leaves the zombie where waitid(2) is to be had (macOS: Python 3.13);
elsewhere the child is reaped at its exit, usage is unknown, and its group is signalled by the weaker rule of `tree`.
All else of a spawn is the same code. `loop.subprocess_exec` is no way to go: uvloop hands the child a second copy of
each pipe, so that one which closes its output early never shows an end of file, and it waits for SIGCHLD, which the
host may have blocked; asyncio gives an unknown status as 255.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from ..sansio.exits import ExitStatus, Lost
from .status import Watch, from_wait_status, from_waitid

if TYPE_CHECKING:
    import asyncio


class ThreadWatch(Watch):
    """Watches by a thread that waits; it ends when the child does, or with the interpreter."""

    limitations = ("no-pidfd",)

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, host_peak: int) -> None:
        super().__init__(loop, pid, host_peak)
        self._ended = False

    def _begin(self) -> None:
        try:
            threading.Thread(target=self._work, name=f"supervisor-watch-{self._pid}", daemon=True).start()
        except RuntimeError as error:  # "can't start new thread" is pthread_create's EAGAIN
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def _work(self) -> None:
        status = self._wait()
        with suppress(RuntimeError):  # the loop was closed before the child ended
            self._loop.call_soon_threadsafe(self._end, status)

    def _wait(self) -> ExitStatus:
        try:
            if hasattr(os, "waitid"):
                result = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
                return from_waitid(result) if result else Lost()
            return from_wait_status(os.waitpid(self._pid, 0)[1])
        except ChildProcessError:
            return Lost()

    def _end(self, status: ExitStatus) -> None:
        self._ended = True
        self._announce(status)

    def send_signal(self, number: int) -> None:
        """See `Watch.send_signal`."""
        if not self.held():
            raise ProcessLookupError
        os.kill(self._pid, number)

    def held(self) -> bool:
        """See `Watch.held`. Without waitid(2): true until the exit is told, a moment after the thread reaped it."""
        if not hasattr(os, "waitid"):
            return not self._ended
        try:
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return False
        return True
