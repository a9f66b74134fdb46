"""Nothing is called durable before the sync that makes it so, nor after one that failed (D4)."""

# ruff: noqa: ANN401 - fixtures hand out classes of conftest.py
from __future__ import annotations

import errno
import os
import re
import threading
import warnings
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Supervisor
from supervisor.storage import Files, LocalStorage, publish, visiting
from supervisor.storage.directory import sync_directory
from supervisor.storage.removal import remove_capture

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

    from supervisor import Receipt

pytestmark = pytest.mark.asyncio

NOISE: Final = "seq 1 20000; echo oops >&2; exit 5"
PATIENCE: Final = 30.0


async def ended(journal: Any, conversation: Conversation, **options: Any) -> Receipt:
    """Return the receipt of one job that was started. Checks what no disk may change."""
    async with Supervisor(conversation.path, storage=LocalStorage(journal), **options) as supervisor:
        receipt = await (await supervisor.start(NOISE, shell=True)).wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 5)
    assert receipt.stdout.endswith("\n20000\n")
    return receipt


def told(receipt: Receipt) -> tuple[str, str | None, bool, str]:
    """Return state, reason and barrier of the capture, and what the receipt says of the error."""
    assert receipt.durability is not None
    return receipt.capture.state, receipt.capture.reason, receipt.durability.barrier, receipt.durability.error or ""


async def test_h6_010_what_was_removed_does_not_come_back(conversation: Conversation, journal: Any) -> None:
    """H6-010 (yvgude/lean-ctx#954): a rename was reported as done with no sync of its directory behind it."""
    receipts = [await ended(Files(), conversation) for _ in range(3)]
    tolerated, failing, plain = [receipt.capture_id for receipt in receipts]
    async with visiting(journal, conversation.path) as visit:
        assert visit is not None
        journal.faults["sync_directory", "captures"] = [errno.EINVAL, errno.EIO]
        remove_capture(journal, visit.rooms, tolerated)
        with pytest.raises(OSError, match="Input/output error"):
            remove_capture(journal, visit.rooms, failing)
        remove_capture(journal, visit.rooms, plain)
    renamed, synced = (
        journal.position("rename_exclusive", plain),
        journal.position("sync_directory", "captures", last=True),
    )
    assert renamed < synced < journal.position("unlink", "stdout.log", last=True)


@pytest.mark.parametrize("number", [0, errno.EIO])
async def test_h6_013_one_name_of_a_file_is_on_the_device_before_the_other_is_removed(
    conversation: Conversation, journal: Any, number: int
) -> None:
    """H6-013 (pmcfadin/cqlite#1392): the log was dropped before the directory of what replaces it was synced."""

    class WithoutExclusiveRename(type(journal)):  # type: ignore[misc]
        def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:  # noqa: ARG002
            raise OSError(errno.EINVAL, "no such call")

    old = WithoutExclusiveRename()

    def fail_next_sync() -> None:
        old.faults["sync_directory", conversation.captures()[0].name] = [number] if number else []

    old.before["link", "stdout.live"] = fail_next_sync
    receipt = await ended(old, conversation)
    directory = conversation.captures_of(receipt)
    synced = old.position("sync_directory", receipt.capture_id)
    assert old.position("link", "stdout.live") < synced
    if number:
        assert told(receipt)[:3] == ("partial", "io-error", False)
        assert ("unlink", "stdout.live") not in old.log
        assert {path.name for path in directory.glob("stdout*")} == {"stdout.live"}
        assert conversation.text(receipt).endswith(b"\n20000\n")
    else:
        assert told(receipt) == ("complete", None, True, "")
        assert synced < old.position("unlink", "stdout.live")
        assert old.log[old.position("unlink", ".receipt.reserved") - 1] == ("sync_directory", receipt.capture_id)


async def test_h6_017_a_failed_sync_is_not_made_good_by_a_later_one(conversation: Conversation, journal: Any) -> None:
    """H6-017 (rostamlabs/rostam#94): a store went on after a failed sync, and the next one falsely succeeded."""
    journal.faults["sync_directory", "tool-outputs"] = [errno.EIO]  # and success ever after
    async with Supervisor(conversation.path, storage=LocalStorage(journal)) as supervisor:
        receipts = [await supervisor.run(NOISE, shell=True) for _ in range(3)]
    assert [told(receipt)[2] for receipt in receipts] == [False] * 3
    assert all("Input/output error" in told(receipt)[3] for receipt in receipts)
    assert journal.log.count(("sync_directory", "tool-outputs")) == 1
    assert [conversation.text(receipt)[-7:] for receipt in receipts] == [b"\n20000\n"] * 3
    assert told(await ended(journal, conversation)) == ("complete", None, True, "")


async def test_h6_019_nothing_is_called_durable_before_the_sync_has_returned(
    conversation: Conversation, journal: Any, until: Callable[..., Any]
) -> None:
    """H6-019 (yugabyte/yugabyte-db#33816): the books said "synced" before the call, and after its failure too."""
    entered, answer = threading.Event(), threading.Event()

    class Slow(type(journal)):  # type: ignore[misc]
        def sync_file(self, descriptor: int) -> None:  # noqa: ARG002
            entered.set()
            assert answer.wait(PATIENCE)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with Supervisor(conversation.path, storage=LocalStorage(Slow())) as supervisor:
        job = await supervisor.start(NOISE, shell=True)
        await until(entered.is_set)
        before = job.receipt
        answer.set()
        receipt = await job.wait()
    assert (before.capture.state, before.durability) == ("pending", None)
    assert told(receipt)[:3] == ("partial", "io-error", False)
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert facts.state == "partial"


TOLERATED: Final = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
FAILURES: Final = (errno.EIO, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EBADF)


@pytest.mark.parametrize(
    ("call", "what", "number"),
    [
        ("sync_directory", "captures", errno.EINVAL),
        ("sync_directory", "captures", errno.EACCES),
        ("sync_file", "stdout.live", errno.EINVAL),
    ],
)
async def test_h6_026_only_a_directory_may_be_unable_to_be_synced(
    conversation: Conversation, journal: Any, monkeypatch: pytest.MonkeyPatch, call: str, what: str, number: int
) -> None:
    """H6-026 (apache/cassandra#5148): EINVAL on a Ceph volume stopped the node; of a file it must stay an error."""
    monkeypatch.setattr(publish, "_warned", set())
    journal.faults[call, what] = [number]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        receipt = await ended(journal, conversation)
    good = (call, number) == ("sync_directory", errno.EINVAL)
    assert told(receipt)[2] is good
    assert (receipt.capture.state == "complete") is (call == "sync_directory")
    assert len([warning for warning in caught if issubclass(warning.category, RuntimeWarning)]) == good
    directory = os.open(conversation.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for unable in TOLERATED:
            journal.faults["sync_directory", conversation.path.name] = [unable]
            assert sync_directory(journal, directory) is not None
        for failure in FAILURES:
            journal.faults["sync_directory", conversation.path.name] = [failure]
            with pytest.raises(OSError, match=re.escape(os.strerror(failure))):
                sync_directory(journal, directory)
    finally:
        os.close(directory)


async def test_h6_041_what_every_write_took_may_still_be_nowhere(conversation: Conversation, journal: Any) -> None:
    """H6-041 (openzfs/zfs#4148): over a quota on NFS the writes succeeded for long, and EDQUOT came much later."""
    journal.faults["sync_file", "stderr.live"] = [errno.EDQUOT]
    receipt = await ended(journal, conversation)
    assert ("write", "stderr.live") in journal.log
    state, reason, barrier, error = told(receipt)
    assert (state, reason, barrier) == ("partial", "no-space", False)
    assert error.startswith("syncing stderr.live: ")
    stderr = receipt.streams["stderr"]
    assert stderr is not None
    assert (stderr.state, stderr.reason) == ("partial", "no-space")


@pytest.mark.parametrize("what", ["stdout.live", ".receipt.reserved"])
async def test_h6_044_without_a_sync_close_is_the_only_one_to_tell(
    conversation: Conversation, journal: Any, what: str
) -> None:
    """H6-044 (cooperative-computing-lab/cctools#2784): on AFS all writes succeeded, close failed, and all was empty."""
    journal.faults["close", what] = [errno.EIO]
    receipt = await ended(journal, conversation, durability="none")
    assert not [entry for entry in journal.log if entry[0].startswith("sync")]
    assert "Input/output error" in told(receipt)[3]
    published = (conversation.captures_of(receipt) / "receipt.json").exists()
    if what == "stdout.live":
        assert (receipt.capture.state, receipt.capture.reason, published) == ("partial", "io-error", True)
    else:
        assert not published
