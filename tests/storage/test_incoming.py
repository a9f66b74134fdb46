"""A copy has no name until it is whole, and what a kill leaves of one is swept away, a live one never [E10, D5]."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import threading
from typing import TYPE_CHECKING, Final

import pytest

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage, sweep, threads_at_work
from supervisor.storage.descriptor import Descriptor
from supervisor.storage.evidence import find_rooms
from supervisor.storage.incoming import ATTEMPTS, INCOMING, STEP_BYTES, begin, remove_incoming, sweep_incoming
from supervisor.storage.outgoing import Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from supervisor.storage import Incoming

CAPTURE: Final = "20260101T000000000000Z-0123456789abcdef0123456789abcdef"


class Altered(Files):
    """The system's calls, of which one answers with an errno while it is set."""

    def __init__(self) -> None:
        self.failing: tuple[str, int] | None = None
        self.after_naming: tuple[str, int] | None = None
        """What fails from the naming of a directory on."""

    def _check(self, name: str) -> None:
        if self.failing is not None and self.failing[0] == name:
            raise OSError(self.failing[1], os.strerror(self.failing[1]))

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Lock, or fail."""
        self._check("lock")
        super().lock(descriptor, exclusive=exclusive, wait=wait)

    def sync_file(self, descriptor: int) -> None:
        """Say that it is synced, or fail."""
        assert descriptor >= 0
        self._check("sync_file")

    def sync_directory(self, descriptor: int) -> None:
        """Say that it is synced, or fail."""
        assert descriptor >= 0
        self._check("sync_directory")

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Rename, or fail."""
        self._check("rename_exclusive")
        super().rename_exclusive(source, target, parent=parent)
        self.failing = self.failing or self.after_naming


@contextlib.asynccontextmanager
async def opened(path: Path, files: Files, limits: Limits) -> AsyncIterator[Conversation]:
    """Lend the open conversation of a directory."""
    conversation = await LocalStorage(files).open(path, limits=limits)
    try:
        yield conversation
    finally:
        await conversation.close()


@pytest.fixture
def text(tmp_path: Path) -> Callable[[bytes, str | None], Text]:
    """Return a function that returns an open text of these bytes; it is closed with the process's end of use."""

    def make(data: bytes, digest: str | None = None) -> Text:
        place = tmp_path / "source"
        place.write_bytes(data)
        return Text(Descriptor(Files(), os.open(place, os.O_RDONLY)), len(data), digest)

    return make


def hidden(path: Path) -> list[Path]:
    """Return what lies there of copies without a name."""
    return list((path / "tool-outputs" / "captures").glob(f"{INCOMING}*"))


def names(path: Path) -> list[str]:
    """Return all names beside captures."""
    return sorted(entry.name for entry in (path / "tool-outputs" / "captures").iterdir())


@pytest.mark.asyncio
async def test_a_copy_is_whole_when_it_has_its_name(tmp_path: Path, text: Callable[[bytes, str | None], Text]) -> None:
    """Larger than one step; a text whose bytes are not those of its digest leaves no file."""
    data = os.urandom(1024) * (STEP_BYTES // 1024) + b"end"
    async with opened(tmp_path, Altered(), Limits()) as conversation:
        incoming = await conversation.receive(CAPTURE)
        for stream, digest, name in (("stdout", hashlib.sha256(data).hexdigest(), "stdout.log"), ("stderr", "0", None)):
            source = text(data, digest)
            assert await incoming.add(stream, source) == name
            source.file.close()
        assert names(tmp_path) == [hidden(tmp_path)[0].name]
        assert await incoming.settle()
        await incoming.publish(b"{}")
    (capture,) = (tmp_path / "tool-outputs" / "captures").iterdir()
    assert (capture.name, sorted(path.name for path in capture.iterdir())) == (CAPTURE, ["receipt.json", "stdout.log"])
    assert (capture / "stdout.log").read_bytes() == data


@pytest.mark.asyncio
@pytest.mark.parametrize("call", ["sync_file", "sync_directory"])
async def test_a_sync_that_fails_leaves_no_copy(
    tmp_path: Path, text: Callable[[bytes, str | None], Text], call: str
) -> None:
    """Of the text, of the receipt, or of the directory that holds them [D4]."""
    files = Altered()
    async with opened(tmp_path, files, Limits()) as conversation:
        for step in range(3):
            incoming = await conversation.receive(CAPTURE)
            files.failing = (call, errno.EIO) if step == 0 else None
            source = text(b"x", None)
            with pytest.raises(StorageError):  # noqa: PT012 - one of three steps
                await incoming.add("stdout", source)
                files.failing = (call, errno.EIO) if step == 1 else None
                if call == "sync_directory":
                    await incoming.settle()
                files.failing = (call, errno.EIO)
                await incoming.publish(b"{}")
            source.file.close()
            files.failing = None
            await incoming.discard()
            assert names(tmp_path) == []


@pytest.mark.asyncio
async def test_a_name_that_may_not_be_on_the_device_is_told(
    tmp_path: Path, text: Callable[[bytes, str | None], Text]
) -> None:
    """The last step alone fails: the copy is there, whole, and whoever asked for it is told not to rely on it [D4]."""
    files = Altered()
    async with opened(tmp_path, files, Limits()) as conversation:
        incoming = await conversation.receive(CAPTURE)
        source = text(b"xyz", None)
        os.truncate(tmp_path / "source", 2)  # under the copy
        assert await incoming.add("stdout", source) is None
        source.file.close()
        files.after_naming = ("sync_directory", errno.EIO)
        with pytest.raises(StorageError, match="syncing the directories"):
            await incoming.publish(b"{}")
        files.failing = None
        await incoming.discard()
        assert names(tmp_path) == [CAPTURE]


@pytest.mark.asyncio
async def test_a_name_that_is_taken_keeps_its_capture(
    tmp_path: Path, text: Callable[[bytes, str | None], Text]
) -> None:
    """With and without a rename that never replaces; an empty directory is nobody's evidence."""
    files = Altered()
    async with opened(tmp_path, files, Limits()) as conversation:
        await (await conversation.create_capture(CAPTURE, ("stdout",))).close()
        before = names(tmp_path)
        for failing in (None, ("rename_exclusive", errno.ENOSYS)):
            incoming: Incoming = await conversation.receive(CAPTURE)
            source = text(b"x", None)
            await incoming.add("stdout", source)
            source.file.close()
            files.failing = failing
            with pytest.raises(StorageError) as caught:
                await incoming.publish(b"{}")
            files.failing = None
            assert caught.value.errno in {errno.EEXIST, errno.ENOTEMPTY}
            await incoming.discard()
            assert names(tmp_path) == before


@pytest.mark.asyncio
async def test_a_live_copy_is_not_swept_and_a_dead_one_is(tmp_path: Path) -> None:
    """Its lock says which it is; where there are no locks, none is touched."""
    files = Altered()
    async with opened(tmp_path, files, Limits()) as conversation:
        incoming = await conversation.receive(CAPTURE)
        dead = tmp_path / "tool-outputs" / "captures" / f"{INCOMING}dead"
        dead.mkdir(mode=0o700)
        (dead / "stdout.log").write_bytes(b"x" * 10)
        (dead / "receipt.json").write_bytes(b"{}")
        for number in (errno.ENOLCK, errno.EBADF):
            files.failing = ("lock", number)
            assert await conversation.run("sweeping", sweep) == 0
        files.failing = ("lock", errno.EIO)
        with pytest.raises(StorageError):
            await conversation.run("sweeping", sweep)
        files.failing = None
        assert len(hidden(tmp_path)) == 2
        assert await conversation.run("sweeping", sweep) == 10
        (left,) = hidden(tmp_path)
        assert left != dead
        await incoming.discard()
    assert hidden(tmp_path) == []


@pytest.mark.asyncio
async def test_a_sweep_between_making_and_locking_costs_another_try(tmp_path: Path) -> None:
    """Whether it has the lock, or has removed the directory; if it comes each time, that is an error."""

    class Swept(Files):
        """A sweeper comes before the lock, so many times; at first even before the directory is opened."""

        times = 0
        opened = True

        def open_directory(self, name: str, *, parent: int | None = None) -> int:
            """Let the sweeper come first, once."""
            if name.startswith(INCOMING) and not self.opened:
                self.opened = True
                sweep_incoming(Files(), rooms)
            return super().open_directory(name, parent=parent)

        def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
            """Let the sweeper come first."""
            if self.times > 0 and hidden(tmp_path):
                self.times -= 1
                if self.times % 2:
                    sweep_incoming(Files(), rooms)
                else:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            super().lock(descriptor, exclusive=exclusive, wait=wait)

    async with opened(tmp_path, Files(), Limits()):
        rooms = find_rooms(Files(), tmp_path)
        assert rooms is not None
        files = Swept()
        files.opened, files.times = False, ATTEMPTS - 2
        name, number = begin(files, rooms)
        assert name in names(tmp_path)
        files.times = ATTEMPTS
        with pytest.raises(OSError, match="temporarily"):
            begin(files, rooms)
        os.close(number)
        sweep_incoming(Files(), rooms)
        assert hidden(tmp_path) == []
        rooms.discard()


@pytest.mark.asyncio
async def test_a_copy_that_hangs_is_given_up_and_never_named(
    tmp_path: Path, text: Callable[[bytes, str | None], Text]
) -> None:
    """A step that comes back after its deadline changes no name [D8]."""

    class Hanging(Files):
        """The receipt's sync hangs."""

        go = threading.Event()

        def sync_file(self, descriptor: int) -> None:
            """Wait for the test."""
            assert descriptor >= 0
            if self.armed:
                self.go.wait(30)

        armed = False

    files = Hanging()
    async with opened(tmp_path, files, Limits(stall_timeout=0.3)) as conversation:
        incoming = await conversation.receive(CAPTURE)
        source = text(b"x", None)
        await incoming.add("stdout", source)
        source.file.close()
        files.armed = True
        with pytest.raises(StorageError) as caught:
            await incoming.publish(b"{}")
        assert caught.value.reason == "writer-stuck"
        files.go.set()
        async with asyncio.timeout(30):
            while threads_at_work():  # noqa: ASYNC110 - a thread that was given up tells nobody
                await asyncio.sleep(0.01)
        assert names(tmp_path) == [hidden(tmp_path)[0].name]
        await incoming.discard()
    assert names(tmp_path) == []


def test_a_directory_that_is_not_ours_is_not_emptied(tmp_path: Path) -> None:
    """What lies there that we never make keeps it, by an error."""
    strange = tmp_path / f"{INCOMING}x" / "directory"
    strange.mkdir(parents=True)
    parent = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=r"directory|permitted"):
            remove_incoming(Files(), f"{INCOMING}x", parent=parent)
    finally:
        os.close(parent)
    assert strange.exists()
