"""Leftovers get the receipt that their supervisor could not write, and no better one (D6)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from supervisor import (
    Receipt,
    StorageError,
    list_captures,
    read_capture,
    recover,
)
from supervisor.recovering import recover_with
from supervisor.sansio.leftover import UNVERIFIED
from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Left

    Tree = Callable[[Path], dict[str, tuple[int, int, int, int]]]


@pytest.mark.asyncio
async def test_recovering_publishes_what_it_returns_and_recovering_twice_is_recovering_once(
    tree: Tree,
    left: Left,
) -> None:
    """Receipts and final names are there, digests and previews are right, and the second call changes no file."""
    directory, ids = left.path, left.ids
    receipts = await recover(directory)
    assert [receipt.capture_id for receipt in receipts] == ids
    for number, receipt in enumerate(receipts):
        capture = left.captures / receipt.capture_id
        assert Receipt.parse((capture / "receipt.json").read_bytes()) == receipt
        assert {path.name for path in capture.iterdir()} == {"launch.json", "receipt.json", "stderr.log", "stdout.log"}
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert (receipt.capture.state, receipt.capture.reason) == ("partial", "supervisor-lost")
        assert facts.sha256 == hashlib.sha256(left.text(number).encode()).hexdigest()
        assert (facts.lines, facts.ends_with_newline) == (1, False)
        assert facts.path == str(capture / "stdout.log")
        assert receipt.stdout == left.text(number)
        assert receipt.stderr == left.error_text(number)
        assert receipt.durability is not None
        assert receipt.durability.barrier
        assert receipt.limitations == ()
        assert await receipt.read_text("stdout") == left.text(number)
        page = await read_capture(directory, receipt.capture_id)
        assert (page.text, page.state, page.eof) == (left.text(number), "partial", True)
    before = tree(directory)
    assert await recover(directory) == []
    assert tree(directory) == before
    assert await list_captures(directory) == receipts


@pytest.mark.asyncio
async def test_two_recoverers_at_once_agree(left: Left) -> None:
    """Both return the same receipt for whatever both had to do with, and together all of them."""
    directory, ids = left.path, left.ids
    results = await asyncio.gather(*(recover(directory) for _ in range(4)))
    by_id: dict[str, Receipt] = {}
    for receipt in (receipt for result in results for receipt in result):
        assert by_id.setdefault(receipt.capture_id, receipt) == receipt
    assert sorted(by_id) == ids
    assert await list_captures(directory) == [by_id[capture_id] for capture_id in ids]


@pytest.mark.asyncio
async def test_half_done_renames_are_finished_and_a_receipt_without_its_name_promotes_nothing(
    left: Left,
) -> None:
    """Two names of one file are read, then made one; a whole receipt that was never named is no evidence."""
    directory, ids = left.path, left.ids
    first, second, third = (left.captures / capture_id for capture_id in ids[:3])
    os.link(first / "stdout.live", first / "stdout.log")
    os.link(first / "launch.json", first / ".launch.unfinished")
    (receipt,) = [receipt for receipt in await recover(directory) if receipt.capture_id == second.name]
    # As if its owner had died before it took the second name away, and that of the third before it gave the first.
    os.link(second / "receipt.json", second / ".receipt.reserved")
    whole = receipt.capture.model_copy(update={"state": "complete", "reason": None})
    complete = receipt.model_copy(update={"capture": whole})
    (third / "receipt.json").unlink()
    (third / ".receipt.reserved").write_bytes(complete.to_json())
    (third / ".receipt.reserved").chmod(0o600)
    assert [receipt.capture.state for receipt in await list_captures(directory)] == ["partial"] * 5
    (again,) = await recover(directory)
    assert (again.capture_id, again.capture.state) == (third.name, "partial")
    assert sorted(path.name for path in first.iterdir()) == ["launch.json", "receipt.json", "stderr.log", "stdout.log"]
    assert not (second / ".receipt.reserved").exists()
    assert await list_captures(directory) == [
        Receipt.parse((left.captures / capture_id / "receipt.json").read_bytes()) for capture_id in ids
    ]


@pytest.mark.asyncio
async def test_a_torn_receipt_is_put_aside_and_one_of_another_version_is_left_alone(
    left: Left,
) -> None:
    """No JSON is nobody's receipt; JSON that we cannot read may be somebody's."""
    directory, ids = left.path, left.ids
    torn, newer = (left.captures / capture_id / "receipt.json" for capture_id in ids[:2])
    for path, data in ((torn, b'{"schema":1,'), (newer, b'{"schema":99}')):
        path.write_bytes(data)
        path.chmod(0o600)
    receipts = await recover(directory)
    assert [receipt.capture_id for receipt in receipts] == [ids[0], *ids[2:]]
    assert Receipt.parse(torn.read_bytes()) == receipts[0]
    (aside,) = torn.parent.glob(".receipt.unreadable-*")
    assert aside.read_bytes() == b'{"schema":1,'
    assert newer.read_bytes() == b'{"schema":99}'
    listed = await list_captures(directory)
    assert "receipt-of-another-version" in listed[1].limitations


class FailingFiles(Files):
    """Files of which the syncs of data or the writes fail."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failed = False

    def sync_file(self, descriptor: int) -> None:
        """Fail, once, and report success ever after, as a kernel does that has dropped the pages (facts 3)."""
        if self._name == "sync_file" and not self._failed:
            self._failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_file(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Fail once: the receipt was written, and is not to be named."""
        if self._name == "truncate" and not self._failed:
            self._failed = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().truncate(descriptor, size)


@pytest.mark.asyncio
async def test_a_leftover_that_cannot_be_recovered_holds_up_no_other(left: Left) -> None:
    """The first fault is raised at the end; a later call does the rest."""
    directory, ids = left.path, left.ids
    with pytest.raises(StorageError) as fault:
        await recover_with(FailingFiles("truncate"), directory)
    assert fault.value.reason == "no-space"
    (receipt,) = await recover(directory)
    assert receipt.capture_id == ids[0]


@pytest.mark.asyncio
async def test_a_failed_sync_is_named_and_verifies_nothing(left: Left) -> None:
    """The receipt is published all the same: without barrier, with the error [D4]."""
    directory = left.path
    first, second, *_ = await recover_with(FailingFiles("sync_file"), directory)
    assert first.durability is not None
    assert (first.durability.barrier, first.durability.error) == (False, "syncing stdout.live: Input/output error")
    assert UNVERIFIED in first.limitations
    facts = first.streams["stdout"]
    assert facts is not None
    assert facts.retained.verified_end is None
    assert second.durability is not None
    assert second.durability.barrier


@pytest.mark.asyncio
async def test_a_cancelled_recovery_leaves_nothing_open_and_can_be_repeated(left: Left) -> None:
    """Whatever the moment; the fixture looks for threads, tasks and descriptors."""
    directory, ids = left.path, left.ids
    for turns in range(12):
        task = asyncio.create_task(recover(directory))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await recover(directory)
    assert [receipt.capture_id for receipt in await list_captures(directory)] == ids
