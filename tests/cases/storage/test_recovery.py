"""What a crash leaves is found, told from what is whole, and never taken for it (D6)."""

# ruff: noqa: ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import hashlib
import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import PIPE, Receipt, StorageError, Supervisor, list_captures, read_capture, recover

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Conversation

    from supervisor.sansio.receipt import StreamFacts

pytestmark = pytest.mark.asyncio

LOST = ("partial", "supervisor-lost", "unknown", "status-lost")


def standing(receipt: Receipt) -> tuple[str, str | None, str | None, str | None]:
    """Return the states and reasons of the capture and the process."""
    process = receipt.process
    return (
        receipt.capture.state,
        receipt.capture.reason,
        None if process is None else process.state,
        None if process is None else process.reason,
    )


def stdout_of(receipt: Receipt) -> StreamFacts:
    """Return the facts about stdout."""
    facts = receipt.streams["stdout"]
    assert facts is not None
    return facts


def change_owner(capture: Path, **fields: Any) -> None:  # noqa: ANN401 - as JSON
    """Rewrite what a launch record says about its owner."""
    record = json.loads((capture / "launch.json").read_text())
    record["owner"] |= fields
    (capture / "launch.json").write_text(json.dumps(record))


async def test_h6_014_a_tail_of_zeros_after_a_power_loss_stops_no_recovery(
    conversation: Conversation, leftover: Path
) -> None:
    """H6-014 (logcabin/logcabin#191): garbage at the tail kept the server from starting; here it is unverified."""
    change_owner(leftover, boot_id="of another boot")
    with (leftover / "stdout.live").open("ab") as live:
        live.write(bytes(4096))
    (receipt,) = await recover(conversation.path)
    assert standing(receipt) == LOST
    assert (stdout_of(receipt).retained.end, stdout_of(receipt).retained.verified_end) == (4102, 0)
    assert "unsynced-bytes-unverified" in receipt.limitations
    assert stdout_of(receipt).sha256 == hashlib.sha256(b"begin\n" + bytes(4096)).hexdigest()
    page = await read_capture(conversation.path, receipt.capture_id, max_bytes=6)
    assert (page.text, page.state) == ("begin\n", "partial")


@pytest.mark.parametrize("made", [".receipt.reserved", None])
async def test_h6_028_a_capture_that_was_only_half_made_is_not_taken_for_one(
    conversation: Conversation, leftover: Path, made: str | None
) -> None:
    """H6-028 (etcd-io/etcd#10688): a directory whose making had failed was opened as a good one by the next start."""
    for path in leftover.iterdir():
        if path.name != made:
            path.unlink()
    (listed,) = await list_captures(conversation.path)
    assert listed.capture.state == "partial"
    (receipt,) = await recover(conversation.path)
    assert standing(receipt)[:2] == LOST[:2]
    assert receipt.streams.get("stdout") is None or stdout_of(receipt).committed is None
    assert await recover(conversation.path) == []


async def test_h6_070_a_dead_owner_whose_pid_lives_again_is_still_dead(
    conversation: Conversation, leftover: Path
) -> None:
    """H6-070 (happier-dev/happier#342): after a reboot the recorded pid was dbus, so that nobody took the work over."""
    change_owner(leftover, pid=os.getpid())
    assert [standing(receipt) for receipt in await list_captures(conversation.path)] == [LOST]
    assert [standing(receipt) for receipt in await recover(conversation.path)] == [LOST]


async def test_h6_073_a_receipt_that_never_got_its_name_is_none(conversation: Conversation, leftover: Path) -> None:
    """H6-073 (nats-io/nats-server#8101): after a crash the unfinished file was loaded as the newest snapshot."""
    async with Supervisor(conversation.path) as supervisor:
        whole = await supervisor.run("echo begin; exit 1", shell=True)
    assert whole.capture.state == "complete"
    unpublished = whole.to_json().replace(whole.capture_id.encode(), leftover.name.encode())
    (leftover / ".receipt.reserved").write_bytes(unpublished)
    assert standing((await list_captures(conversation.path))[0]) == LOST
    (receipt,) = await recover(conversation.path)
    assert receipt.capture_id == leftover.name
    assert standing(receipt) == LOST
    assert Receipt.parse((leftover / "receipt.json").read_bytes()).capture.state == "partial"


async def test_h6_074_a_final_file_that_lost_a_byte_is_damage_and_not_a_shorter_text(
    conversation: Conversation,
) -> None:
    """H6-074 (memgraph/memgraph#4528): a truncated finished WAL was loaded in silence, and the next one applied."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo begin; exit 1", shell=True)
    os.truncate(conversation.captures_of(receipt) / "stdout.log", 5)
    assert await recover(conversation.path) == []
    with pytest.raises(StorageError) as caught:
        await read_capture(conversation.path, receipt.capture_id)
    assert caught.value.reason == "io-error"
    (listed,) = await list_captures(conversation.path)
    with pytest.raises(StorageError):
        await listed.read_text("stdout")
    assert (conversation.captures_of(receipt) / "stdout.log").read_bytes() == b"begin"


async def test_h6_076_no_time_stamp_says_who_lives(conversation: Conversation, leftover: Path) -> None:
    """H6-076 (pasrom/meeting-transcriber#638): a repair's own mtime made the dead look alive, and audio was lost."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        live = conversation.path / "tool-outputs" / "captures" / job.capture_id
        for path in live.iterdir():
            os.utime(path, (0, 0))
        for path in leftover.iterdir():
            os.utime(path)
        stamp = (leftover / "stdout.live").stat().st_mtime_ns
        assert [receipt.capture_id for receipt in await recover(conversation.path)] == [leftover.name]
        await job.write(b"still here\n")
        await job.write_eof()
        receipt = await job.wait()
    assert (leftover / "stdout.log").read_bytes() == b"begin\n"
    assert (leftover / "stdout.log").stat().st_mtime_ns == stamp
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == b"still here\n"


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle.load` calls."""
        return os.mkdir, (str(self._path),)


async def test_h6_091_what_lies_in_a_capture_is_data_and_is_never_run(
    conversation: Conversation, leftover: Path, tmp_path: Path
) -> None:
    """H6-091 (grantjenks/python-diskcache#362, CVE-2025-69872): who could write into the cache could run code."""
    planted = tmp_path / "executed"
    for name in ("receipt.json", "launch.json", "delivered"):
        (leftover / name).write_bytes(pickle.dumps(Planted(planted)))
        (leftover / name).chmod(0o600)
    (listed,) = await list_captures(conversation.path)
    assert listed.capture.state == "partial"
    (receipt,) = await recover(conversation.path)
    assert standing(receipt)[:2] == LOST[:2]
    async with Supervisor(conversation.path) as supervisor:
        assert (await supervisor.run(["true"])).ok
    assert not planted.exists()
    pickle.loads(pickle.dumps(Planted(planted)))
    assert planted.exists()  # it would have worked
