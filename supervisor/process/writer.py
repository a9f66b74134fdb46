"""The write end of the child's stdin pipe."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, Final, Protocol

from .containment import deliver, tell_later

if TYPE_CHECKING:
    from collections.abc import Callable

HIGH_WATER: Final = 64 * 1024
LOW_WATER: Final = 16 * 1024
"""Bytes of our own buffer at which the protocol is told to stop and to go on: asyncio's default and its quarter."""


class WriteOwner(Protocol):
    """Whoever is told what happens on the pipe: the transport of the child."""

    def pause_writing(self) -> object: ...  # noqa: D102

    def resume_writing(self) -> object: ...  # noqa: D102

    def pipe_lost(self, fd: int, error: Exception | None) -> None: ...  # noqa: D102


def write_without_sigpipe(descriptor: int, data: bytearray) -> int:
    """Write what the pipe takes, and fail with BrokenPipeError, never a signal.

    Python ignores SIGPIPE, but a command-line host may have made it deadly again (`signal(SIGPIPE, SIG_DFL)` is the
    usual idiom). The signal of a failed write goes to the writing thread, so blocking it there and taking it off
    the queue is enough, and changes nothing for anybody else.
    """
    if signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN:
        return os.write(descriptor, data)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    pending = signal.SIGPIPE in signal.sigpending()
    try:
        return os.write(descriptor, data)
    except BrokenPipeError:
        if not pending:
            signal.sigwait({signal.SIGPIPE})
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Writer(asyncio.WriteTransport):
    """Writes to `descriptor`, the child's stdin, without ever blocking; owns the descriptor.

    A child that closed its stdin is no error of the job: the pipe is closed and the owner told, with the
    BrokenPipeError. It is noticed at the next write.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: WriteOwner, descriptor: int) -> None:
        super().__init__({"pipe": descriptor})
        self._loop = loop
        self._owner = owner
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._armed = False
        self._ending = False
        self._owner_paused = False
        self._high = HIGH_WATER
        self._low = LOW_WATER

    def is_closing(self) -> bool:
        """Whether no more data is accepted."""
        return self._ending or self._descriptor < 0

    def get_write_buffer_size(self) -> int:
        """Return the bytes accepted and not yet in the pipe."""
        return len(self._buffer)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the low and the high mark."""
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the marks. Raises ValueError unless 0 <= low <= high."""
        if high is None:
            high = HIGH_WATER if low is None else 4 * low
        if low is None:
            low = high // 4
        if not 0 <= low <= high:
            raise ValueError("the marks must satisfy 0 <= low <= high")
        self._low, self._high = low, high
        self._tell_pressure()

    def can_write_eof(self) -> bool:
        """Return True: closing the pipe is the end of file."""
        return True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Accept `data` whole. Dropped when the pipe is closing: the child may close its end at any moment."""
        if self.is_closing() or not data:
            return
        self._buffer += data
        if not self._armed:
            self._flush()
        self._tell_pressure()

    def write_eof(self) -> None:
        """Close the pipe once everything accepted is in it. May be called again."""
        self._ending = True
        if not self._buffer:
            self._lose(None)

    def close(self) -> None:
        """Close the pipe once everything accepted is in it, like `write_eof()`."""
        self.write_eof()

    def abort(self) -> None:
        """Close the pipe now; what is not in it is dropped. May be called again."""
        self._lose(None)

    def _flush(self) -> None:
        while self._buffer:
            try:
                written = write_without_sigpipe(self._descriptor, self._buffer)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:  # EPIPE: the child closed its end, or is gone
                self._lose(error)
                return
            del self._buffer[:written]
        if self._buffer:
            if not self._armed:
                self._armed = True
                self._loop.add_writer(self._descriptor, self._writable)
        elif self._ending:
            self._lose(None)
        else:
            self._disarm()

    def _writable(self) -> None:
        self._flush()
        self._tell_pressure()

    def _tell_pressure(self) -> None:
        size = len(self._buffer)
        if not self._owner_paused and size > self._high:
            self._tell(self._owner.pause_writing, paused=True)
        elif self._owner_paused and size <= self._low:
            self._tell(self._owner.resume_writing, paused=False)

    def _tell(self, call: Callable[[], object], *, paused: bool) -> None:
        self._owner_paused = paused
        deliver(self._loop, self, call)

    def _disarm(self) -> None:
        if self._armed:
            self._armed = False
            if not self._loop.is_closed():
                self._loop.remove_writer(self._descriptor)

    def _lose(self, error: Exception | None) -> None:
        if self._descriptor < 0:
            return
        self._disarm()
        self._buffer.clear()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        tell_later(self._loop, self._owner.pipe_lost, 0, error)
        # Whoever waits for room must not wait for ever; it learns of the end from pipe_connection_lost.
        if self._owner_paused:
            self._tell(self._owner.resume_writing, paused=False)
