"""What one conversation may retain, shared by its captures (contract D5).

A capture takes its share in steps, so that the shared count is touched rarely, and gives back what it did not use.
Exhaustion refuses new retention and deletes nothing. Used from the event loop only.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from .directory import close_quietly

if TYPE_CHECKING:
    from .files import Files

FIRST_STEP: Final = 64 * 1024
LAST_STEP: Final = 4 * 1024 * 1024
"""Steps double from the first to the last: a short output reserves little, a long one reserves seldom."""
RETAINED_SUFFIXES: Final = (".live", ".log")


class Allowance:
    """The bytes that captures of a conversation have reserved or hold, `used`, out of `limit` (inf for none)."""

    def __init__(self, limit: float, used: int) -> None:
        self.limit: Final = limit
        self.used = used

    def reserve(self, wanted: int) -> int:
        """Return how many of `wanted` bytes are granted: all, what is left, or 0."""
        granted = int(max(0, min(wanted, self.limit - self.used)))
        self.used += granted
        return granted

    def give_back(self, count: int) -> None:
        """Take back bytes that were reserved and not used."""
        assert 0 <= count <= self.used, "more given back than was reserved"
        self.used -= count

    def reservation(self) -> Reservation:
        """Return an empty reservation for one capture."""
        return Reservation(self)


class Reservation:
    """One capture's part of an allowance; both of its streams take from it."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance: Final = allowance
        self._step = FIRST_STEP
        self._unused = 0

    def take(self, wanted: int) -> int:
        """Return how many of `wanted` bytes may be retained; fewer when the conversation's allowance is at its end."""
        assert wanted >= 0, "bytes are not given back by taking"
        if self._unused < wanted:
            missing = wanted - self._unused
            self._unused += self._allowance.reserve(max(self._step, missing))
            self._step = min(self._step * 2, LAST_STEP)
        granted = min(wanted, self._unused)
        self._unused -= granted
        return granted

    def release(self) -> None:
        """Give back what was reserved and not taken. What was taken stays used: it is on disk."""
        self._allowance.give_back(self._unused)
        self._unused = 0


def retained_by_capture(files: Files, captures: int) -> dict[str, int]:
    """Return the bytes of live and final streams by each name under the `captures` directory. Blocks.

    What vanishes meanwhile or cannot be looked at counts as nothing: the number guards a limit, it is not evidence.

    Raises:
        OSError: `captures` itself cannot be listed.
    """
    sizes = {name: _capture_bytes(files, name, parent=captures) for name in files.names(captures)}
    return {name: size for name, size in sizes.items() if size}


def retained_bytes(files: Files, captures: int) -> int:
    """Return the sum of `retained_by_capture`."""
    return sum(retained_by_capture(files, captures).values())


def _capture_bytes(files: Files, name: str, *, parent: int) -> int:
    try:
        directory = files.open_directory(name, parent=parent)
    except OSError:
        return 0
    total = 0
    try:
        for entry in files.names(directory):
            if entry.endswith(RETAINED_SUFFIXES):
                status = files.status_at(entry, parent=directory)
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    except OSError:
        return total
    finally:
        close_quietly(files, directory)
    return total
