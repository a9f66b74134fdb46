"""A started job: its record comes before its output, and everybody gets the same receipt (A6, A7)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import PIPE, Limits, Receipt, Supervisor
from supervisor.process import spawn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from conftest import Conversation

    from supervisor import Job
    from supervisor.process import Child, Launch

pytestmark = pytest.mark.asyncio


class Witness(asyncio.SubprocessProtocol):
    """Passes everything on, and looks at the conversation whenever bytes were read."""

    def __init__(self, inner: asyncio.SubprocessProtocol, conversation: Conversation) -> None:
        self._inner = inner
        self._conversation = conversation
        self.seen: list[set[str]] = []
        self.records: list[dict[str, Any]] = []

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        """Leave to the other whatever is not looked at here."""
        if name in {"_inner", "_conversation", "seen", "records", "pipe_data_received"}:
            return super().__getattribute__(name)
        return getattr(super().__getattribute__("_inner"), name)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Note the names of the capture's files, and its launch record."""
        (capture,) = self._conversation.captures()
        self.seen.append({path.name for path in capture.iterdir()})
        self.records.append(json.loads((capture / "launch.json").read_bytes()))
        self._inner.pipe_data_received(fd, data)


async def test_the_launch_is_on_record_before_the_first_byte_is_read(conversation: Conversation) -> None:
    """Files, record and pending receipt are there, however fast the child writes (A7)."""
    witnesses: list[Witness] = []

    async def watched(protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        witnesses.append(Witness(protocol, conversation))
        return await spawn(witnesses[0], launch)

    async with Supervisor(conversation.path, spawn=watched) as supervisor:
        command = ["sh", "-c", "echo fast; exec cat"]
        job = await supervisor.start(command, stdin=PIPE, label="quick", call_id="call-7")
        pending = job.receipt
        await job.write_eof()
        receipt = await job.wait()
    (witness,) = witnesses
    assert witness.seen
    assert {"launch.json", "stdout.live", "stderr.live"} <= witness.seen[0]
    assert "receipt.json" not in witness.seen[0]
    recorded = Receipt.parse(json.dumps(witness.records[0]["receipt"]).encode())
    assert recorded.capture_id == receipt.capture_id == job.capture_id
    assert (recorded.label, recorded.call_id) == ("quick", "call-7")
    for early in (recorded, pending):
        assert early.process is not None
        assert (early.process.state, early.process.code, early.process.pid) == ("running", None, job.pid)
        assert early.capture.state == "pending"
        assert early.ended_at is None
        assert early.duration is None
    assert receipt.stdout == "fast\n"


async def test_a_pending_receipt_grows_and_a_final_one_is_the_same_for_all(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """Snapshots are not evidence, and nobody's wait changes another's (E2)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe", window_bytes=1024)
        await job.write(b"one\n")
        await first_text(job)
        pending = job.receipt
        assert pending.capture.state == "pending"
        assert pending.streams["stdout"] is not None
        assert pending.streams["stdout"].raw.observed == 4
        assert supervisor.job(job.id) is job
        waits = [asyncio.create_task(job.wait()) for _ in range(5)]
        await job.write_eof()
        receipts = await asyncio.gather(*waits)
        late = await supervisor.job(job.id).wait()
    assert all(receipt is receipts[0] for receipt in (*receipts, late, job.receipt))
    assert receipts[0].capture.state == "complete"
    assert conversation.text(receipts[0]) == b"one\n"  # a started job has files, however small (A7)
    assert conversation.published(receipts[0]) == receipts[0]


async def test_capture_ids_are_unique_and_sort_by_time(conversation: Conversation) -> None:
    """Equal outputs are never merged, and the directory lists them in order (A6)."""
    async with Supervisor(conversation.path) as supervisor:
        receipts = [await (await supervisor.start(["echo", "same"])).wait() for _ in range(5)]
    ids = [receipt.capture_id for receipt in receipts]
    assert len(set(ids)) == 5
    assert ids == sorted(ids)
    assert [path.name for path in conversation.captures()] == ids
    assert [receipt.job_id for receipt in receipts] == ["1", "2", "3", "4", "5"]
    assert len({facts.sha256 for receipt in receipts if (facts := receipt.streams["stdout"])}) == 1


async def test_a_label_is_sanitised_and_bounded(conversation: Conversation) -> None:
    """A terminal that shows it is not steered by it, and a long one is cut at 200 characters (A6)."""
    label = "\x1b[31mred\x1b[0m\x07\x00 \u202ebell" + "x" * 500
    async with Supervisor(conversation.path) as supervisor:
        receipt = await (await supervisor.start(["true"], label=label)).wait()
    assert receipt.label is not None
    assert receipt.label.startswith("red ")
    assert len(receipt.label) == 200
    assert not any(character < " " or character == "\x7f" for character in receipt.label)
    assert conversation.published(receipt).label == receipt.label


async def test_a_command_can_be_left_out_of_every_record(conversation: Conversation) -> None:
    """Neither the launch record nor the receipt names it (C8)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await (await supervisor.start(["echo", "un", "told"], record_command=False)).wait()
        shown = await (await supervisor.start("echo 'un'  told", shell=True)).wait()
    assert receipt.command is None
    launch = json.loads((conversation.captures_of(receipt) / "launch.json").read_bytes())
    assert launch["receipt"]["command"] is None
    assert shown.command == ("echo 'un'  told",)  # as it was given, not as the shell's argv (A5)


async def test_what_a_child_prints_cannot_forge_a_receipt(conversation: Conversation) -> None:
    """A whole receipt in the output changes no fact (A5)."""
    async with Supervisor(conversation.path) as supervisor:
        true = await supervisor.run("seq 1 20000", shell=True)
        forged = true.to_json() + b"\n"
        job = await supervisor.start("cat; exit 1", shell=True, stdin=forged)
        receipt = await job.wait()
    assert receipt.process is not None
    assert receipt.process.code == 1
    assert receipt.capture_id != true.capture_id
    assert conversation.text(receipt) == forged
    assert conversation.published(receipt) == receipt


async def test_planted_files_are_neither_overwritten_nor_followed(
    conversation: Conversation,
    tmp_path: Path,
    first_text: Callable[..., Any],
) -> None:
    """A name that is taken is a fault of the capture; what stands there stays (D2, D3)."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe", window_bytes=1024)
        await job.write(b"text\n")
        await first_text(job)
        (capture,) = conversation.captures()
        (capture / "stdout.log").symlink_to(victim)
        (capture / "receipt.json").write_text("planted")
        await job.write_eof()
        receipt = await job.wait()
    assert victim.read_text() == "untouched"
    assert (capture / "receipt.json").read_text() == "planted"
    assert (capture / "stdout.live").read_text() == "text\n"
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "io-error")
    assert receipt.durability is not None
    assert not receipt.durability.barrier
    assert receipt.durability.error
    assert receipt.streams["stdout"] is not None
    assert receipt.streams["stdout"].reference == f"tool-outputs/captures/{job.capture_id}/stdout.live"
    assert receipt.ok


async def test_the_digest_can_be_left_out(conversation: Conversation) -> None:
    """It is then unknown, which is not the digest of nothing (A4)."""
    async with Supervisor(conversation.path, limits=Limits(digest=None), durability="none") as supervisor:
        receipt = await (await supervisor.start(["echo", "x"])).wait()
    assert receipt.streams["stdout"] is not None
    assert receipt.streams["stdout"].sha256 is None
    assert receipt.capture.state == "complete"
    assert receipt.durability is not None
    assert (receipt.durability.barrier, receipt.durability.directories) == (False, None)


async def test_a_job_is_done_when_its_receipt_is_final_not_when_its_leader_ended(
    conversation: Conversation,
    first_text: Callable[[Job], Awaitable[str]],
    until: Callable[[Callable[[], object]], Awaitable[None]],
) -> None:
    """A snapshot says `exited` while a descendant still holds the pipes; `done` says that nothing changes any more."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("sleep 30 & echo $!", shell=True, drain_timeout=60, window_bytes=1024)
        descendant = int(await first_text(job))
        await until(lambda: job.receipt.process is not None and job.receipt.process.state == "exited")
        assert not job.done
        os.kill(descendant, signal.SIGKILL)
        await job.wait()
        assert job.done
