"""What is acknowledged was synced, in the right order, and a sync that failed is believed (D3, D4)."""

# ruff: noqa: ANN401 - fixtures hand out classes of conftest.py
from __future__ import annotations

import errno
import warnings
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Receipt, Supervisor
from supervisor.storage import LocalStorage, publish

if TYPE_CHECKING:
    from conftest import Conversation

pytestmark = pytest.mark.asyncio

NOISE: Final = "seq 1 20000; echo oops >&2; exit 5"


async def ended(journal: Any, conversation: Conversation) -> Receipt:
    """Return the receipt of one job; the log ends where its caller got it. Checks what no disk may change."""
    async with Supervisor(conversation.path, storage=LocalStorage(journal)) as supervisor:
        receipt = await (await supervisor.start(NOISE, shell=True)).wait()
        journal.log = list(journal.log)
        told = len(journal.log)
    del journal.log[told:]
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 5)
    assert receipt.stdout.endswith("\n20000\n")
    return receipt


async def test_h6_002_new_directories_are_on_the_device_before_the_receipt_is_given_out(
    conversation: Conversation, journal: Any
) -> None:
    """H6-002 (mongodb-partners/mongo-rocks#35): files were synced, the directory they were made in was not."""
    receipt = await ended(journal, conversation)
    for made, parent in (
        (receipt.capture_id, "captures"),
        ("captures", "tool-outputs"),
        ("tool-outputs", conversation.path.name),
    ):
        assert journal.position("sync_directory", parent, last=True) > journal.position("make_directory", made)
    assert receipt.durability is not None
    assert (receipt.durability.barrier, receipt.durability.directories) == (True, True)


async def test_h6_003_the_names_that_a_receipt_refers_to_are_on_the_device_before_its_own(
    conversation: Conversation, journal: Any
) -> None:
    """H6-003 (facebook/rocksdb#5287): the manifest named a file whose directory entry was lost with the power."""
    receipt = await ended(journal, conversation)
    named = max(journal.position("rename_exclusive", f"{stream}.live") for stream in ("stdout", "stderr"))
    synced = journal.position("sync_directory", receipt.capture_id)
    assert named < synced < journal.position("rename_exclusive", ".receipt.reserved")


async def test_h6_008_a_streams_data_is_on_the_device_before_its_final_name(
    conversation: Conversation, journal: Any
) -> None:
    """H6-008 (stellar/stellar-core#2202): a stream was closed without fsync, and what referred to it was synced."""
    await ended(journal, conversation)
    for stream in ("stdout.live", "stderr.live"):
        written, synced = journal.position("write", stream, last=True), journal.position("sync_file", stream)
        assert written < synced < journal.position("close", stream) < journal.position("rename_exclusive", stream)


async def test_h6_011_the_receipt_is_synced_before_its_rename_and_its_directory_after(
    conversation: Conversation, journal: Any
) -> None:
    """H6-011 (tinyhumansai/opencompany#1049): write and rename without fsync left an empty file that was "saved"."""
    receipt = await ended(journal, conversation)
    renamed = journal.position("rename_exclusive", ".receipt.reserved")
    assert journal.position("write", ".receipt.reserved") < journal.position("sync_file", ".receipt.reserved") < renamed
    assert renamed < journal.position("sync_directory", receipt.capture_id, last=True)


async def test_h6_016_a_failed_fsync_is_not_tried_again_and_believed(conversation: Conversation, journal: Any) -> None:
    """H6-016 (wiredtiger/wiredtiger#4095): the second fsync after EIO reports success with the data dropped."""
    journal.faults["sync_file", "stdout.live"] = [errno.EIO]  # and success ever after
    receipt = await ended(journal, conversation)
    assert journal.log.count(("sync_file", "stdout.live")) == 1
    assert ("sync_file", "stdout.log") not in journal.log
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "io-error")
    assert receipt.durability is not None
    assert not receipt.durability.barrier
    assert receipt.streams["stderr"] is not None
    assert receipt.streams["stderr"].state == "complete"


async def test_h6_020_a_full_disk_may_show_first_at_the_sync(conversation: Conversation, journal: Any) -> None:
    """H6-020 (cockroachdb/cockroach#64385): with delayed allocation ENOSPC comes at fsync, and was not looked for."""
    journal.faults["sync_file", "stdout.live"] = [errno.ENOSPC]
    receipt = await ended(journal, conversation)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    assert conversation.published(receipt) == receipt


async def test_h6_042_an_error_of_close_is_an_error_of_the_data(conversation: Conversation, journal: Any) -> None:
    """H6-042 (llvm/llvm-project#56501): over quota on NFS every write succeeds and close fails, which was ignored."""
    journal.faults["close", "stdout.live"] = [errno.EDQUOT]
    receipt = await ended(journal, conversation)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    assert receipt.durability is not None
    assert receipt.durability.error is not None
    assert "closing stdout.live" in receipt.durability.error


async def test_h6_021_a_file_system_without_directory_sync_still_completes(
    conversation: Conversation, journal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H6-021 (borgbackup/borg#1287): EINVAL on CIFS ended the whole backup; it is named and is no failure."""
    monkeypatch.setattr(publish, "_warned", set())
    for room in ("captures", "tool-outputs", conversation.path.name):
        journal.faults["sync_directory", room] = [errno.EINVAL]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        receipt = await ended(journal, conversation)
    assert receipt.capture.state == "complete"
    assert receipt.durability is not None
    assert (receipt.durability.barrier, receipt.durability.error) == (True, None)


async def test_h6_025_an_io_error_of_a_directory_sync_is_never_tolerated(
    conversation: Conversation, journal: Any
) -> None:
    """H6-025 (bazil/fuse#227): a FUSE file system without fsync answered EIO, which nobody can tell from a loss."""

    class Failing(type(journal)):  # type: ignore[misc]
        def sync_directory(self, descriptor: int) -> None:  # noqa: ARG002
            raise OSError(errno.EIO, "input/output error")

    receipt = await ended(Failing(), conversation)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "io-error")
    assert receipt.durability is not None
    assert not receipt.durability.barrier


async def test_h6_027_a_missing_directory_barrier_is_said_once_and_in_every_receipt(
    conversation: Conversation, journal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H6-027 (untitaker/python-atomicwrites#28): to swallow it in silence or to fail were the only choices."""
    monkeypatch.setattr(publish, "_warned", set())

    class Unable(type(journal)):  # type: ignore[misc]
        def sync_directory(self, descriptor: int) -> None:  # noqa: ARG002
            raise OSError(errno.ENOTSUP, "not supported")

    async with Supervisor(conversation.path, storage=LocalStorage(Unable())) as supervisor:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            receipts = [await supervisor.run(NOISE, shell=True) for _ in range(2)]
    assert {receipt.capture.state for receipt in receipts} == {"complete"}
    assert {receipt.durability and receipt.durability.directories for receipt in receipts} == {False}
    assert {receipt.limitations for receipt in receipts} == {("no-directory-barrier",)}
    # Each capture's own directory, and once the three above them.
    assert len([warning for warning in caught if issubclass(warning.category, RuntimeWarning)]) == 5


async def test_h6_087_a_rename_that_fails_is_reported_and_not_replaced_by_a_copy(
    conversation: Conversation, journal: Any
) -> None:
    """H6-087 (npm/write-file-atomic#241): after EXDEV a copy was made, of which readers saw a part."""
    journal.faults["rename_exclusive", "stdout.live"] = [errno.EXDEV]
    receipt = await ended(journal, conversation)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "io-error")
    names = {path.name for path in conversation.captures_of(receipt).iterdir()}
    assert names == {"stdout.live", "stderr.log", "launch.json", "receipt.json"}
    assert conversation.text(receipt).endswith(b"\n20000\n")
