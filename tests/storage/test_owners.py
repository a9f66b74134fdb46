"""Who lives: a held lock, visible only once it is held, and gone however its process ends [D6]."""

# ruff: noqa: ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage, is_live
from supervisor.storage.owners import start_time

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).parent.parent / "programs" / "storage_capture.py"


def listing(directory: int) -> list[str]:
    """Return the names in a directory."""
    return Files().names(directory)


@contextmanager
def state_directory(conversation: Path) -> Iterator[int]:
    """Lend a descriptor of the directory that holds owner files."""
    number = os.open(conversation / "tool-outputs" / ".supervisor", os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield number
    finally:
        os.close(number)


@contextmanager
def holder(directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a program that holds a capture in `directory`; lend it with the name of its owner's file."""
    command = [sys.executable, str(PROGRAM), "hold", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_other_process_is_live_until_it_is_killed(tmp_path: Path) -> None:
    """A crash frees the lock and leaves the file, the live streams and the launch record, exact to the last write."""
    with holder(tmp_path) as (process, name), state_directory(tmp_path) as state:
        assert is_live(state, name) is True
        assert is_live(state, name) is True
        owner = json.loads((tmp_path / "tool-outputs" / ".supervisor" / name).read_text())
        assert owner["pid"] == process.pid
        assert owner["start_time"] == start_time(process.pid)
        process.kill()
        process.wait()
        assert is_live(state, name) is False
        assert listing(state) == [name]
    capture = tmp_path / "tool-outputs" / "captures" / "one"
    assert (capture / "stdout.live").read_bytes() == b"before the crash\n"
    assert (capture / "stderr.live").read_bytes() == b""
    assert (capture / "launch.json").read_bytes() == b"{}"
    assert not (capture / "receipt.json").exists()


@pytest.mark.asyncio
async def test_leftovers_of_a_dead_owner_disturb_nobody(tmp_path: Path) -> None:
    """The next supervisor opens beside them, counts them, and leaves them as they are."""
    with holder(tmp_path) as (process, name):
        process.kill()
        process.wait()
    limits = Limits(conversation_bytes=100)
    conversation = await LocalStorage().open(tmp_path, limits=limits, durability="barrier")
    with state_directory(tmp_path) as state:
        alive = {owner: is_live(state, owner) for owner in listing(state)}
        granted = await (await conversation.create_capture("new", ("stdout",))).reservation.take(1000)
    await conversation.close()
    assert granted == 100 - len(b"before the crash\n")
    assert alive == {name: False, conversation.owner.name: True}
    assert (tmp_path / "tool-outputs" / "captures" / "one" / "stdout.live").exists()


@pytest.mark.asyncio
async def test_two_supervisors_share_a_conversation(tmp_path: Path) -> None:
    """Each has an owner's file of its own; one that closes takes only its own away."""
    first = await LocalStorage().open(tmp_path, limits=Limits(), durability="none")
    second = await LocalStorage().open(tmp_path, limits=Limits(), durability="none")
    with state_directory(tmp_path) as state:
        both = {owner: is_live(state, owner) for owner in listing(state)}
        await first.close()
        one = {owner: is_live(state, owner) for owner in listing(state)}
        gone = is_live(state, first.owner.name)
    await second.close()
    assert both == {first.owner.name: True, second.owner.name: True}
    assert one == {second.owner.name: True}
    assert gone is False


@pytest.mark.asyncio
async def test_identity_tells_this_process(conversation: Conversation) -> None:
    """Boot, pid namespace, pid and start time, as the file says it too."""
    identity = conversation.owner.identity
    path = conversation.directory / "tool-outputs" / ".supervisor" / conversation.owner.name
    assert json.loads(path.read_text()) == identity
    assert identity["pid"] == os.getpid()
    assert identity["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert identity["pid_namespace"] == str(Path("/proc/self/ns/pid").readlink())
    # proc_pid_stat(5): the field is the 22nd; this program's name has no space in it.
    assert identity["start_time"] == int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])


def test_start_time_of_a_process_that_is_gone_is_unknown() -> None:
    """[A4] None, never 0."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert start_time(process.pid) is None


def test_owner_file_is_never_visible_without_its_lock(tmp_path: Path) -> None:
    """Whoever sees the name finds it locked and whole: otherwise a reconciler could take a newborn for dead."""
    seen = list[tuple[bool | None, bytes]]()

    class Watching(Files):
        """Looks at the owner's file as another process would, right after each call that can make it visible."""

        def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
            """Rename, then look."""
            super().rename_exclusive(source, target, parent=parent)
            number = os.open(target, os.O_RDONLY, dir_fd=parent)
            seen.append((is_live(parent, target), os.read(number, 65536)))
            os.close(number)

    async def open_and_close() -> None:
        conversation = await LocalStorage(Watching()).open(tmp_path, limits=Limits(), durability="none")
        await conversation.close()

    asyncio.run(open_and_close())
    assert len(seen) == 1
    assert seen[0][0] is True
    assert json.loads(seen[0][1])["pid"] == os.getpid()


def test_lock_is_not_inherited_by_children(tmp_path: Path) -> None:
    """A command that outlives its killed supervisor does not keep it alive (facts 3)."""
    with holder(tmp_path) as (process, name), state_directory(tmp_path) as state:
        fds = Path(f"/proc/{process.pid}/fdinfo")
        owner_inode = os.stat(name, dir_fd=state).st_ino
        flags = [
            int(line.split()[1], 8)
            for entry in Path(f"/proc/{process.pid}/fd").iterdir()
            if entry.stat().st_ino == owner_inode
            for line in (fds / entry.name).read_text().splitlines()
            if line.startswith("flags:")
        ]
    assert len(flags) == 1
    assert flags[0] & os.O_CLOEXEC


def test_what_is_no_owner_file_is_unknown(tmp_path: Path) -> None:
    """[D2] Symlinks, FIFOs, hard links and open modes say nothing about life, and do not hang; no file is dead."""
    state_path = tmp_path / "state"
    state_path.mkdir()
    (state_path / "real").touch(mode=0o600)
    (state_path / "symlink").symlink_to("real")
    (state_path / "linked").touch(mode=0o600)
    (state_path / "linked-too").hardlink_to(state_path / "linked")
    (state_path / "open").touch()
    (state_path / "open").chmod(0o644)
    os.mkfifo(state_path / "fifo", 0o600)
    (state_path / "directory").mkdir(mode=0o700)
    state = os.open(state_path, os.O_RDONLY | os.O_DIRECTORY)
    names = ("real", "missing", "symlink", "linked", "open", "fifo", "directory")
    found = {name: is_live(state, name) for name in names}
    os.close(state)
    assert found == {"real": False, "missing": False} | dict.fromkeys(names[2:])


def test_an_owner_that_was_killed_between_its_two_names_is_dead(tmp_path: Path) -> None:
    """[D2, D6] Linked and not yet unlinked: by either name it lives as long as its lock, and no longer."""
    (tmp_path / ".one.owner").touch(mode=0o600)
    (tmp_path / "one.owner").hardlink_to(tmp_path / ".one.owner")
    state = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    files = Files()
    try:
        number = files.open_existing("one.owner", parent=state)
        files.lock(number, exclusive=True)
        assert [is_live(state, name) for name in ("one.owner", ".one.owner")] == [True, True]
        os.close(number)
        assert [is_live(state, name) for name in ("one.owner", ".one.owner")] == [False, False]
        (tmp_path / "third").hardlink_to(tmp_path / "one.owner")
        assert is_live(state, "one.owner") is None
    finally:
        os.close(state)
