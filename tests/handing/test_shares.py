"""A capture handed to another conversation of ours, by copy, before its owner is deleted [E10, D1]."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from supervisor import (
    Cursor,
    Limits,
    Receipt,
    StorageError,
    Supervisor,
    list_captures,
    publish_text,
    read_capture,
    recover,
    remove_captures,
    resolve,
    share_capture,
)
from supervisor.handing import hand_over
from supervisor.storage import Files, look_at_allowance, visiting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Talk

    from supervisor.sansio.receipt import StreamFacts


class Lockless(Files):
    """A file system without locks."""

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Refuse."""
        del descriptor, exclusive, wait
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.asyncio
async def test_a_shared_capture_outlives_its_conversation(
    talk: Talk, other: Talk, facts: Callable[..., StreamFacts]
) -> None:
    """With its command and label; cursors and references that somebody has are good there; the paths are of there."""
    copy = await share_capture(talk.path, talk.ids[0], other.path)
    original = talk.receipts[0]
    assert (copy.capture_id, copy.label, copy.command) == (original.capture_id, "marigold", original.command)
    assert (copy.process, copy.capture) == (original.process, original.capture)
    assert facts(copy).path == str(other.path / str(facts(original).reference))
    raw_copy = facts(copy).raw_copy
    assert raw_copy is not None
    assert (raw_copy.state, raw_copy.path, raw_copy.size) == ("unavailable", None, None)
    assert await list_captures(other.path) == [copy]
    shutil.rmtree(talk.path)
    page = await read_capture(other.path, talk.ids[0], cursor=Cursor(talk.ids[0], "stdout", 0, 4))
    assert page.text.startswith("3\n4\n")
    assert (await read_capture(other.path, talk.ids[0], "stderr")).text == "oops\n"
    assert await copy.read_text("stderr") == "oops\n"
    assert facts(await resolve(original, other.path)).path == facts(copy).path


@pytest.mark.asyncio
async def test_sharing_again_changes_nothing(talk: Talk, other: Talk) -> None:
    """Also when it is asked for many times at once, and where nothing can be locked."""

    async def share(files: Files) -> Receipt:
        (copy,) = await hand_over(files, talk.path, talk.ids[1:], other.path, limits=Limits(), export=False)
        return copy

    for files in (Lockless(), Files()):
        first, *others = await asyncio.gather(*(share(files) for _ in range(6)))
        assert set(map(Receipt.to_json, others)) == {first.to_json()}
        before = other.tree()
        assert await share_capture(talk.path, talk.ids[1], other.path) == first
        assert (other.tree(), other.captures()) == (before, talk.ids[1:])
        await remove_captures(other.path, talk.ids[1:])


@pytest.mark.asyncio
async def test_another_version_of_a_capture_is_never_replaced(talk: Talk, tmp_path: Path) -> None:
    """A fork has one of the same id, a leftover or recovered or changed: it stays, and the caller is told."""
    fork = tmp_path / "fork"
    shutil.copytree(talk.path, fork)
    place = fork / "tool-outputs" / "captures" / talk.ids[0]
    (place / "receipt.json").unlink()
    with pytest.raises(StorageError, match="another capture"):
        await share_capture(talk.path, talk.ids[0], fork)
    await recover(fork)
    with pytest.raises(StorageError, match="another capture"):
        await share_capture(talk.path, talk.ids[0], fork)
    assert (await list_captures(fork))[0].capture.state == "partial"
    (fork / "tool-outputs" / "captures" / talk.ids[1] / "stdout.log").unlink()
    with pytest.raises(StorageError, match="another capture"):
        await share_capture(talk.path, talk.ids[1], fork)


@pytest.mark.asyncio
async def test_a_copy_takes_its_room_from_the_allowance_of_its_new_owner(talk: Talk, other: Talk) -> None:
    """Beside what is there; too little leaves nothing, and afterwards just what was copied counts [D5]."""
    size = sum(len(text) for text in ("".join(f"{number}\n" for number in range(1, 2001)), "oops\n"))
    await publish_text(other.path, "x" * 100)
    before = other.captures()
    limits = Limits(conversation_bytes=size + 99)
    with pytest.raises(StorageError) as caught:
        await share_capture(talk.path, talk.ids[0], other.path, limits=limits)
    assert caught.value.reason == "conversation-limit"
    assert other.captures() == before
    await share_capture(talk.path, talk.ids[0], other.path, limits=Limits(conversation_bytes=size + 100))
    async with visiting(Files(), other.path) as visit:
        assert visit is not None
        figures = look_at_allowance(visit.files, visit.rooms)
    assert (figures.used, figures.reserved) == (size + 100, 0)


@pytest.mark.asyncio
async def test_a_destination_must_be_a_directory_of_ours(talk: Talk, tmp_path: Path) -> None:
    """It is not made, and the conversation itself is no destination."""
    with pytest.raises(StorageError) as caught:
        await share_capture(talk.path, talk.ids[0], tmp_path / "missing")
    assert caught.value.reason == "no-directory"
    with pytest.raises(ValueError, match="inside"):
        await share_capture(talk.path, talk.ids[0], talk.path)
    assert not (tmp_path / "missing").exists()


@pytest.mark.asyncio
async def test_no_completion_is_owed_for_a_copy(other: Talk, tmp_path: Path) -> None:
    """It was the old owner's to tell; nor does removing the copy touch the original [E5]."""
    source = tmp_path / "source"
    source.mkdir(mode=0o700)
    async with Supervisor(source) as supervisor:
        job = await supervisor.start(["echo", "x"])
        await job.wait()
    await share_capture(source, job.capture_id, other.path)
    async with Supervisor(other.path) as supervisor:
        completions = supervisor.completions()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anext(completions)
        assert await remove_captures(other.path, [job.capture_id]) == 2
    async with Supervisor(source) as supervisor:
        assert (await anext(supervisor.completions())).receipt.capture_id == job.capture_id


@pytest.mark.asyncio
async def test_a_copy_beside_live_jobs_of_both_owners(talk: Talk, other: Talk) -> None:
    """Neither is disturbed."""
    async with Supervisor(talk.path) as one, Supervisor(other.path) as two:
        jobs = [await supervisor.start(["cat"], stdin="pipe") for supervisor in (one, two)]
        await share_capture(talk.path, talk.ids[0], other.path)
        for job in jobs:
            await job.write(b"x\n")
            await job.write_eof()
            assert (await job.wait()).capture.state == "complete"
    assert [receipt.capture.state for receipt in await list_captures(other.path)] == ["complete", "complete"]
