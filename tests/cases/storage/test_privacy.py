"""Nobody else sees what is kept, at no moment and under no umask, and nothing planted is followed (D1, D2)."""

# ruff: noqa: ANN401 - fixtures hand out classes of conftest.py
from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Receipt, StorageError, Supervisor, read_capture
from supervisor.storage import Files, LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

LOUD: Final = "seq 1 20000; exit 5"


def modes(directory: Path) -> set[tuple[str, int]]:
    """Return the kind and mode of everything below a directory."""
    found = [path.lstat().st_mode for path in directory.rglob("*")]
    return {("directory" if stat.S_ISDIR(mode) else "file", stat.S_IMODE(mode)) for mode in found}


def refused(receipt: Receipt) -> None:
    """Check that nothing was kept because of the directory, and that the command ran."""
    assert receipt.process is not None
    assert receipt.process.code == 5
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "unsafe-directory")
    assert receipt.stdout.endswith("\n20000\n")


class WatchfulFiles(Files):
    """Looks at each new file and directory before anything else is done to it."""

    def __init__(self) -> None:
        self.born: set[tuple[str, int]] = set()

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create and look."""
        descriptor = super().create(name, parent=parent, flags=flags)
        self.born.add(("file", stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return descriptor

    def make_directory(self, name: str, *, parent: int) -> None:
        """Make and look."""
        super().make_directory(name, parent=parent)
        self.born.add(("directory", stat.S_IMODE(os.stat(name, dir_fd=parent).st_mode)))


async def test_h6_047_a_symlink_in_the_place_of_our_directory_is_not_followed(
    conversation: Conversation, tmp_path: Path
) -> None:
    """H6-047 (tox-dev/filelock#461, CVE-2025-68146): a file was opened, and truncated, through a planted symlink."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "captures").mkdir(parents=True, mode=0o700)
    elsewhere.chmod(0o700)
    (conversation.path / "tool-outputs").symlink_to(elsewhere)
    async with Supervisor(conversation.path) as supervisor:
        refused(await supervisor.run(LOUD, shell=True))
    assert [path.name for path in elsewhere.rglob("*")] == ["captures"]


async def test_h6_050_a_symlink_that_is_swapped_in_between_is_not_followed(
    conversation: Conversation, journal: Any, tmp_path: Path
) -> None:
    """H6-050 (uqfoundation/dill#759): it was looked at, swapped, and then opened; the open itself must refuse."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    captures = conversation.path / "tool-outputs" / "captures"

    def swap() -> None:
        captures.rename(captures.with_name("away"))
        captures.symlink_to(elsewhere)

    journal.before["open_directory", "captures"] = swap
    async with Supervisor(conversation.path, storage=LocalStorage(journal)) as supervisor:
        refused(await supervisor.run(LOUD, shell=True))
    assert captures.is_symlink()
    assert list(elsewhere.iterdir()) == []


async def test_h6_055_what_is_there_already_is_neither_trusted_nor_changed(
    conversation: Conversation, tmp_path: Path
) -> None:
    """H6-055 (systemd/systemd#7736): a recursive chown gave away what a hard link in the directory pointed to."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(LOUD, shell=True)
    captures = conversation.path / "tool-outputs" / "captures"
    captures.chmod(0o755)
    async with Supervisor(conversation.path) as supervisor:
        refused(await supervisor.run(LOUD, shell=True))
    assert stat.S_IMODE(captures.stat().st_mode) == 0o755
    captures.chmod(0o700)
    linked = conversation.captures_of(receipt) / "stdout.log"
    os.link(linked, tmp_path / "second name")
    with pytest.raises(StorageError) as caught:
        await read_capture(conversation.path, receipt.capture_id)
    assert caught.value.reason == "unsafe-directory"


async def test_h6_057_a_file_is_private_before_anybody_could_open_it(
    conversation: Conversation, umask: Callable[[int], object]
) -> None:
    """H6-057 (facebook/zstd#2491): created by the umask and made 0600 afterwards, it was readable in between."""
    umask(0)
    files = WatchfulFiles()
    async with Supervisor(conversation.path, storage=LocalStorage(files)) as supervisor:
        receipt = await (await supervisor.start(LOUD, shell=True)).wait()
    assert receipt.capture.state == "complete"
    assert files.born == {("directory", 0o700), ("file", 0o600)}


async def test_h6_059_every_directory_that_was_missing_is_private(
    conversation: Conversation, umask: Callable[[int], object]
) -> None:
    """H6-059 (certbot/certbot#7993): `makedirs` gave its mode to the last one only; umask 0 opened the others."""
    umask(0)
    place = conversation.path / "a" / "b" / "c"
    await LocalStorage().create_directory(place)
    async with Supervisor(place) as supervisor:
        receipt = await (await supervisor.start(LOUD, shell=True)).wait()
    assert receipt.capture.state == "complete"
    assert modes(conversation.path) == {("directory", 0o700), ("file", 0o600)}


async def test_h6_061_a_spilled_output_lies_in_the_conversation_and_nowhere_else(
    conversation: Conversation, tmp_path: Path, umask: Callable[[int], object]
) -> None:
    """H6-061 (minpeter/plugsuits#47): a long output was written to a file in /tmp that all could read, for ever."""
    umask(0o022)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", str(temporary))
        async with Supervisor(conversation.path) as supervisor:
            receipt = await supervisor.run("echo BEGIN-$((6*7)); seq 1 100000", shell=True)
    assert conversation.holding(b"BEGIN-42\n") == [conversation.captures_of(receipt) / "stdout.log"]
    assert list(temporary.iterdir()) == []
    assert modes(conversation.path) == {("directory", 0o700), ("file", 0o600)}


async def test_h6_065_a_umask_that_takes_our_own_bits_makes_nothing_unusable(
    conversation: Conversation, umask: Callable[[int], object]
) -> None:
    """H6-065 (munki/munki#871): under umask 0177 the 0700 directory was 0600, and every later step failed."""
    umask(0o777)
    async with Supervisor(conversation.path) as supervisor:
        receipt = await (await supervisor.start(LOUD, shell=True)).wait()
    assert receipt.capture.state == "complete"
    assert modes(conversation.path) == {("directory", 0o700), ("file", 0o600)}
