"""The one reader of one pipe (contract B1).

Each readable event is one read into a scratch buffer that all readers of a thread share, copied out as immutable
bytes and handed on in the same call: no queue in between, so nothing arrives after `pause_reading()`. Two kinds of
child need more. One that fills the pipe each time gets a larger pipe. One that writes many tiny lines gets a timer:
the reader leaves the pipe alone for a millisecond and then takes all that gathered, which costs a seventh of the
CPU. Figures from this project's measurements on Linux 6.18.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import sys
import termios
import threading
import time
from typing import Final, Protocol

from .containment import deliver, tell_later

SCRATCH_BYTES: Final = 256 * 1024
"""The most that one read takes. Precedent: libuv's and asyncio's 64 to 256 KiB."""
PIPE_BYTES: Final = 64 * 1024
"""pipe(7): the default capacity."""
LARGE_PIPE_BYTES: Final = 1024 * 1024
"""/proc/sys/fs/pipe-max-size by default: the most an unprivileged user may ask for."""
FULL_READS: Final = 3
SMALL_READS: Final = 8
TICK: Final = 0.001
"""Seconds. A child is chatty when SMALL_READS small reads come within one tick; it is then read once a tick."""
PENALTY_MIN: Final = 0.02
PENALTY_MAX: Final = 1.0
"""Seconds without ticks after one that found the pipe nearly full: a fast writer must not wait for a timer."""

_local = threading.local()


def scratch() -> memoryview:
    """Return this thread's scratch buffer: loops of different threads read at the same time."""
    view: memoryview | None = getattr(_local, "scratch", None)
    if view is None:
        view = _local.scratch = memoryview(bytearray(SCRATCH_BYTES))
    return view


class PipeOwner(Protocol):
    """Whoever is told what happens on a pipe: the transport of the child."""

    def pipe_data_received(self, fd: int, data: bytes) -> object: ...  # noqa: D102

    def pipe_lost(self, fd: int, error: Exception | None) -> None: ...  # noqa: D102


class Reader(asyncio.ReadTransport):
    """Reads `descriptor`, the child's `fd`, from the first `resume_reading()` on; owns the descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: PipeOwner, fd: int, descriptor: int) -> None:
        super().__init__({"pipe": descriptor})
        self._loop = loop
        self.at_end = False
        """Whether the pipe itself has ended, as opposed to its having been closed here or having failed."""
        self._owner = owner
        self._fd = fd
        self._descriptor = descriptor
        self._scratch = scratch()
        self._capacity = PIPE_BYTES
        self._may_grow = True
        self._paused = True
        self._armed = False
        self._timer: asyncio.TimerHandle | None = None
        self._full_reads = 0
        self._small_reads = 0
        self._small_bytes = 0
        self._small_since = 0.0
        self._no_ticks_before = 0.0
        self._penalty = PENALTY_MIN

    def is_reading(self) -> bool:
        """Whether data may still arrive without another call."""
        return not (self._paused or self.is_closing())

    def is_closing(self) -> bool:
        """Whether the end of the pipe was seen or `close()` called."""
        return self._descriptor < 0

    def pause_reading(self) -> None:
        """Nothing is delivered after this call, the end of the pipe included. May be called again."""
        self._paused = True
        self._disarm()

    def resume_reading(self) -> None:
        """Let data arrive, from the loop, never from within this call. May be called again."""
        self._paused = False
        if not self._armed and self._timer is None and not self.is_closing():
            self._arm()

    def unread(self) -> int:
        """Return how many bytes the pipe holds now; 0 once closed."""
        if self.is_closing():
            return 0
        return int.from_bytes(fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)

    def inode(self) -> int | None:
        """Return the number by which the system knows the pipe; None once closed."""
        return None if self.is_closing() else os.fstat(self._descriptor).st_ino

    def close(self) -> None:
        """Close the pipe, dropping what is unread; the owner is told from the loop. May be called again."""
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self.is_closing():
            return
        self._disarm()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        tell_later(self._loop, self._owner.pipe_lost, self._fd, error)

    def _arm(self) -> None:
        self._armed = True
        self._loop.add_reader(self._descriptor, self._ready)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._armed:
            self._armed = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._descriptor)

    def _read(self) -> int:
        """Deliver one read and return its size; 0 when there is nothing now, or nothing ever again."""
        try:
            size = os.readv(self._descriptor, [self._scratch])
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            # A terminal whose last other end was closed gives EIO where a pipe gives an end of file.
            self.at_end = error.errno == errno.EIO
            self._lose(None if self.at_end else error)
            return 0
        if size == 0:
            self.at_end = True
            self._lose(None)
            return 0
        deliver(self._loop, self, self._owner.pipe_data_received, self._fd, bytes(self._scratch[:size]))
        return size

    def _ready(self) -> None:
        size = self._read()
        if not size or not self.is_reading():
            return
        if size >= self._capacity // 8:
            self._small_reads = 0
            if self._may_grow and size >= self._capacity * 3 // 4:
                self._full_reads += 1
                if self._full_reads >= FULL_READS:
                    self._grow()
        else:
            self._count_small(size)

    def _count_small(self, size: int) -> None:
        """Start the timer when SMALL_READS small reads came within a tick."""
        if self._small_reads == 0:
            self._small_since = time.monotonic()
            self._small_bytes = 0
        self._small_reads += 1
        self._small_bytes += size
        if self._small_reads < SMALL_READS:
            return
        self._small_reads = 0
        now = time.monotonic()
        elapsed = max(now - self._small_since, 1e-6)
        if elapsed > TICK:
            return
        if self._small_bytes / elapsed * TICK > self._capacity * 3 // 4:
            self._grow()  # many small reads, but so fast that a tick would fill the pipe and stop the child
        elif now >= self._no_ticks_before:
            self._disarm()
            self._timer = self._loop.call_later(TICK, self._tick)

    def _tick(self) -> None:
        """Take what gathered, at most one pipe full, and decide whether the next tick is worth waiting for."""
        self._timer = None
        total = 0
        while size := self._read():
            total += size
            if size < len(self._scratch) or total >= self._capacity or not self.is_reading():
                break
        if not self.is_reading():
            return
        if total > self._capacity * 3 // 4:
            self._no_ticks_before = time.monotonic() + self._penalty
            self._penalty = min(self._penalty * 2, PENALTY_MAX)
            self._arm()
        elif total == 0:
            self._small_reads = 0
            self._arm()
        else:
            self._penalty = max(self._penalty * 0.9, PENALTY_MIN)
            self._timer = self._loop.call_later(TICK, self._tick)

    def _grow(self) -> None:
        """Ask once for a larger pipe. Unprivileged users have room for 64 of them, then EPERM (pipe(7))."""
        if not self._may_grow:
            return
        self._may_grow = False
        if not hasattr(fcntl, "F_SETPIPE_SZ"):
            return
        try:
            self._capacity = fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, LARGE_PIPE_BYTES)
        except OSError:
            return
