"""Reports of what a restart believes: a pid that is somebody else's by now, a sidecar that is half there (D6)."""

# ruff: noqa: ASYNC220 - nothing else is on a test's loop
from __future__ import annotations

import errno
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Supervisor, list_captures, read_capture, recover
from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Conversation

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("locks", [True, False])
async def test_bug_066_a_pid_that_is_somebody_elses_by_now_is_left_alone(
    conversation: Conversation,
    leftover: Path,
    process_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    locks: bool,
) -> None:
    """BUG-066 (boxlite-ai/boxlite#1184): after a restart a stale pid is killed, by now a healthy program (D6, F3)."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if not locks:  # then pid, start time and boot decide who lives
        monkeypatch.setattr(Files, "lock", refuse)
    with subprocess.Popen(["sleep", "300"]) as stranger:
        record = json.loads((leftover / "launch.json").read_text())
        record["owner"]["pid"] = record["receipt"]["process"]["pid"] = stranger.pid
        (leftover / "launch.json").write_text(json.dumps(record))
        receipts = [*await list_captures(conversation.path), *await recover(conversation.path)]
        assert stranger.poll() is None
        stranger.kill()
    assert [(process_of(receipt).state, process_of(receipt).reason) for receipt in receipts] == [
        ("unknown", "status-lost")
    ] * 2
    assert {receipt.capture.reason for receipt in receipts} == {"supervisor-lost"}


@pytest.mark.parametrize("record", ["launch.json", "receipt.json"])
async def test_bug_121_half_a_sidecar_is_no_crash_and_no_success(
    conversation: Conversation, leftover: Path, record: str
) -> None:
    """BUG-121 (crash-consistency class): it is taken as valid (D3, D6)."""
    whole = (leftover / "launch.json").read_bytes()
    (leftover / record).write_bytes(whole[: len(whole) // 2])
    (leftover / record).chmod(0o600)
    (listed,) = await list_captures(conversation.path)
    (receipt,) = await recover(conversation.path)
    assert (listed.capture.state, receipt.capture.state) == ("partial", "partial")
    assert receipt.capture.reason == "supervisor-lost"
    assert not receipt.ok
    page = await read_capture(conversation.path, receipt.capture_id)
    assert (page.text, page.state) == ("begin\n", "partial")


async def test_bug_121_nothing_beyond_the_committed_length_is_read(conversation: Conversation) -> None:
    """BUG-121 (crash-consistency class): garbage after it is text (D6)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo durable; exit 1", shell=True)
    with (conversation.captures_of(receipt) / "stdout.log").open("ab") as log:
        log.write(b"garbage\n")
    assert await recover(conversation.path) == []
    page = await read_capture(conversation.path, receipt.capture_id)
    assert (page.text, page.eof, page.cursor.offset) == ("durable\n", True, 8)
