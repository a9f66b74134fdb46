"""Raw copies on disk: files like the text's, under names of their own, whose faults are not the text's (B8, D3, D5)."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage
from supervisor.storage.publish import final_name

if TYPE_CHECKING:
    from pathlib import Path

STREAMS = ("stdout", "stdout.raw")


class OneBadSync(Files):
    """Files of which one, known by its number of bytes, cannot be synced."""

    def __init__(self, size: int) -> None:
        self._size = size

    def sync_file(self, descriptor: int) -> None:
        """Fail for the file of that size."""
        if self.status(descriptor).st_size == self._size:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_copys_final_name_is_not_a_logs() -> None:
    """What looks for `*.log` must not find it."""
    assert (final_name("stdout"), final_name("stdout.raw")) == ("stdout.log", "stdout.raw")


@pytest.mark.asyncio
async def test_a_copy_is_sealed_without_a_digest_and_discarded_with_the_capture(conversation: Conversation) -> None:
    """Nobody checks raw bytes against anything."""
    capture = await conversation.create_capture("one", STREAMS)
    await capture.spools["stdout"].write([b"text"])
    await capture.spools["stdout.raw"].write([b"\xffraw"])
    sealed = await capture.seal()
    copy, text = sealed.streams["stdout.raw"], sealed.streams["stdout"]
    assert (copy.name, copy.size, copy.digest, copy.fault) == ("stdout.raw", 4, None, None)
    assert text.digest is not None
    assert {path.name for path in capture.path.iterdir()} >= {"stdout.log", "stdout.raw"}
    assert await capture.discard() is None
    assert not capture.path.exists()


@pytest.mark.asyncio
@pytest.mark.parametrize(("size", "barrier"), [(4, True), (5, False)])
async def test_the_barrier_is_the_texts(tmp_path: Path, size: int, *, barrier: bool) -> None:
    """A copy that cannot be synced is told with the copy; a text that cannot be is told of all (D4)."""
    opened = await LocalStorage(OneBadSync(size)).open(tmp_path, limits=Limits(), durability="barrier")
    capture = await opened.create_capture("one", STREAMS)
    await capture.spools["stdout"].write([b"texts"])
    await capture.spools["stdout.raw"].write([b"\xffraw"])
    sealed = await capture.seal()
    assert (sealed.barrier, sealed.error is None) == (barrier, barrier)
    assert (sealed.streams["stdout.raw"].fault is None) is not barrier
    await opened.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["stdout.log", "stdout.raw.raw", ".raw", "std/out.raw"])
async def test_no_other_suffix_is_a_streams_name(conversation: Conversation, name: str) -> None:
    """It would be a name among ours."""
    with pytest.raises(ValueError, match="plain name"):
        await conversation.create_capture("one", (name,))


@pytest.mark.asyncio
async def test_a_copy_counts_against_the_allowance(tmp_path: Path) -> None:
    """Live and settled, when the directory is opened anew (D5)."""
    storage: dict[str, Any] = {"limits": Limits(), "durability": "none"}
    for name, settled in (("live", False), ("settled", True)):
        opened = await LocalStorage().open(tmp_path, **storage)
        capture = await opened.create_capture(name, STREAMS)
        await capture.spools["stdout.raw"].write([b"x" * 1000])
        if settled:
            await capture.seal()
        await opened.close()
    storage["limits"] = Limits(conversation_bytes=2500)
    opened = await LocalStorage().open(tmp_path, **storage)
    assert await (await opened.create_capture("next", STREAMS)).reservation.take(1000) == 500
    await opened.close()
