"""A host's own files: what is appended, replaced and synced, in which order, and what becomes of faults."""

from __future__ import annotations

import errno
import os
import stat
import warnings
from pathlib import Path

import pytest

from supervisor import DurableFiles, StorageError
from supervisor.storage import Files


class Spy(Files):
    """The real calls; writes down what is synced and renamed, and fails where it is told to."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.failing: dict[str, int] = {}
        """The errno of the sync of a name."""
        self.refused: dict[str, int] = {}
        """The errno of the opening of a directory."""
        self.at_most: int | None = None
        """How much a file takes, then it is full."""

    def _sync(self, descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        self.done.append(("sync", name))
        if name in self.failing:
            raise OSError(self.failing[name], os.strerror(self.failing[name]))

    def sync_file(self, descriptor: int) -> None:
        """Write it down."""
        self._sync(descriptor)

    def sync_directory(self, descriptor: int) -> None:
        """Write it down."""
        self._sync(descriptor)

    def rename(self, source: str, target: str, *, parent: int) -> None:
        """Write it down."""
        super().rename(source, target, parent=parent)
        self.done.append(("rename", target))

    def open_directory(self, name: str, *, parent: int | None = None) -> int:
        """Open it, or refuse."""
        number = self.refused.get(Path(name).name)
        if number is not None:
            raise OSError(number, os.strerror(number))
        return super().open_directory(name, parent=parent)

    def write(self, descriptor: int, buffers: object) -> int:
        """Write, as far as there is room."""
        data = b"".join(buffers)  # type: ignore[call-overload]
        if self.at_most is not None:
            if not self.at_most:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self.at_most]
            self.at_most -= len(data)
        return super().write(descriptor, [data])


@pytest.fixture
def spy() -> Spy:
    """Return the system calls."""
    return Spy()


def test_an_append_is_there_at_once_and_synced_by_the_barrier_only(tmp_path: Path, spy: Spy) -> None:
    """Private files and directories are made as they are needed, and nothing is synced before it is asked for."""
    files = DurableFiles(tmp_path / "new" / "talk", files=spy)
    files.append_line("main", b"one")
    files.append_line("branches/b", b"two")
    assert spy.done == []
    assert (tmp_path / "new/talk/main").read_bytes() == b"one\n"
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "new/talk/branches", "new/talk/main")]
    assert modes == [0o700, 0o700, 0o600]
    files.sync(["main", "branches/b", "not-there"])
    synced = [name for _, name in spy.done]
    assert synced == ["main", "b", "branches", "talk", "new", tmp_path.name]


def test_only_what_was_made_since_has_its_ancestors_synced(tmp_path: Path, spy: Spy) -> None:
    """What was there when the object was made has an established place; a directory made later, here, has not."""
    (tmp_path / "talk").mkdir()
    files = DurableFiles(tmp_path / "talk", files=spy)
    files.append_line("main", b"one")
    files.sync(["main"])
    assert [name for _, name in spy.done] == ["main", "talk"]
    spy.done.clear()
    files.append_line(tmp_path / "apart" / "deep" / "other", b"x")
    files.sync([tmp_path / "apart" / "deep" / "other"])
    assert [name for _, name in spy.done] == ["other", "deep", "apart", tmp_path.name]


def test_a_replacement_is_synced_before_it_gets_the_name_and_its_directory_after(tmp_path: Path, spy: Spy) -> None:
    """Temporary file, rename, directory; the mode stays, and nothing else is left."""
    (tmp_path / "main").write_bytes(b"old\n")
    (tmp_path / "main").chmod(0o640)
    files = DurableFiles(tmp_path, files=spy)
    files.replace("main", [b"n", b"ew\n"])
    assert spy.done[0][0] == "sync"
    assert spy.done[0][1].startswith(".main.")
    assert spy.done[1:] == [("rename", "main"), ("sync", tmp_path.name)]
    assert (tmp_path / "main").read_bytes() == b"new\n"
    assert stat.S_IMODE((tmp_path / "main").stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["main"]


def test_a_symlink_is_replaced_through_and_both_places_are_synced(tmp_path: Path, spy: Spy) -> None:
    """The link stays a link, also one whose target is not there yet."""
    for folder in ("talk", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "talk/main").symlink_to("../elsewhere/real")
    files = DurableFiles(tmp_path / "talk", files=spy)
    files.replace("main", [b"new\n"])
    assert (tmp_path / "talk/main").is_symlink()
    assert (tmp_path / "elsewhere/real").read_bytes() == b"new\n"
    assert {name for kind, name in spy.done if kind == "sync"} >= {"talk", "elsewhere"}
    files.append_line("main", b"more")
    spy.done.clear()
    files.sync(["main"])
    assert next(name for _, name in spy.done) == "real"
    assert {name for _, name in spy.done} == {"real", "talk", "elsewhere"}


@pytest.mark.parametrize("cause", ["sync", "room", "generator"])
def test_a_replacement_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path, spy: Spy, cause: str) -> None:
    """Its temporary file's sync fails, the disk is full, or what makes the content raises."""
    (tmp_path / "main").write_bytes(b"old\n")
    files = DurableFiles(tmp_path, files=spy)

    def parts() -> object:
        yield b"new\n"
        if cause == "generator":
            raise KeyError("mine")

    if cause == "room":
        spy.at_most = 2
    if cause == "sync":
        spy.sync_file = lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "x"))  # type: ignore[method-assign]
    with pytest.raises(KeyError if cause == "generator" else StorageError) as caught:
        files.replace("main", parts())  # type: ignore[arg-type]
    if isinstance(caught.value, StorageError):
        assert caught.value.reason == ("no-space" if cause == "room" else "io-error")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"main": b"old\n"}


def test_what_a_killed_replacement_left_goes_with_the_next_one(tmp_path: Path) -> None:
    """Not that of another file, nor one that somebody is writing now."""
    mine, others, busy = (
        tmp_path / name for name in (f".main.{'0' * 16}.new", f".n.{'0' * 16}.new", f".main.{'1' * 16}.new")
    )
    for path in (mine, others, busy):
        path.touch()
    held = os.open(busy, os.O_RDONLY)
    try:
        Files().lock(held, exclusive=True)
        DurableFiles(tmp_path).replace("main", [b"x"])
    finally:
        os.close(held)
    assert (mine.exists(), others.exists(), busy.exists()) == (False, True, True)


def test_a_line_that_was_cut_spoils_no_other_one(tmp_path: Path, spy: Spy) -> None:
    """The disk was full in its middle; the next line is a line of its own."""
    files = DurableFiles(tmp_path, files=spy)
    files.append_line("main", b"one")
    spy.at_most = 3
    with pytest.raises(StorageError, match="appending") as caught:
        files.append_line("main", b"second")
    assert caught.value.reason == "no-space"
    spy.at_most = None
    files.append_line("main", b"three")
    assert files.read("main") == b"one\nsec\nthree\n"
    with pytest.raises(ValueError, match="line feed"):
        files.append_line("main", b"a\nb")


def test_a_fault_of_a_sync_is_raised_and_the_next_barrier_writes_anew(tmp_path: Path, spy: Spy) -> None:
    """A second fsync would succeed though the data is lost, so that is not what makes the barrier hold."""
    files = DurableFiles(tmp_path, files=spy)
    files.append_line("main", b"one")
    spy.failing["main"] = errno.EIO
    with pytest.raises(StorageError) as caught:
        files.sync(["main"])
    assert (caught.value.reason, caught.value.errno) == ("io-error", errno.EIO)
    files.append_line("main", b"two")
    spy.failing.clear()
    spy.done.clear()
    before = (tmp_path / "main").stat().st_ino
    files.sync(["main"])
    assert ("rename", "main") in spy.done
    assert (tmp_path / "main").stat().st_ino != before
    assert files.read("main") == b"one\ntwo\n"
    spy.done.clear()
    files.sync(["main"])
    assert spy.done[0] == ("sync", "main")


def test_what_was_lost_by_a_failed_sync_is_never_acknowledged_until_it_is_replaced(tmp_path: Path, spy: Spy) -> None:
    """The page that could not be written is gone, and what is read is what the device has."""
    files = DurableFiles(tmp_path, files=spy)
    files.append_line("main", b"one")
    files.sync(["main"])
    files.append_line("main", b"two")
    spy.failing["main"] = errno.EIO
    with pytest.raises(StorageError):
        files.sync(["main"])
    spy.failing.clear()
    (tmp_path / "main").write_bytes(b"one\n\0\0\0\0")
    for _ in range(2):
        with pytest.raises(StorageError, match="is lost"):
            files.sync(["main"])
    files.replace("main", [b"one\ntwo\n"])
    files.sync(["main"])


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_directory_without_a_barrier_is_told_of_once(tmp_path: Path, spy: Spy, number: int) -> None:
    """The files are synced all the same, and the warning comes last: a filter may make an exception of it."""
    files = DurableFiles(tmp_path / "talk", files=spy)
    files.append_line("main", b"one")
    spy.failing["talk"] = number
    with pytest.warns(UserWarning, match="talk cannot be synced") as told:
        files.sync(["main"])
    assert len(told) == 1
    assert spy.done[-1] == ("sync", tmp_path.name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files.sync(["main"])


def test_an_ancestor_that_cannot_be_opened_has_no_barrier_either(tmp_path: Path, spy: Spy) -> None:
    """One may be allowed to make a name in a directory that one may not read."""
    files = DurableFiles(tmp_path / "talk", files=spy)
    files.append_line("main", b"one")
    spy.refused[tmp_path.name] = errno.EACCES
    with pytest.warns(UserWarning, match="cannot be synced"):
        files.sync(["main"])


@pytest.mark.parametrize("how", ["failing", "refused"])
def test_a_real_fault_of_a_directory_is_raised(tmp_path: Path, spy: Spy, how: str) -> None:
    """EIO is no missing feature."""
    files = DurableFiles(tmp_path / "talk", files=spy)
    files.append_line("main", b"one")
    getattr(spy, how)[tmp_path.name] = errno.EIO
    with pytest.raises(StorageError):
        files.sync(["main"])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A FIFO in the transcript's place neither blocks nor is replaced; a loop of symlinks is an error."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    files = DurableFiles(tmp_path)
    for name in ("fifo", "loop"):
        with pytest.raises(StorageError):
            files.append_line(name, b"x")
    with pytest.raises(StorageError, match="not a regular file"):
        files.replace("fifo", [b"x"])
    assert files.read("missing/file") == b""
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
