"""The ends of the pipes that a scripted child would hold: real ones, used without ever blocking the loop.

An end belongs to one loop. Several tasks may use it at once: they take turns. Closing it wakes whoever waits.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..process.start import close_all, open_ends
from ..process.writer import write_without_sigpipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..process import Launch

READ_BYTES: Final = 64 * 1024
"""The most that one read(2) takes: a pipe's default capacity (pipe(7))."""


class End:
    """One end; owns `descriptor`, which it makes non-blocking."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._loop = loop
        self._descriptor = descriptor
        self._turn = asyncio.Lock()
        self._waiter: asyncio.Future[None] | None = None
        self._unwatch: Callable[[int], object] | None = None
        self._why_closed: Exception | None = None

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._descriptor < 0

    def close(self, why: Exception) -> None:
        """Close it; whoever uses it, now or later, gets an exception like `why`. The first call counts."""
        if self.closed:
            return
        self._why_closed = why
        self._stop_watching()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def check_open(self) -> None:
        """Raise an exception like `close()` was given, a new one each time, so that no traceback grows."""
        if self._why_closed is not None:
            raise anew(self._why_closed)

    async def _ready(
        self, watch: Callable[[int, Callable[[], None]], object], unwatch: Callable[[int], object]
    ) -> None:
        """Return when the system says that the end is ready, or when it was closed."""
        waiter = self._waiter = self._loop.create_future()
        self._unwatch = unwatch
        watch(self._descriptor, lambda: None if waiter.done() else waiter.set_result(None))
        try:
            await waiter
        finally:
            self._waiter = None
            self._stop_watching()

    def _stop_watching(self) -> None:
        unwatch, self._unwatch = self._unwatch, None
        if unwatch is not None:
            unwatch(self._descriptor)


def anew(why: Exception) -> Exception:
    """Return a new exception like `why`."""
    return type(why)(*why.args)


def open_pipes(launch: Launch) -> tuple[dict[int, int], dict[int, int]]:
    """Return our ends of a child's pipes, and its own, by its descriptors; a merged stderr is a second end of stdout's.

    A fake child has no terminal: where one is asked for it has merged pipes, without echo, line ends, keys or sizes.

    Raises: OSError if there are no descriptors left; none is kept then.
    """
    ours: dict[int, int] = {}
    theirs: dict[int, int] = {}
    with ExitStack() as undo:
        undo.callback(close_all, ours)
        undo.callback(close_all, theirs)
        open_ends(replace(launch, pty=None), ours, theirs)
        if launch.merge:
            theirs[2] = os.dup(theirs[1])
        undo.pop_all()
    return ours, theirs


class WriteEnd(End):
    """Where the child writes its output."""

    async def write(self, data: bytes) -> None:
        """Return when all of `data` is in the pipe; waits for room as long as nobody reads.

        Raises: BrokenPipeError if the reader has closed its end, else what `close()` was given.
        Cancellation: a part of `data` may be in the pipe.
        """
        async with self._turn:
            left = bytearray(data)
            while left:
                self.check_open()
                try:
                    written = write_without_sigpipe(self._descriptor, left)
                except BlockingIOError:
                    await self._ready(self._loop.add_writer, self._loop.remove_writer)
                else:
                    del left[:written]
            self.check_open()


class ReadEnd(End):
    """Where the child reads its stdin."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        super().__init__(loop, descriptor)
        self.received = bytearray()
        """All that was read so far."""

    async def read(self, count: int | None) -> bytes:
        """Return the next `count` bytes, fewer only at the end of file; None: all that comes before that.

        Raises: what `close()` was given.
        Cancellation: what was read until then is in `received`.
        """
        async with self._turn:
            begin = len(self.received)
            while count is None or len(self.received) - begin < count:
                self.check_open()
                wanted = READ_BYTES if count is None else min(READ_BYTES, count - len(self.received) + begin)
                try:
                    data = os.read(self._descriptor, wanted)
                except BlockingIOError:
                    await self._ready(self._loop.add_reader, self._loop.remove_reader)
                    continue
                if not data:
                    break
                self.received += data
            return bytes(self.received[begin:])
