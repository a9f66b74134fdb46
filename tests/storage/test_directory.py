"""Private, contained directories [D2], under any umask and against what may lie in the way."""

# ruff: noqa: ASYNC221, ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage
from supervisor.storage.directory import create_private_directory, create_private_file, open_rooms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.asyncio

NOBODY = 65534
PROGRAM = Path(__file__).parent.parent / "programs" / "storage_capture.py"


def listing(directory: Path) -> list[str]:
    """Return the names in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())


async def open_in(directory: Path) -> Conversation:
    """Open a conversation with the usual limits."""
    return await LocalStorage().open(directory, limits=Limits(), durability="barrier")


async def refusal(directory: Path) -> StorageError:
    """Return the error with which `directory` is refused."""
    with pytest.raises(StorageError) as caught:
        await open_in(directory)
    return caught.value


def modes(directory: Path) -> dict[str, int]:
    """Return the mode of everything below a directory, set-group-id bits included."""
    return {str(path.relative_to(directory)): stat.S_IMODE(path.lstat().st_mode) for path in directory.rglob("*")}


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that an ordinary user can reach: pytest's own are closed to others."""
    path = Path(tempfile.mkdtemp(prefix="spoolvisor-test-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("umask", ["000", "022", "777"])
@pytest.mark.parametrize("user", ["owner", "nobody"])
async def test_all_is_private_under_any_umask(public: Path, umask: str, user: str) -> None:
    """Directories are 0700 and files 0600, in a set-group-id parent too, for root and for an ordinary user."""
    number = os.geteuid()
    if user == "nobody":
        if number != 0:
            pytest.skip("only root can become another user")
        number = NOBODY
        os.chown(public, NOBODY, NOBODY)
    public.chmod(0o2755)
    command = [sys.executable, str(PROGRAM), "publish", str(public), umask, str(number)]
    subprocess.run(command, check=True, timeout=60)
    found = modes(public)
    directories = {"tool-outputs", "tool-outputs/captures", "tool-outputs/.supervisor", "tool-outputs/captures/one"}
    files = {
        f"tool-outputs/captures/one/{name}" for name in ("stdout.log", "stderr.log", "launch.json", "receipt.json")
    }
    assert found == dict.fromkeys(directories, 0o700) | dict.fromkeys(files, 0o600)


async def test_missing_directory_is_no_directory(tmp_path: Path) -> None:
    """[A3, D1] It is not made: the conversation belongs to its owner."""
    assert (await refusal(tmp_path / "missing")).reason == "no-directory"
    assert listing(tmp_path) == []


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
async def test_world_writable_directory_is_refused(tmp_path: Path, mode: int) -> None:
    """The sticky bit does not help: anybody could put something in the place of `tool-outputs`."""
    tmp_path.chmod(mode)
    assert (await refusal(tmp_path)).reason == "unsafe-directory"
    assert listing(tmp_path) == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


async def test_group_writable_directory_is_accepted_and_named(tmp_path: Path) -> None:
    """Hosts that share a directory with a group have decided so; the receipt says it."""
    tmp_path.chmod(0o775)
    conversation = await open_in(tmp_path)
    limitations = conversation.limitations
    await conversation.close()
    assert limitations == ("group-writable-directory",)


async def test_readable_directory_of_the_host_is_accepted(tmp_path: Path) -> None:
    """Hosts make theirs 0755, `tool-outputs` included; privacy starts at what we make, and theirs stays as it is."""
    tmp_path.chmod(0o755)
    (tmp_path / "tool-outputs").mkdir(mode=0o755)
    (tmp_path / "tool-outputs").chmod(0o755)
    conversation = await open_in(tmp_path)
    limitations = conversation.limitations
    await conversation.close()
    found = modes(tmp_path)
    assert found == {"tool-outputs": 0o755, "tool-outputs/captures": 0o700, "tool-outputs/.supervisor": 0o700}
    assert limitations == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_foreign_owner_is_refused(tmp_path: Path) -> None:
    """At the conversation and below it, even for root, who could write there."""
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    os.chown(foreign, NOBODY, NOBODY)
    assert (await refusal(foreign)).reason == "unsafe-directory"
    (tmp_path / "tool-outputs").mkdir(mode=0o700)
    os.chown(tmp_path / "tool-outputs", NOBODY, NOBODY)
    assert (await refusal(tmp_path)).reason == "unsafe-directory"
    assert listing(tmp_path / "tool-outputs") == []


async def test_symlink_as_the_conversation_is_refused(tmp_path: Path) -> None:
    """With or without a trailing slash; nothing is made where it points."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    for path in (tmp_path / "link", Path(f"{tmp_path}/link/"), Path(f"{tmp_path}/link/.")):
        assert (await refusal(path)).reason == "unsafe-directory"
    assert listing(tmp_path / "real") == []


async def test_symlink_above_the_conversation_is_its_owners_business(tmp_path: Path) -> None:
    """Homes and temporary directories are reached through symlinks on many systems."""
    (tmp_path / "real" / "conversation").mkdir(parents=True, mode=0o700)
    (tmp_path / "link").symlink_to("real")
    conversation = await open_in(tmp_path / "link" / "conversation")
    await conversation.close()
    assert (tmp_path / "real" / "conversation" / "tool-outputs" / "captures").is_dir()


@pytest.mark.parametrize("place", ["tool-outputs", "tool-outputs/captures", "tool-outputs/.supervisor"])
@pytest.mark.parametrize("kind", ["symlink", "dangling", "file", "fifo", "open"])
async def test_anything_else_in_our_place_is_refused(tmp_path: Path, place: str, kind: str) -> None:
    """A planted symlink is not followed, a FIFO does not hang, another mode is not repaired; all stays as it was."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    conversation = tmp_path / "conversation"
    planted = conversation / place
    planted.parent.mkdir(parents=True, mode=0o700)
    plant: dict[str, Callable[[], object]] = {
        "symlink": lambda: planted.symlink_to(elsewhere),
        "dangling": lambda: planted.symlink_to(tmp_path / "nowhere"),
        "file": planted.touch,
        "fifo": lambda: os.mkfifo(planted),
        "open": lambda: (planted.mkdir(), planted.chmod(0o777)),
    }
    plant[kind]()
    before = planted.lstat()
    error = await refusal(conversation)
    after = planted.lstat()
    assert error.reason == "unsafe-directory"
    assert (after.st_mode, after.st_ino, after.st_nlink) == (before.st_mode, before.st_ino, before.st_nlink)
    assert listing(elsewhere) == []
    assert not (tmp_path / "nowhere").exists()


async def test_captures_open_to_others_is_refused(tmp_path: Path) -> None:
    """Below `tool-outputs` even a readable directory is not private; it is never chmod-ed."""
    captures = tmp_path / "tool-outputs" / "captures"
    captures.mkdir(parents=True)
    captures.chmod(0o750)
    assert (await refusal(tmp_path)).reason == "unsafe-directory"
    assert stat.S_IMODE(captures.stat().st_mode) == 0o750


async def test_relative_path_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that changes its working directory later does not move the conversation."""
    monkeypatch.chdir(tmp_path)
    conversation = await open_in(Path())
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    capture = await conversation.create_capture("one", ("stdout",))
    assert capture.path == tmp_path / "tool-outputs" / "captures" / "one"
    assert (capture.path / "stdout.live").exists()
    assert await capture.discard() is None
    await conversation.close()


async def test_create_directory_makes_only_what_is_missing(tmp_path: Path) -> None:
    """All of it 0700, its parents too (`makedirs(mode)` would not); what exists keeps its mode. Twice is once."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there").chmod(0o755)
    for _ in range(2):
        await LocalStorage().create_directory(tmp_path / "there" / "a" / "b" / "c")
    assert modes(tmp_path) == {"there": 0o755, "there/a": 0o700, "there/a/b": 0o700, "there/a/b/c": 0o700}
    await (await open_in(tmp_path / "there" / "a" / "b" / "c")).close()


async def test_create_directory_passes_a_symlink_in_the_path_but_no_file(tmp_path: Path) -> None:
    """The path above is the owner's; a file or a dangling symlink in the way is an error, and nothing is made."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    await LocalStorage().create_directory(tmp_path / "link" / "new", durability="none")
    assert (tmp_path / "real" / "new").is_dir()
    for name in ("file", "dangling"):
        with pytest.raises(StorageError) as caught:
            await LocalStorage().create_directory(tmp_path / name / "new")
        assert caught.value.reason == "unsafe-directory"
    assert not (tmp_path / "nowhere").exists()


async def test_new_directory_swapped_for_a_symlink_is_not_followed(tmp_path: Path) -> None:
    """A directory that is swapped right after it was made gets nobody a chmod or a file elsewhere."""
    target = tmp_path / "target"
    target.mkdir(mode=0o750)
    target.chmod(0o750)

    class Swapping(Files):
        """Swaps each new directory for a symlink."""

        def make_directory(self, name: str, *, parent: int) -> None:
            """Make it, then swap it."""
            super().make_directory(name, parent=parent)
            os.rmdir(name, dir_fd=parent)
            os.symlink(target, name, dir_fd=parent)

        def open_directory(self, name: str, *, parent: int | None = None) -> int:
            """Answer as for a directory that the umask closed, so that the mode has to be repaired by name."""
            if parent is not None and not self.repaired:
                raise PermissionError(13, "closed by the umask")
            return super().open_directory(name, parent=parent)

        repaired = False

        def unmask_directory(self, name: str, *, parent: int) -> None:
            """Remember that it was tried."""
            self.repaired = True
            super().unmask_directory(name, parent=parent)

    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        open_rooms(Swapping(), tmp_path)
    assert stat.S_IMODE(target.stat().st_mode) == 0o750
    assert listing(target) == []


async def test_file_with_a_second_name_is_refused(tmp_path: Path) -> None:
    """A hard link made between creation and check would let somebody else keep the text."""

    class Linking(Files):
        """Links each new file elsewhere before it can be looked at."""

        def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
            """Create, then link."""
            number = super().create(name, parent=parent, flags=flags)
            os.link(name, "second", src_dir_fd=parent, dst_dir_fd=parent)
            return number

    directory = Files().open_directory(str(tmp_path))
    try:
        with pytest.raises(OSError, match="another name"):
            create_private_file(Linking(), "first", parent=directory, flags=os.O_WRONLY)
        assert listing(tmp_path) == ["second"]
    finally:
        os.close(directory)


async def test_directory_whose_mode_cannot_be_had_is_removed_again(tmp_path: Path) -> None:
    """Where a file system knows no modes, nothing is stored, and nothing is left."""

    class NoModes(Files):
        """A file system on which everything is 0755 for ever."""

        def set_mode(self, descriptor: int, mode: int) -> None:
            """Ignore the mode."""
            os.fchmod(descriptor, mode | 0o055)

    directory = Files().open_directory(str(tmp_path))
    try:
        with pytest.raises(OSError, match="others have access"):
            create_private_directory(NoModes(), "new", parent=directory)
        with pytest.raises(OSError, match="open to others"):
            create_private_file(NoModes(), "file", parent=directory, flags=os.O_WRONLY)
    finally:
        os.close(directory)
    assert listing(tmp_path) == []
