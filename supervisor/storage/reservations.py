"""Who has reserved what: one small file per owner, beside its lock [D5].

`<owner>.reserved` is a row of slots of 256 bytes, one for each capture that may still grow: the most that its files may
hold, and its id. A slot never crosses a page and is written by one call, so a kill tears none; after the slots of an
owner who is dead nobody looks, because its files do not grow any more. So nothing here needs a sync, and a crash leaves
a file that the next one to reserve removes. All functions block and run on a writer's thread.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from .directory import close_quietly, create_private_file, unlink_quietly
from .evidence import open_found, pieces
from .faults import UnsafeDirectoryError
from .owners import SUFFIX as OWNER
from .owners import is_live

if TYPE_CHECKING:
    from .descriptor import Descriptor
    from .files import Files

SUFFIX: Final = ".reserved"
SLOT_BYTES: Final = 256
"""A divisor of every page size; an id of a capture has at most 128 bytes."""
FILE_BYTES: Final = 4096 * SLOT_BYTES
"""The most that is read of a file: as many live captures of one owner as no machine has descriptors for."""


class Reservations:
    """Those of one owner: a ceiling for each of its live captures. Safe from any thread."""

    def __init__(self, files: Files, state: Descriptor, owner: str) -> None:
        self.name: Final = owner.removesuffix(OWNER) + SUFFIX
        self._files: Final = files
        self._state: Final = state
        self._lock: Final = threading.Lock()
        self._ceilings: Final[dict[str, int]] = {}
        self._slots: Final[dict[str, int]] = {}
        self._free: Final[list[int]] = []
        self._made = False

    def admit(self, capture_id: str) -> None:
        """Let the capture have a ceiling, 0 at first; one that has one keeps it. Touches no file."""
        self._ceilings.setdefault(capture_id, 0)

    def ceiling(self, capture_id: str) -> int:
        """Return how many bytes the capture's files may hold; 0 for one that is unknown or let go."""
        return self._ceilings.get(capture_id, 0)

    def all(self) -> dict[str, int]:
        """Return the ceilings by capture, 0 where nothing was reserved yet."""
        return self._ceilings.copy()

    def raise_by(self, capture_id: str, count: int) -> None:
        """Give the capture `count` bytes more; one that was let go meanwhile gets none. Under the conversation's lock.

        Raises:
            OSError: it has none of them, though others may count them until it is let go.
        """
        with self._lock:
            if capture_id in self._ceilings:
                ceiling = self._ceilings[capture_id] + count
                self._write(capture_id, f"{ceiling} {capture_id}")
                self._ceilings[capture_id] = ceiling

    def let_go(self, capture_id: str) -> None:
        """The capture's files do not grow any more: their sizes count from now on.

        It needs no lock of the conversation's: whoever reads the slot before the files counts at least their sizes.

        Raises:
            OSError: others may count the ceiling until we end.
        """
        with self._lock:
            self._ceilings.pop(capture_id, None)
            if capture_id in self._slots:
                self._write(capture_id, "")
                self._free.append(self._slots.pop(capture_id))

    def discard(self) -> None:
        """Remove the file: no capture of this owner grows any more."""
        with self._lock:
            self._ceilings.clear()
            self._slots.clear()
            if not self._made:
                return
        try:
            with self._state.borrow() as state:
                unlink_quietly(self._files, self.name, parent=state)
        except OSError:  # without its owner's lock it says nothing
            return

    def _write(self, capture_id: str, text: str) -> None:
        slot = self._slots.get(capture_id)
        if slot is None:
            slot = self._slots[capture_id] = self._free.pop() if self._free else len(self._slots)
        # Opened anew each time: a step is rare, and a descriptor for each conversation is not.
        with self._state.borrow() as state:
            open_file = open_found if self._made else create_private_file
            number = open_file(self._files, self.name, parent=state, flags=os.O_WRONLY)
            self._made = True
            try:
                self._files.write_at(number, text.ljust(SLOT_BYTES - 1).encode() + b"\n", offset=slot * SLOT_BYTES)
            finally:
                close_quietly(self._files, number)


def reserved_by_others(files: Files, state: int, own: str | None = None, *, sweep: bool = False) -> dict[str, int]:
    """Return the ceilings of live owners' captures, those of the file `own` left out.

    An owner of whom nobody can know whether it lives counts as alive. `sweep`: the files of dead ones are removed,
    which needs the conversation's lock. What is read of a file that vanishes, or is none of ours, is nothing.

    Raises:
        OSError: the directory cannot be listed, or a file cannot be read.
    """
    found: dict[str, int] = {}
    for name in files.names(state):
        if not name.endswith(SUFFIX) or name == own:
            continue
        if is_live(state, name.removesuffix(SUFFIX) + OWNER, files) is not False:
            found |= _slots_of(files, name, state=state)
        elif sweep:
            unlink_quietly(files, name, parent=state)
    return found


def _slots_of(files: Files, name: str, *, state: int) -> dict[str, int]:
    try:
        number = open_found(files, name, parent=state)
    except (FileNotFoundError, UnsafeDirectoryError):
        # Its owner has ended meanwhile: the name is gone, or, once it was opened, the file has no name any more.
        return {}
    try:
        data = b"".join(pieces(files, number, FILE_BYTES))
    finally:
        close_quietly(files, number)
    rows = (line.split() for line in data.decode("utf-8", "replace").splitlines())
    return {row[1]: int(row[0]) for row in rows if len(row) == 2 and row[0].isdecimal()}  # noqa: PLR2004 - see above
