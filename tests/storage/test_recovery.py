"""Who owns a capture and whether it lives, what is read of its files, and how a leftover is measured (D2, D6)."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor.errors import LiveCapture
from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage, Owners, find_captures, recover_capture, remove_capture
from supervisor.storage.evidence import RECORD_BYTES, find_rooms, open_found, read_receipt, read_record
from supervisor.storage.faults import UnsafeDirectoryError
from supervisor.storage.owners import this_process
from supervisor.storage.publish import Barrier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from supervisor.storage.directory import Rooms

CAPTURE: Final = "20260101T000000000000Z-0123456789abcdef0123456789abcdef"


class Lockless(Files):
    """A file system whose locks answer with an errno; `wait` alone, if it is asked for."""

    def __init__(self, number: int, *, waiting_only: bool = False) -> None:
        self._number = number
        self._waiting_only = waiting_only

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Refuse."""
        if self._waiting_only and not wait:
            super().lock(descriptor, exclusive=exclusive)
            return
        raise OSError(self._number, os.strerror(self._number))


async def leave(directory: Path, texts: dict[str, bytes]) -> None:
    """Leave a capture behind, with these texts and without a launch record."""
    conversation = await LocalStorage().open(directory, limits=Limits(), durability="none")
    capture = await conversation.create_capture(CAPTURE, tuple(texts))
    for name, text in texts.items():
        await capture.spools[name].write([text])
    await conversation.close()


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Rooms]:
    """The open directories of a conversation that has had a supervisor."""
    captures = tmp_path / "tool-outputs" / "captures"
    captures.mkdir(parents=True, mode=0o700)
    (tmp_path / "tool-outputs" / ".supervisor").mkdir(mode=0o700)
    captures.chmod(0o700)
    opened = find_rooms(Files(), tmp_path)
    assert opened is not None
    yield opened
    opened.discard()


@pytest.mark.asyncio
async def test_an_owner_lives_while_its_lock_is_held_and_is_asked_once(conversation: Conversation) -> None:
    """A name that is not there is dead, one that cannot be an owner's is nobody's: then any live owner counts."""
    rooms = find_rooms(Files(), conversation.directory)
    assert rooms is not None
    me: dict[str, Any] = {"name": conversation.owner.name}
    with rooms.state.borrow() as state:
        owners = Owners(Files(), state)
        assert owners.lives(me) is True
        assert owners.lives({"name": "gone.owner"}) is False
        for unusable in (None, {}, {"name": 3}, {"name": "../x.owner"}, {"name": "x"}):
            assert owners.lives(unusable) is True
        await conversation.close()
        assert owners.lives(me) is True
        again = Owners(Files(), state)
        assert again.lives(me) is False
        assert again.lives(None) is False
    rooms.discard()


@pytest.mark.asyncio
async def test_a_supervisor_that_comes_during_a_visit_is_seen(tmp_path: Path) -> None:
    """The directory of owners was not there when the visit began: its capture is live all the same (D6)."""
    captures = tmp_path / "tool-outputs" / "captures"
    captures.mkdir(parents=True, mode=0o700)
    rooms = find_rooms(Files(), tmp_path)
    assert rooms is not None
    conversation = await LocalStorage().open(tmp_path, limits=Limits(), durability="none")
    await conversation.create_capture(CAPTURE, ("stdout",))
    (found,) = find_captures(Files(), rooms)
    assert (found.state, found.recoverable) == ("live", False)
    with pytest.raises(LiveCapture):
        remove_capture(Files(), rooms, CAPTURE)
    rooms.discard()
    await conversation.close()


@pytest.mark.asyncio
async def test_where_locks_cannot_be_asked_the_process_is(conversation: Conversation) -> None:
    """The same boot, namespace, pid and start time: it lives. Another start time: dead. Another boot: nobody knows."""
    rooms = find_rooms(Files(), conversation.directory)
    assert rooms is not None
    here: dict[str, Any] = {**this_process(), "name": conversation.owner.name}
    expected: list[tuple[dict[str, Any], bool | None]] = [
        ({}, True),
        ({"start_time": 1}, False),
        ({"pid": None}, False),
        ({"pid": 2**30}, False),
        ({"boot_id": "another"}, None),
        ({"pid_namespace": "another"}, None),
    ]
    with rooms.state.borrow() as state:
        for changes, lives in expected:
            assert Owners(Lockless(errno.ENOLCK), state).lives({**here, **changes}) is lives
        assert Owners(Lockless(errno.ENOLCK), state).lives(None) is True
    rooms.discard()


@pytest.mark.asyncio
async def test_of_an_owner_that_nobody_can_know_of_nothing_is_recovered_or_removed(conversation: Conversation) -> None:
    """It is listed as lost, with that doubt named; another machine may be writing to it."""
    capture = await conversation.create_capture(CAPTURE, ("stdout",))
    owner = b'{"name":"%s","boot_id":"another"}' % conversation.owner.name.encode()
    receipt = b'{"schema":1,"capture_id":"x","capture":{"state":"pending"},"streams":{}}'
    await capture.record_launch(b'{"owner":%s,"receipt":%s}' % (owner, receipt))
    files = Lockless(errno.ENOLCK)
    rooms = find_rooms(files, conversation.directory)
    assert rooms is not None
    (found,) = find_captures(files, rooms)
    assert (found.state, found.recoverable) == ("left", False)
    assert "owner-liveness-unknown" in found.receipt.limitations
    with pytest.raises(LiveCapture):
        remove_capture(files, rooms, CAPTURE)
    assert capture.path.exists()
    rooms.discard()


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP])
async def test_a_directory_that_cannot_be_locked_is_recovered_all_the_same(tmp_path: Path, number: int) -> None:
    """A network file system locks only what is open for writing; any other error is one."""
    await leave(tmp_path, {"stdout": b"text"})
    rooms = find_rooms(Files(), tmp_path)
    assert rooms is not None
    files = Lockless(errno.EIO, waiting_only=True)
    with pytest.raises(OSError, match="Input/output"):
        recover_capture(files, rooms, Barrier(files, rooms), CAPTURE)
    files = Lockless(number, waiting_only=True)
    receipt = recover_capture(files, rooms, Barrier(files, rooms), CAPTURE)
    assert receipt is not None
    assert receipt.capture.state == "partial"
    rooms.discard()


class Overtaken(Files):
    """Files with which another recoverer is faster: it has published when we name our receipt."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self.theirs: object = None

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Let the other one do all of it first."""
        if target == "receipt.json" and self.theirs is None:
            os.rename(source, "ours", src_dir_fd=parent, dst_dir_fd=parent)
            os.close(os.dup(parent))
            files = Lockless(errno.ENOLCK, waiting_only=True)
            self.theirs = recover_capture(files, self._rooms, Barrier(files, self._rooms), CAPTURE)
            os.rename("ours", source, src_dir_fd=parent, dst_dir_fd=parent)
        super().rename_exclusive(source, target, parent=parent)

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """There are no locks that would hold the other one back."""
        if wait:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        super().lock(descriptor, exclusive=exclusive)


@pytest.mark.asyncio
async def test_without_locks_the_first_receipt_stays_and_both_return_it(tmp_path: Path) -> None:
    """A name is never replaced [D3]."""
    await leave(tmp_path, {"stdout": b"text"})
    rooms = find_rooms(Files(), tmp_path)
    assert rooms is not None
    files = Overtaken(rooms)
    receipt = recover_capture(files, rooms, Barrier(files, rooms), CAPTURE)
    assert receipt is not None
    assert receipt == files.theirs
    rooms.discard()


@pytest.mark.asyncio
async def test_a_large_leftover_is_measured_whole_and_its_preview_is_bounded(tmp_path: Path) -> None:
    """Digest and line feeds are those of all bytes, also of what a crash of the machine has made of them."""
    line = "ä line\n".encode()
    text = b"BEGIN\n" + line * 100_000 + b"\x00\xff\xc3END"
    await leave(tmp_path, {"stdout": text, "stderr": b""})
    rooms = find_rooms(Files(), tmp_path)
    assert rooms is not None
    receipt = recover_capture(Files(), rooms, Barrier(Files(), rooms), CAPTURE)
    assert receipt is not None
    facts, empty = receipt.streams["stdout"], receipt.streams["stderr"]
    assert facts is not None
    assert empty is not None
    assert (facts.committed, facts.lines, facts.ends_with_newline) == (len(text), 100_001, False)
    assert facts.sha256 == hashlib.sha256(text).hexdigest()
    assert facts.preview is not None
    assert facts.preview.head.startswith("BEGIN\nä line\n")
    assert facts.preview.tail.endswith("END")
    assert len(receipt.stdout) < Limits().preview_stdout_chars + 100
    assert (empty.committed, empty.lines, empty.ends_with_newline) == (0, 0, None)
    rooms.discard()


@pytest.mark.asyncio
async def test_what_is_gone_by_then_is_nobody_s(tmp_path: Path) -> None:
    """A capture that was removed between two looks is neither found, recovered nor removed."""
    await leave(tmp_path, {"stdout": b""})
    rooms = find_rooms(Files(), tmp_path)
    assert rooms is not None
    shutil.rmtree(tmp_path / "tool-outputs" / "captures" / CAPTURE)
    assert find_captures(Files(), rooms) == []
    assert recover_capture(Files(), rooms, Barrier(Files(), rooms), CAPTURE) is None
    assert remove_capture(Files(), rooms, CAPTURE) is None
    rooms.discard()


@pytest.mark.asyncio
async def test_a_link_is_synced_before_recovery_removes_the_other_name(tmp_path: Path) -> None:
    """[D4] It may have been made and be nowhere but in memory; if it cannot be synced, both names stay."""
    await leave(tmp_path, {"stdout": b"text"})
    capture = tmp_path / "tool-outputs" / "captures" / CAPTURE
    os.link(capture / "stdout.live", capture / "stdout.log")
    fails = True

    class Failing(Files):
        def sync_directory(self, descriptor: int) -> None:
            if fails:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().sync_directory(descriptor)

    files = Failing()
    found = find_rooms(files, tmp_path)
    assert found is not None
    try:
        with pytest.raises(OSError, match="Input/output error"):
            recover_capture(files, found, Barrier(files, found), CAPTURE)
        assert {path.name for path in capture.glob("stdout*")} == {"stdout.live", "stdout.log"}
        fails = False
        receipt = recover_capture(files, found, Barrier(files, found), CAPTURE)
    finally:
        found.discard()
    assert receipt is not None
    assert {path.name for path in capture.glob("stdout*")} == {"stdout.log"}


def test_a_rename_by_link_that_begins_between_the_two_looks_is_no_foreign_name(rooms: Rooms) -> None:
    """The file has one name when it is opened, and its second one just after (D2)."""

    class Beginning(Files):
        def status(self, descriptor: int) -> os.stat_result:
            found = super().status(descriptor)
            with contextlib.suppress(FileExistsError):
                self.link("stdout.live", "stdout.log", parent=parent)
            return found

    with rooms.captures.borrow() as parent:
        os.close(Files().create("stdout.live", parent=parent))
        os.close(open_found(Beginning(), "stdout.live", parent=parent, twin="stdout.log"))


def test_a_record_that_is_too_long_is_refused_and_not_read_to_its_end(rooms: Rooms) -> None:
    """It is none of ours, whoever put it there."""
    with rooms.captures.borrow() as captures:
        number = Files().create("receipt.json", parent=captures)
        os.truncate(number, RECORD_BYTES)
        assert read_record(Files(), "receipt.json", None, parent=captures) == bytes(RECORD_BYTES)
        os.truncate(number, 1 << 40)
        with pytest.raises(UnsafeDirectoryError):
            read_receipt(Files(), captures)
        os.close(number)


@pytest.mark.parametrize("name", ["tool-outputs", "tool-outputs/captures", "tool-outputs/.supervisor"])
def test_a_directory_that_is_not_private_or_not_ours_is_refused(tmp_path: Path, rooms: Rooms, name: str) -> None:
    """World-writable, or a symlink in its place; what was opened before it is closed again [D2]."""
    del rooms
    (tmp_path / name).chmod(0o777)
    with pytest.raises(UnsafeDirectoryError):
        find_rooms(Files(), tmp_path)
    (tmp_path / name).chmod(0o700)
    (tmp_path / name).rename(tmp_path / "real")
    (tmp_path / name).symlink_to(tmp_path / "real")
    with pytest.raises(NotADirectoryError):
        find_rooms(Files(), tmp_path)
