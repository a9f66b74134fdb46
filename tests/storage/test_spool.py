"""One stream's live file: exact whatever the kernel takes, and never in anybody's way."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.limits import Limits
from supervisor.storage import Capture, Conversation, Files, LocalStorage, Spool, SpoolFault
from supervisor.storage.spool import CALL_BUFFERS, CALL_BYTES, Rest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from supervisor.storage.writers import Writers


class ScriptedDisk(Files):
    """A disk that takes a number of bytes a call, and after `room` bytes no more."""

    def __init__(self, piece: int, room: int, number: int = errno.ENOSPC) -> None:
        self.piece = piece
        self.room = room
        self.number = number
        self.calls = 0
        self.armed = False

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write as much as the script allows, once it is armed: the owner's file has to be written first."""
        if not self.armed:
            return super().write(descriptor, buffers)
        self.calls += 1
        if not self.room:
            raise OSError(self.number, os.strerror(self.number))
        taken = b"".join(buffers)[: min(self.piece, self.room)]
        self.room -= len(taken)
        return super().write(descriptor, [taken])


async def opened(files: Files, directory: Path, limits: Limits | None = None) -> tuple[Conversation, Capture, Spool]:
    """Return a new capture of stdout in a new conversation."""
    conversation = await LocalStorage(files).open(directory, limits=limits or Limits(), durability="none")
    capture = await conversation.create_capture("one", ("stdout",))
    return conversation, capture, capture.spools["stdout"]


@given(chunks=st.lists(st.binary(min_size=1, max_size=50), max_size=30), data=st.data())
def test_rest_hands_out_every_byte_once(chunks: list[bytes], data: st.DataObject) -> None:
    """Whatever part of each call is taken, the pieces taken are the batch, in order."""
    rest, taken = Rest(chunks), bytearray()
    while buffers := rest.next_buffers():
        count = data.draw(st.integers(1, sum(map(len, buffers))))
        pieces = b"".join(rest.take(count))
        assert pieces == b"".join(buffers)[:count]
        taken += pieces
    assert bytes(taken) == b"".join(chunks)


def test_rest_bounds_each_call() -> None:
    """At most 256 KiB, so that progress shows, in at most `IOV_MAX` buffers."""
    large = Rest([bytes(CALL_BYTES - 1), bytes(CALL_BYTES)])
    assert [len(buffer) for buffer in large.next_buffers()] == [CALL_BYTES - 1, 1]
    many = Rest([b"x"] * (CALL_BUFFERS + 1))
    assert len(many.next_buffers()) == CALL_BUFFERS


@pytest.mark.asyncio
async def test_written_chunks_are_the_file(conversation: Conversation) -> None:
    """In order, empty ones and huge ones included; size and digest are those of the file."""
    capture = await conversation.create_capture("one", ("stdout", "stderr"))
    spool = capture.spools["stdout"]
    text = b""
    for chunks in ([b"a", b"", b"bc"], [], [b"d" * (CALL_BYTES * 2 + 17), b"e"], [b"x"] * (CALL_BUFFERS * 2 + 3)):
        await spool.write(chunks)
        text += b"".join(chunks)
        assert spool.path.read_bytes() == text
        assert spool.size == len(text)
        assert spool.hexdigest() == hashlib.sha256(text).hexdigest()
        assert not spool.outstanding
    assert capture.spools["stderr"].path.stat().st_size == 0
    assert await capture.discard() is None


@pytest.mark.asyncio
async def test_one_hop_a_write(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many chunks a batch has, one call goes to a thread (facts 1)."""
    capture = await conversation.create_capture("one", ("stdout",))
    writers: Writers = capture.spools["stdout"]._writers
    submitted = list[str]()
    submit = writers.submit

    def counting(fn: Callable[..., object], *args: object) -> object:
        submitted.append(fn.__name__)
        return submit(fn, *args)

    with monkeypatch.context() as patch:
        patch.setattr(writers, "submit", counting)
        await capture.spools["stdout"].write([b"x" * 1000] * 3000)
    assert submitted == ["_write_all"]


@pytest.mark.asyncio
@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_short_writes_go_on(tmp_path: Path, piece: int) -> None:
    """A call that takes less than it was given is no error (write(2))."""
    disk = ScriptedDisk(piece, 10**9)
    conversation, _, spool = await opened(disk, tmp_path)
    disk.armed = True
    await spool.write([b"0123456789"] * 5)
    assert spool.path.read_bytes() == b"0123456789" * 5
    assert spool.hexdigest() == hashlib.sha256(b"0123456789" * 5).hexdigest()
    assert disk.calls >= 50 / piece
    await conversation.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("room", [0, 1, 13, 49])
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "no-space"),
        (errno.EDQUOT, "no-space"),
        (errno.EFBIG, "no-space"),
        (errno.EIO, "io-error"),
        (errno.ESTALE, "io-error"),
    ],
)
async def test_fault_leaves_an_exact_prefix(tmp_path: Path, room: int, number: int, reason: str) -> None:
    """[B5] The boundary is the file's size, the digest is that of the prefix, and later writes are refused untried."""
    disk = ScriptedDisk(9, room, number)
    conversation, _, spool = await opened(disk, tmp_path)
    disk.armed = True
    text = b"0123456789" * 5
    with pytest.raises(SpoolFault) as caught:
        await spool.write([text[:10], text[10:]])
    assert (caught.value.reason, caught.value.errno) == (reason, number)
    assert spool.size == room
    assert spool.path.read_bytes() == text[:room]
    assert spool.hexdigest() == hashlib.sha256(text[:room]).hexdigest()
    calls, disk.room = disk.calls, 1000
    with pytest.raises(SpoolFault) as again:
        await spool.write([b"more"])
    assert again.value.reason == reason
    assert disk.calls == calls
    assert spool.path.read_bytes() == text[:room]
    await conversation.close()


@pytest.mark.asyncio
async def test_without_a_digest_none_is_computed(tmp_path: Path) -> None:
    """`Limits.digest=None` saves its cost."""
    conversation, capture, spool = await opened(Files(), tmp_path, Limits(digest=None))
    await spool.write([b"text"])
    assert spool.hexdigest() is None
    sealed = await capture.seal()
    assert sealed.streams["stdout"].digest is None
    await conversation.close()


@pytest.mark.asyncio
async def test_abandoned_spool_takes_no_more(conversation: Conversation) -> None:
    """[B4] Also when no write was out: the stream was given up."""
    capture = await conversation.create_capture("one", ("stdout",))
    spool = capture.spools["stdout"]
    await spool.write([b"kept"])
    spool.abandon()
    with pytest.raises(SpoolFault) as caught:
        await spool.write([b"more"])
    assert (caught.value.reason, caught.value.errno) == ("writer-stalled", None)
    sealed = await capture.seal()
    assert sealed.streams["stdout"].size == 4
    assert sealed.streams["stdout"].fault is None
    assert (capture.path / "stdout.log").read_bytes() == b"kept"


@pytest.mark.asyncio
async def test_no_thread_left_ends_persistence(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """[B5] Where no thread can be started the spool is at its end, like on a full disk."""
    capture = await conversation.create_capture("one", ("stdout",))
    spool = capture.spools["stdout"]
    with monkeypatch.context() as patch:
        patch.setattr(spool._writers, "_idle", 0)
        patch.setattr(spool._writers, "_start_thread", lambda: False)
        patch.setattr(spool._writers, "_counted", set())
        with pytest.raises(SpoolFault) as caught:
            await spool.write([b"x"])
    assert (caught.value.reason, caught.value.errno) == ("io-error", errno.EAGAIN)
    assert spool.size == 0
