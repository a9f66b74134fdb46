"""A disk that a test lets fail: the product's own storage over system calls that refuse, stop short or hang.

Faults are put at the seam of `storage.Files`, so all that lies above it (threads, deadlines, boundaries, barrier) is
the real thing. What counts as text is the live file of a stream; launch record and receipt are written by the same
calls and are left alone, unless a fault says otherwise, because their room is reserved before a command starts.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Final, Literal, get_args

from ..storage import Files, LocalStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

Step = Literal["text", "receipt", "directory"]
"""What is synced: a stream's file, the receipt, or a directory."""

LIVE: Final = ".live"
RECEIPT: Final = ".receipt"
"""How the name of the receipt's file begins before it is published."""

_held: Final[set[int]] = set()


def held_threads() -> frozenset[int]:
    """Return the idents of the threads that hang in a write because a test wants it."""
    return frozenset(tuple(_held))


class FailingFiles(Files):
    """The real system calls, but for the faults that are set. They may be changed at any time, from any thread."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.number_when_full = errno.ENOSPC
        self.at_most: int | None = None
        self.delay = 0.0
        self.failing_syncs: dict[Step, int] = {}
        self.written = 0
        self.open_gate: Final = threading.Event()
        self.open_gate.set()
        self.arrived: Final = threading.Event()
        self._kinds: Final[dict[int, Step]] = {}
        self._no_gate: Final = threading.Event()
        self._counting: Final = threading.Lock()

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create it, and remember what it is."""
        descriptor = super().create(name, parent=parent, flags=flags)
        if name.endswith(LIVE):
            self._kinds[descriptor] = "text"
        elif name.startswith(RECEIPT):
            self._kinds[descriptor] = "receipt"
        return descriptor

    def close(self, descriptor: int) -> None:
        """Close it, and forget it: the number may be used again."""
        self._kinds.pop(descriptor, None)
        super().close(descriptor)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write text as far as the faults allow; anything else as ever."""
        if self._kinds.get(descriptor) != "text":
            return super().write(descriptor, buffers)
        self._wait()
        data = b"".join(buffers)[: self.at_most]
        with self._counting:  # two streams share the room
            if self.room is not None:
                data = data[: max(0, self.room - self.written)]
                if not data:
                    raise OSError(self.number_when_full, os.strerror(self.number_when_full))
            count = super().write(descriptor, [data])
            self.written += count
        return count

    def sync_file(self, descriptor: int) -> None:
        """Sync it, or fail."""
        self._may_sync(self._kinds.get(descriptor))
        super().sync_file(descriptor)

    def sync_directory(self, descriptor: int) -> None:
        """Sync it, or fail."""
        self._may_sync("directory")
        super().sync_directory(descriptor)

    def _may_sync(self, step: Step | None) -> None:
        number = None if step is None else self.failing_syncs.get(step)
        if number is not None:
            raise OSError(number, os.strerror(number))

    def _wait(self) -> None:
        """Take as long as a slow disk, and hang while the gate is shut."""
        if self.delay:
            self._no_gate.wait(self.delay)
        if self.open_gate.is_set():
            return
        ident = threading.get_ident()
        _held.add(ident)
        self.arrived.set()
        try:
            self.open_gate.wait()
        finally:
            _held.discard(ident)


class FailingStorage(LocalStorage):
    """Storage for `Supervisor(storage=)` on a disk that works until it is told otherwise.

    Faults may be set before the supervisor is entered or while jobs run; each holds from the next call on.
    """

    def __init__(self) -> None:
        self._failing: Final = FailingFiles()
        super().__init__(self._failing)

    @property
    def written(self) -> int:
        """Bytes of text that the disk has taken, of all streams together."""
        return self._failing.written

    def fill_after(self, room: int, *, number: int = errno.ENOSPC) -> None:
        """Take so many bytes of text in all, cutting the write that comes across the border, then refuse with `number`.

        Raises: ValueError for less than nothing.
        """
        if room < 0:
            raise ValueError("no disk has less than no room")
        self._failing.room, self._failing.number_when_full = room, number

    def write_short(self, at_most: int) -> None:
        """Take at most so many bytes of text in one call, as write(2) may. Raises: ValueError for less than 1."""
        if at_most < 1:
            raise ValueError("a short write takes at least a byte")
        self._failing.at_most = at_most

    def write_slowly(self, seconds: float) -> None:
        """Take so many real seconds for each call that writes text; one call has 256 KiB at most.

        Raises: ValueError for less than none.
        """
        if not seconds >= 0:
            raise ValueError("a write takes no time at least")
        self._failing.delay = seconds

    def fail_sync(self, step: Step = "text", *, number: int = errno.EIO) -> None:
        """Let each sync of a stream's file, of the receipt, or of a directory fail. Raises: ValueError for another."""
        if step not in get_args(Step):
            raise ValueError(f"what is synced is {', '.join(get_args(Step))}, not {step!r}")
        self._failing.failing_syncs[step] = number

    def hold_writes(self) -> None:
        """Let no write of text return until `release`: each one hangs on its thread."""
        self._failing.arrived.clear()
        self._failing.open_gate.clear()

    @property
    def holding(self) -> bool:
        """Whether a write hangs, or did since `hold_writes` was called."""
        return self._failing.arrived.is_set()

    def release(self) -> None:
        """Let what hangs go on. Call it before the test ends: a thread that hangs stays. May be called again."""
        self._failing.open_gate.set()
