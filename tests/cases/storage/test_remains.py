"""What is taken for whole or for alive, and what only looks like it (D6)."""

# ruff: noqa: ANN401, ASYNC220, ASYNC240 - fixtures hand out classes of conftest.py; nothing else is on a test's loop
from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Receipt, StorageError, Supervisor, list_captures, read_capture, recover, share_capture
from supervisor.storage import Files, LocalStorage, find_captures, owners, visiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 30.0


@pytest.mark.parametrize("left", [b"", bytes(4096)])
async def test_h6_007_a_file_without_its_content_is_relied_upon_by_nobody(
    conversation: Conversation, journal: Any, leftover: Path, left: bytes
) -> None:
    """H6-007 (wiredtiger/wiredtiger#1717): a log file was made, its header not synced; a crash left it empty."""
    (leftover / "receipt.json").write_bytes(left)
    (leftover / "receipt.json").chmod(0o600)
    (receipt,) = await recover(conversation.path)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "supervisor-lost")
    assert Receipt.parse((leftover / "receipt.json").read_bytes()).capture.state == "partial"
    async with Supervisor(conversation.path, storage=LocalStorage(journal)) as supervisor:
        job = await supervisor.start(["true"])
        await job.wait()
        async for completion in supervisor.completions():
            if completion.receipt.capture_id != job.capture_id:
                continue  # the leftover's, of a supervisor before this one
            made, named = journal.position("create", "delivered", last=True), ("sync_directory", job.capture_id)
            assert made < journal.position(*named, last=True)
            assert journal.position("write", "delivered", last=True) < journal.position(
                "sync_file", "delivered", last=True
            )
            break


async def test_h6_012_zeros_where_text_was_are_never_given_as_text(conversation: Conversation, tmp_path: Path) -> None:
    """H6-012 (marmos91/dittofs#1909): the size was on the disk and the data not: a range was read as zeros."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("seq 1 20000; exit 1", shell=True)
    text = conversation.text(receipt)
    with (conversation.captures_of(receipt) / "stdout.log").open("r+b") as file:
        file.seek(8192)
        file.write(bytes(4096))
    page = await read_capture(conversation.path, receipt.capture_id, max_bytes=65_536)
    assert (page.text.encode(), page.eof) == (text[:8192], False)
    with pytest.raises(StorageError) as caught:
        await read_capture(conversation.path, receipt.capture_id, cursor=page.cursor)
    assert caught.value.reason == "io-error"
    after = page.cursor.at(8192 + 4096)
    assert (await read_capture(conversation.path, receipt.capture_id, cursor=after)).text.encode() in text
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    shared = await share_capture(conversation.path, receipt.capture_id, other)
    facts = shared.streams["stdout"]
    assert facts is not None
    assert facts.access == "unavailable"  # its digest is not that of the receipt


async def test_h6_067_a_fork_neither_ends_nor_prolongs_its_parents_ownership(
    conversation: Conversation, host_program: Callable[..., list[str]], until: Callable[..., Any]
) -> None:
    """H6-067 (tox-dev/filelock#634): a forked child let go of its parent's lock, and a contender took it."""
    command = host_program("forking_host", str(conversation.path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        fork = Path("/proc") / process.stdout.readline().strip()
        assert [receipt.capture.state for receipt in await list_captures(conversation.path)] == ["pending"]
        assert await recover(conversation.path) == []
        process.kill()
        process.wait()
        assert "S (sleeping)" in (fork / "status").read_text()
        (receipt,) = await recover(conversation.path)
        assert (receipt.capture.state, receipt.capture.reason) == ("partial", "supervisor-lost")
        assert conversation.text(receipt) == b"begin\n"
    await until(lambda: not (fork / "exe").exists())


class WithoutLocks(Files):
    """A file system that cannot lock."""

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Refuse."""
        del descriptor, exclusive, wait
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


async def test_h6_071_who_lives_is_told_by_ticks_after_boot_and_not_by_a_clock(
    conversation: Conversation, host_program: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """H6-071 (jgravelle/jcodemunch-mcp#451): start times were made times of day; after a clock step all looked dead."""
    asked: set[str] = set()

    def read(path: str) -> str | None:
        asked.add(path)
        return Path(path).read_text().strip()

    async def state() -> str:
        files = WithoutLocks()
        async with visiting(files, conversation.path) as visit:
            assert visit is not None
            (found,) = find_captures(files, visit.rooms)
        return found.state

    command = host_program("capture_host", "asyncio", str(conversation.path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        launch = conversation.path / "tool-outputs" / "captures" / process.stdout.readline().strip() / "launch.json"
        record = json.loads(launch.read_text())
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        assert record["owner"]["start_time"] == int(ticks)
        monkeypatch.setattr(owners, "_read", read)
        now = time.time()
        for step in (0, 86_400, -86_400):
            monkeypatch.setattr(time, "time", lambda step=step: now + step)
            assert await state() == "live"
        assert {Path(path).name for path in asked} == {"boot_id", "stat"}
        assert "/proc/stat" not in asked  # where the time of the boot is
        record["owner"]["start_time"] += 1
        launch.write_text(json.dumps(record))
        assert await state() == "left"
        process.kill()
