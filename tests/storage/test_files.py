"""The seam's own behaviour beyond the plain system call."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from supervisor.storage.files import Files, rename_noreplace, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def listing(directory: Path) -> list[str]:
    """Return the names in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())


class NoExclusiveRename(Files):
    """A file system without `renameat2`."""

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Answer as such a file system does."""
        raise OSError(errno.EINVAL, f"{source} {target} {parent}")


class ShortWrites(Files):
    """A disk that takes three bytes at a time."""

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write three bytes."""
        return super().write(descriptor, [memoryview(buffers[0])[:3]])


class DeafDisk(Files):
    """A disk that takes nothing and reports no error."""

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write nothing."""
        return 0 * len(buffers) * descriptor


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an empty directory."""
    number = Files().open_directory(str(tmp_path))
    yield number
    os.close(number)


@pytest.mark.parametrize("files", [Files(), NoExclusiveRename()], ids=["renameat2", "link-and-unlink"])
def test_rename_never_replaces_what_is_there(files: Files, directory: int, tmp_path: Path) -> None:
    """[D3] An existing target stays as it is and the source keeps its name, with and without the system call."""
    (tmp_path / "source").write_text("new")
    (tmp_path / "target").write_text("old")
    with pytest.raises(FileExistsError):
        rename_noreplace(files, "source", "target", parent=directory)
    assert (tmp_path / "target").read_text() == "old"
    assert (tmp_path / "source").read_text() == "new"


@pytest.mark.parametrize("files", [Files(), NoExclusiveRename()], ids=["renameat2", "link-and-unlink"])
def test_rename_moves_the_file(files: Files, directory: int, tmp_path: Path) -> None:
    """The same inode has the new name, and only that one."""
    (tmp_path / "source").write_text("new")
    inode = (tmp_path / "source").stat().st_ino
    rename_noreplace(files, "source", "target", parent=directory)
    assert listing(tmp_path) == ["target"]
    assert (tmp_path / "target").stat().st_ino == inode
    assert (tmp_path / "target").stat().st_nlink == 1


@pytest.mark.parametrize("number", [0, errno.EINVAL, errno.EIO])
def test_a_link_is_on_the_device_before_the_other_name_is_removed(directory: int, tmp_path: Path, number: int) -> None:
    """[D4] A failed sync takes the new name back and leaves the old one; unlike a missing one."""
    seen: list[list[str]] = []

    class Watched(NoExclusiveRename):
        def sync_directory(self, descriptor: int) -> None:  # noqa: ARG002
            seen.append(listing(tmp_path))
            if number:
                raise OSError(number, os.strerror(number))

    (tmp_path / "source").write_text("new")
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            rename_noreplace(Watched(), "source", "target", parent=directory, durable=True)
    else:
        rename_noreplace(Watched(), "source", "target", parent=directory, durable=True)
    assert seen == [["source", "target"]]
    assert listing(tmp_path) == (["source"] if number == errno.EIO else ["target"])


def test_rename_passes_other_errors_on(directory: int) -> None:
    """A missing source is no reason to try another way."""
    with pytest.raises(FileNotFoundError) as caught:
        rename_noreplace(Files(), "missing", "target", parent=directory)
    assert caught.value.errno == errno.ENOENT


def test_rename_does_not_follow_a_symlink_in_the_target(directory: int, tmp_path: Path) -> None:
    """[D2] A dangling symlink planted under the final name is refused, and nothing appears where it points."""
    (tmp_path / "source").write_text("new")
    (tmp_path / "target").symlink_to(tmp_path / "elsewhere")
    for files in (Files(), NoExclusiveRename()):
        with pytest.raises(FileExistsError):
            rename_noreplace(files, "source", "target", parent=directory)
    assert not (tmp_path / "elsewhere").exists()


def test_reserve_does_not_change_the_size(directory: int, tmp_path: Path) -> None:
    """Readers take the size for the committed length, so reserved space must not show in it (facts 3)."""
    number = Files().create("file", parent=directory)
    try:
        Files().reserve(number, 65536)
        status = os.fstat(number)
    except OSError as error:
        pytest.skip(f"no fallocate on {tmp_path}: {error}")
    finally:
        os.close(number)
    assert status.st_size == 0
    assert status.st_blocks * 512 >= 65536


def test_write_all_goes_on_after_short_writes(directory: int, tmp_path: Path) -> None:
    """All bytes arrive, in order, whatever the kernel takes at once."""
    number = Files().create("file", parent=directory)
    write_all(ShortWrites(), number, b"0123456789")
    os.close(number)
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_write_that_takes_nothing_is_an_error(directory: int) -> None:
    """A write that returns 0 is not tried for ever."""
    number = Files().create("file", parent=directory)
    with pytest.raises(OSError, match="Input/output") as caught:
        write_all(DeafDisk(), number, b"x")
    os.close(number)
    assert caught.value.errno == errno.EIO


def test_create_refuses_what_is_there(directory: int, tmp_path: Path) -> None:
    """[D2] Neither an existing file, nor a dangling symlink, nor a FIFO is opened in place of a new file."""
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "fifo")
    for name in ("file", "link", "fifo"):
        with pytest.raises(FileExistsError):
            Files().create(name, parent=directory)
    assert not (tmp_path / "elsewhere").exists()


def test_descriptors_are_not_inherited(directory: int) -> None:
    """[F7] What is opened here is closed in every child; a child with the lock's descriptor would keep it (facts 3)."""
    number = Files().create("file", parent=directory)
    again = Files().open_existing("file", parent=directory)
    inheritable = [os.get_inheritable(opened) for opened in (directory, number, again)]
    os.close(number)
    os.close(again)
    assert inheritable == [False, False, False]


def test_opening_a_planted_fifo_does_not_block(directory: int, tmp_path: Path) -> None:
    """A FIFO without a writer blocks a plain open for ever."""
    os.mkfifo(tmp_path / "fifo")
    os.close(Files().open_existing("fifo", parent=directory))
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    with pytest.raises(OSError, match="symbolic links") as caught:
        Files().open_existing("link", parent=directory)
    assert caught.value.errno == errno.ELOOP
