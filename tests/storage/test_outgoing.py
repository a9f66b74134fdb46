"""What is opened of a capture to be copied: its receipt, and the texts that are what the receipt says [E10, D2]."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from supervisor import Supervisor
from supervisor.errors import StorageError, UnknownCapture
from supervisor.storage import Files
from supervisor.storage.evidence import find_rooms
from supervisor.storage.faults import UnsafeDirectoryError
from supervisor.storage.outgoing import open_outgoing

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor.sansio.receipt import Receipt
    from supervisor.storage import Outgoing


async def published(directory: Path) -> tuple[Receipt, Path]:
    """Publish a capture with both streams; return its receipt and its directory."""
    async with Supervisor(directory, durability="none") as supervisor:
        receipt = await supervisor.run("echo one; echo oops >&2; exit 1", shell=True)
    return receipt, directory / "tool-outputs" / "captures" / receipt.capture_id


def opened(directory: Path, capture_id: str, files: Files | None = None) -> Outgoing:
    """Open a capture; its conversation is closed again."""
    files = files or Files()
    rooms = find_rooms(files, directory)
    assert rooms is not None
    try:
        return open_outgoing(files, rooms, capture_id)
    finally:
        rooms.discard()


def texts(directory: Path, capture_id: str) -> list[str]:
    """Return which texts would be copied."""
    outgoing = opened(directory, capture_id)
    outgoing.close()
    return list(outgoing.texts)


@pytest.mark.asyncio
async def test_only_files_that_are_evidence_are_opened(tmp_path: Path) -> None:
    """Not one that is shorter than its receipt says, is open to others, has a second name, or is a link."""
    receipt, place = await published(tmp_path)
    assert texts(tmp_path, receipt.capture_id) == ["stdout", "stderr"]
    stdout = place / "stdout.log"
    stdout.chmod(0o644)
    assert texts(tmp_path, receipt.capture_id) == ["stderr"]
    stdout.chmod(0o600)
    os.link(stdout, tmp_path / "second")
    assert texts(tmp_path, receipt.capture_id) == ["stderr"]
    (tmp_path / "second").unlink()
    os.truncate(stdout, 3)
    assert texts(tmp_path, receipt.capture_id) == ["stderr"]
    stdout.unlink()
    stdout.symlink_to(place / "stderr.log")
    assert texts(tmp_path, receipt.capture_id) == ["stderr"]


@pytest.mark.asyncio
async def test_without_a_usable_receipt_there_is_nothing_to_copy(tmp_path: Path) -> None:
    """None, one that is torn, a directory that is open to others, no such capture."""
    receipt, place = await published(tmp_path)
    data = (place / "receipt.json").read_bytes()
    (place / "receipt.json").write_bytes(data[:100])
    with pytest.raises(StorageError, match="damaged"):
        opened(tmp_path, receipt.capture_id)
    (place / "receipt.json").unlink()
    with pytest.raises(StorageError, match="no receipt"):
        opened(tmp_path, receipt.capture_id)
    place.chmod(0o755)
    with pytest.raises(UnsafeDirectoryError):
        opened(tmp_path, receipt.capture_id)
    with pytest.raises(UnknownCapture):
        opened(tmp_path, receipt.capture_id[:-32] + "0" * 32)


@pytest.mark.asyncio
async def test_a_capture_that_is_removed_before_its_lock_is_unknown(tmp_path: Path) -> None:
    """Whoever waited for the lock looks again; a file that cannot be looked at closes the other one."""
    receipt, place = await published(tmp_path)

    class Moving(Files):
        """The capture is renamed while its lock is awaited."""

        def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
            """Let it be renamed first."""
            place.rename(place.with_name(".removed-x"))
            super().lock(descriptor, exclusive=exclusive, wait=wait)

    class Failing(Files):
        """The second text cannot be opened."""

        def open_existing(self, name: str, *, parent: int, flags: int = os.O_RDONLY) -> int:
            """Open it, or fail."""
            if name == "stderr.log":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().open_existing(name, parent=parent, flags=flags)

    with pytest.raises(OSError, match="Input/output"):
        opened(tmp_path, receipt.capture_id, Failing())
    with pytest.raises(UnknownCapture):
        opened(tmp_path, receipt.capture_id, Moving())
