"""The recipe with one step left out, done twice or done at the wrong time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from disk import CrashingFiles
from recording import RecordingFiles

if TYPE_CHECKING:
    from collections.abc import Callable

LIVE: Final = ".live"


def path_of(descriptor: int) -> Path:
    """Return what a descriptor is of."""
    return Path(f"/proc/self/fd/{descriptor}").readlink()


class DataNotSynced(RecordingFiles):
    """The streams are named without having been synced."""

    def sync_file(self, descriptor: int) -> None:
        """Leave it out."""
        if path_of(descriptor).suffix != LIVE:
            super().sync_file(descriptor)


class NamesNotSynced(RecordingFiles):
    """The receipt is written while the streams' names may not last."""

    def sync_directory(self, descriptor: int) -> None:
        """Leave it out until there is a receipt."""
        if (path_of(descriptor) / "receipt.json").exists():
            super().sync_directory(descriptor)


class ReceiptNotSynced(RecordingFiles):
    """The receipt gets its name before it is on the device."""

    def sync_file(self, descriptor: int) -> None:
        """Leave it out."""
        if "receipt" not in path_of(descriptor).name:
            super().sync_file(descriptor)


class PublishedNotSynced(RecordingFiles):
    """The end is told before the receipt's name is on the device."""

    def sync_directory(self, descriptor: int) -> None:
        """Leave it out once there is a receipt."""
        if not (path_of(descriptor) / "receipt.json").exists():
            super().sync_directory(descriptor)


class AboveNotSynced(RecordingFiles):
    """Only the capture's own directory is synced."""

    def sync_directory(self, descriptor: int) -> None:
        """Leave it out above."""
        if path_of(descriptor).parent.name == "captures":
            super().sync_directory(descriptor)


class ReceiptFirst(RecordingFiles):
    """The receipt is published before the streams have their names."""

    def __init__(self, directory: Path, failing: int = 0, *, linking: bool = False) -> None:
        super().__init__(directory, failing, linking=linking)
        self._waiting: list[tuple[str, str]] = []

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Let streams wait for the receipt."""
        if source.endswith(LIVE):
            self._waiting.append((source, target))
            return
        super().rename_exclusive(source, target, parent=parent)
        while self._waiting and target == "receipt.json":
            super().rename_exclusive(*self._waiting.pop(), parent=parent)


class MarkerNotSynced(RecordingFiles):
    """A completion is handed over before its claim is on the device."""

    def sync_file(self, descriptor: int) -> None:
        """Leave it out."""
        if path_of(descriptor).name != "delivered":
            super().sync_file(descriptor)


class Replacing(CrashingFiles):
    """A rename takes the place of whatever is there."""

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Replace."""
        os.rename(source, target, src_dir_fd=parent, dst_dir_fd=parent)


class OwnerUnlocked(CrashingFiles):
    """An owner has no lock."""

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Take only the locks that are waited for, which are none of an owner's, and those that ask."""
        if wait or not exclusive:
            super().lock(descriptor, exclusive=exclusive, wait=wait)


class LiveNameLeft(CrashingFiles):
    """The live name stays after a link."""

    def unlink(self, name: str, *, parent: int) -> None:
        """Leave live names."""
        if not name.endswith(LIVE):
            super().unlink(name, parent=parent)


class OpenToOthers(CrashingFiles):
    """Files are made as the umask lets them be."""

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create it for everybody to read, and narrow it afterwards."""
        return os.open(name, flags | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=parent)


class FaultsSwallowed(CrashingFiles):
    """A sync that failed is taken for one that did not."""

    def _strike(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        try:
            return super()._strike(name, real, args, kwargs)
        except OSError:
            if not name.startswith("sync"):
                raise
            return None


class ShortWritesBelieved(CrashingFiles):
    """A write that stopped short is taken for a whole one."""

    def _strike(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        result = super()._strike(name, real, args, kwargs)
        return sum(map(len, args[1])) if name == "write" else result


RECIPES: Final[dict[str, type[RecordingFiles]]] = {
    "": RecordingFiles,
    "data-not-synced": DataNotSynced,
    "names-not-synced": NamesNotSynced,
    "receipt-not-synced": ReceiptNotSynced,
    "published-not-synced": PublishedNotSynced,
    "above-not-synced": AboveNotSynced,
    "receipt-first": ReceiptFirst,
    "marker-not-synced": MarkerNotSynced,
}
"""Those that only a power loss can show."""

MUTANTS: Final[dict[str, type[CrashingFiles]]] = {
    "": CrashingFiles,
    "secrets-kept": CrashingFiles,
    "replacing": Replacing,
    "owner-unlocked": OwnerUnlocked,
    "live-name-left": LiveNameLeft,
    "open-to-others": OpenToOthers,
    "faults-swallowed": FaultsSwallowed,
    "short-writes-believed": ShortWritesBelieved,
}
"""Those that a kill or a fault shows."""
