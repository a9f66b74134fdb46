"""Captures after their supervisor are listed, from the files alone, and nothing is written (D6)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from supervisor import (
    PIPE,
    LiveCapture,
    StorageError,
    Supervisor,
    list_captures,
    recover,
    remove_captures,
)
from supervisor.sansio.leftover import NO_LAUNCH_RECORD, UNVERIFIED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Left

    Tree = Callable[[Path], dict[str, tuple[int, int, int, int]]]


@pytest.mark.asyncio
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_five_live_jobs_of_a_killed_supervisor_are_listed_partial_and_readable(
    killed_supervisor: Callable[[Path, str], Left], tree: Tree, tmp_path: Path, loop: str
) -> None:
    """Each is `partial` / `supervisor-lost`, its process unknown, its text all there; and listing writes nothing."""
    pytest.importorskip(loop)
    ids = (left := await asyncio.to_thread(killed_supervisor, tmp_path, loop)).ids
    before = tree(tmp_path)
    receipts = await list_captures(tmp_path)
    assert tree(tmp_path) == before
    assert [receipt.capture_id for receipt in receipts] == ids
    for number, receipt in enumerate(receipts):
        assert receipt.label == str(number)
        assert receipt.process is not None
        assert (receipt.process.state, receipt.process.reason) == ("unknown", "status-lost")
        assert receipt.process.code is receipt.process.signal is None
        assert receipt.process.pid is not None
        assert (receipt.capture.state, receipt.capture.reason) == ("partial", "supervisor-lost")
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert facts.committed == facts.retained.end == facts.retained.verified_end == len(left.text(number))
        assert facts.raw.observed is facts.held is facts.uncommitted is facts.redactions is facts.sha256 is None
        assert await receipt.read_text("stdout") == left.text(number)
        assert await receipt.read_text("stderr") == left.error_text(number)


@pytest.mark.asyncio
async def test_a_live_supervisor_is_left_alone_by_recoverers_of_this_and_another_process(
    tree: Tree, empty: Path, tmp_path: Path
) -> None:
    """Its capture is listed `pending`, no file of it changes, and it ends `complete`; a copy of it is a leftover."""
    async with Supervisor(empty) as supervisor:
        job = await supervisor.start("echo text; read _", shell=True, stdin=PIPE)
        async for page in job.follow():
            assert page.text == "text\n"
            break
        before = tree(empty)
        assert await recover(empty) == []
        code = f"import asyncio, supervisor; print(asyncio.run(supervisor.recover({str(empty)!r})))"
        code = f"import sys; sys.path[:] = {sys.path!r}\n{code}"
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"
        (receipt,) = await list_captures(empty)
        assert tree(empty) == before
        assert receipt.capture.state == "pending"
        assert receipt.process is not None
        assert (receipt.process.state, receipt.process.pid) == ("running", job.pid)
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert (facts.committed, facts.retained.end, facts.raw.observed) == (5, 5, None)
        with pytest.raises(LiveCapture) as refused:
            await remove_captures(empty, [job.capture_id])
        assert refused.value.capture_id == job.capture_id
        copy = tmp_path / "copy"
        await asyncio.to_thread(shutil.copytree, empty, copy, ignore=shutil.ignore_patterns("*.owner"))
        (copied,) = await recover(copy)
        assert copied.capture.reason == "supervisor-lost"
        assert copied.conversation == str(copy)
        assert await copied.read_text("stdout") == "text\n"
        await job.write_eof()
        receipt = await job.wait()
    assert receipt.capture.state == "complete"
    assert [capture.capture.state for capture in await list_captures(empty)] == ["complete"]


@pytest.mark.asyncio
async def test_bytes_past_the_last_sync_are_unverified_after_a_reboot(left: Left) -> None:
    """Under another boot id nothing of a live file is verified, and the receipt says so; unknown is null [A4, D6]."""
    directory, ids = left.path, left.ids
    for capture_id, boot in zip(ids, ("another", None), strict=False):
        path = left.captures / capture_id / "launch.json"
        record = json.loads(path.read_bytes())
        record["owner"]["boot_id"] = boot
        path.write_text(json.dumps(record))
    for receipts in (await list_captures(directory), await recover(directory)):
        ends = []
        for receipt in receipts:
            facts = receipt.streams["stdout"]
            assert facts is not None
            ends.append(facts.retained.verified_end)
        assert ends == [0, None, *(len(left.text(2)) for _ in range(3))]
        assert [UNVERIFIED in receipt.limitations for receipt in receipts] == [True, True, False, False, False]


@pytest.mark.asyncio
async def test_a_capture_without_a_launch_record_is_live_while_any_owner_is(left: Left) -> None:
    """Nobody knows whose it is: it may be just being made. Without any owner it is recovered."""
    directory, ids = left.path, left.ids
    capture = left.captures / ids[0]
    (capture / "launch.json").unlink()
    async with Supervisor(directory):
        assert ids[0] not in [receipt.capture_id for receipt in await recover(directory)]
        assert (await list_captures(directory))[0].capture.state == "pending"
    (receipt,) = await recover(directory)
    assert receipt.capture_id == ids[0]
    assert NO_LAUNCH_RECORD in receipt.limitations
    assert await receipt.read_text("stdout") == left.text(0)
    assert receipt.command is None


@pytest.mark.asyncio
async def test_what_is_not_a_capture_of_ours_is_named_or_left_out(tree: Tree, tmp_path: Path, left: Left) -> None:
    """A symlink, and a capture open to others, are `unavailable` and not touched; a foreign name is no capture [D2]."""
    directory, ids = left.path, left.ids
    (left.captures / "notes").mkdir()
    elsewhere = tmp_path / "elsewhere"
    (left.captures / ids[0]).rename(elsewhere)
    (left.captures / ids[0]).symlink_to(elsewhere)
    (left.captures / ids[1]).chmod(0o755)
    before = tree(elsewhere)
    receipts = await list_captures(directory)
    assert [receipt.capture_id for receipt in receipts] == ids
    states = [(receipt.capture.state, receipt.capture.reason) for receipt in receipts]
    assert states[:2] == [("unavailable", "unsafe-directory")] * 2
    assert [receipt.capture_id for receipt in await recover(directory)] == ids[2:]
    assert tree(elsewhere) == before


@pytest.mark.asyncio
async def test_a_stream_that_is_gone_or_not_ours_is_failed_and_the_other_is_kept(left: Left) -> None:
    """Nothing trustworthy of it is there; the other stream's text is."""
    directory, ids = left.path, left.ids
    (left.captures / ids[0] / "stdout.live").unlink()
    linked = left.captures / ids[1] / "stdout.live"
    os.link(linked, directory / "second-name")
    for receipts in (await list_captures(directory), await recover(directory)):
        for receipt in receipts[:2]:
            facts, other = receipt.streams["stdout"], receipt.streams["stderr"]
            assert facts is not None
            assert other is not None
            assert (facts.state, facts.committed, facts.reference) == ("failed", None, None)
            assert (other.state, receipt.capture.state) == ("partial", "failed")
    assert linked.exists()


@pytest.mark.asyncio
async def test_a_conversation_without_captures_has_none_and_is_not_changed(tree: Tree, tmp_path: Path) -> None:
    """No directory is made by looking; one that does not exist is the world's error."""
    assert await list_captures(tmp_path) == []
    assert await recover(tmp_path) == []
    assert await remove_captures(tmp_path, []) == 0
    assert tree(tmp_path) == {}
    with pytest.raises(StorageError) as missing:
        await list_captures(tmp_path / "missing")
    assert missing.value.reason == "no-directory"
