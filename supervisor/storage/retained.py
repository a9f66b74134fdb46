"""What captures hold, counted from their files: the directory is the truth, and nobody keeps a total [D5, D7]."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from .directory import close_quietly
from .publish import FINAL, LIVE, RAW, RECEIPT

if TYPE_CHECKING:
    from collections.abc import Container

    from .descriptor import Descriptor
    from .files import Files

RETAINED_SUFFIXES: Final = (LIVE, FINAL, RAW)


class RetainedSizes:
    """Counts the retained bytes of each capture. Blocks; used under the conversation's lock, or by one thread.

    The files of a published capture do not change any more [D3], so its size is looked at once, as long as its name is
    there. Whatever else lies there (live, left behind, half removed) is looked at each time.
    """

    def __init__(self, files: Files, captures: Descriptor) -> None:
        self._files: Final = files
        self._captures: Final = captures
        self._settled: dict[str, int] = {}

    def by_name(self, *, but: Container[str] = ()) -> dict[str, int]:
        """Return the bytes by each name under `captures/`, those in `but` left out.

        What vanishes meanwhile or cannot be looked at counts as nothing: the number guards a limit, it is no evidence.

        Raises:
            OSError: `captures/` itself cannot be listed.
        """
        with self._captures.borrow() as captures:
            names = [name for name in self._files.names(captures) if name not in but]
            before, self._settled = self._settled, {}
            return {name: self._size(name, before.get(name), parent=captures) for name in names}

    def forget(self) -> None:
        """Look at everything anew the next time: somebody may have changed what does not change."""
        self._settled.clear()

    def _size(self, name: str, known: int | None, *, parent: int) -> int:
        if known is None:
            size, settled = _capture_bytes(self._files, name, parent=parent)
            # A hidden name is that of a capture which is just being removed.
            if not settled or name.startswith("."):
                return size
            known = size
        self._settled[name] = known
        return known


def _capture_bytes(files: Files, name: str, *, parent: int) -> tuple[int, bool]:
    """Return a capture's retained bytes, and whether it is published with all its final names."""
    try:
        directory = files.open_directory(name, parent=parent)
    except OSError:
        return 0, False
    total = 0
    try:
        entries = files.names(directory)
        for entry in entries:
            if entry.endswith(RETAINED_SUFFIXES):
                status = files.status_at(entry, parent=directory)
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    except OSError:
        return total, False
    finally:
        close_quietly(files, directory)
    return total, RECEIPT in entries and not any(entry.endswith(LIVE) for entry in entries)
