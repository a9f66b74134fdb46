"""A disk that fails when it is told to: each fault is the one that was asked for, and nothing else is touched."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Limits, Supervisor
from supervisor.testing import FailingStorage, FakeChild, VirtualClock, assert_no_leaks, assert_receipt

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor import Receipt
    from supervisor.sansio.words import CaptureState
    from supervisor.testing.failing_storage import Step

pytestmark = pytest.mark.asyncio


async def told(place: Path, disk: FailingStorage, text: bytes = b"0123456789", **options: Any) -> Receipt:  # noqa: ANN401
    """Return the receipt of a command that prints `text` onto that disk."""
    child = FakeChild()
    async with Supervisor(place, spawn=child.spawn, storage=disk, **options) as supervisor:
        job = await supervisor.start(["x"])
        await child.feed(text)
        child.exit(0)
        return await job.wait()


def on_disk(place: Path) -> dict[str, bytes]:
    """Return the files of the one capture."""
    (capture,) = (place / "tool-outputs" / "captures").iterdir()
    return {path.name: path.read_bytes() for path in capture.iterdir()}


async def test_without_a_fault_it_is_an_ordinary_disk(tmp_path: Path) -> None:
    """And it counts what it takes."""
    disk = FailingStorage()
    assert_receipt(await told(tmp_path, disk), code=0, capture="complete", barrier=True)
    assert disk.written == 10
    assert on_disk(tmp_path)["stdout.log"] == b"0123456789"


@pytest.mark.parametrize("room", [0, 4, 9])
async def test_a_full_disk_keeps_what_fitted(tmp_path: Path, room: int) -> None:
    """The write across the border is cut, the receipt has its room, and the command goes on [B5, D4]."""
    disk = FailingStorage()
    disk.fill_after(room)
    receipt = await told(tmp_path, disk)
    assert_receipt(receipt, code=0, capture="partial", capture_reason="no-space", stdout="0123456789")
    files = on_disk(tmp_path)
    assert files["stdout.log"] == b"0123456789"[:room]
    assert "receipt.json" in files
    assert receipt.streams["stdout"] is not None
    assert receipt.streams["stdout"].committed == room == disk.written


async def test_a_full_disk_can_give_another_number(tmp_path: Path) -> None:
    """EIO is no lack of room."""
    disk = FailingStorage()
    disk.fill_after(3, number=errno.EIO)
    assert_receipt(await told(tmp_path, disk), capture="partial", capture_reason="io-error")


async def test_short_writes_lose_nothing(tmp_path: Path) -> None:
    """One byte at a time is slow, and complete (write(2))."""
    disk = FailingStorage()
    disk.write_short(1)
    assert_receipt(await told(tmp_path, disk), capture="complete")
    assert on_disk(tmp_path)["stdout.log"] == b"0123456789"


@pytest.mark.parametrize(
    ("step", "capture", "error"),
    [
        ("text", "partial", "syncing stdout.live"),
        ("receipt", "complete", "publishing the receipt"),
        ("directory", "partial", "directories"),
    ],
)
async def test_a_failed_sync_is_never_a_durable_completion(
    tmp_path: Path,
    step: Step,
    capture: CaptureState,
    error: str,
) -> None:
    """Whichever sync it was, no barrier stands behind the receipt [D4]."""
    disk = FailingStorage()
    disk.fail_sync(step)
    receipt = await told(tmp_path, disk)
    assert_receipt(receipt, code=0, capture=capture, barrier=False)
    assert receipt.durability is not None
    assert error in (receipt.durability.error or "")
    other = FailingStorage()
    other.fail_sync(step)
    assert_receipt(await told(tmp_path, other, durability="none"), capture="complete")


async def test_a_write_that_never_returns_is_given_up_and_its_thread_let_go(tmp_path: Path) -> None:
    """Until `release` it hangs; the job ends without it, and afterwards nothing is left [D8]."""
    async with assert_no_leaks():
        clock, disk, child = VirtualClock(), FailingStorage(), FakeChild()
        assert not disk.holding
        disk.hold_writes()
        async with Supervisor(tmp_path, spawn=child.spawn, storage=disk, clock=clock) as supervisor:
            job = await supervisor.start(["x"])
            await child.feed(b"abc\n")
            child.exit(0)
            async with clock.jumping():
                assert_receipt(await job.wait(), code=0, capture="failed", capture_reason="writer-stuck")
            assert disk.holding
            assert disk.written == 0
            disk.release()
            disk.release()


async def test_a_write_that_was_held_and_let_go_in_time_is_complete(tmp_path: Path) -> None:
    """The gate can be shut and opened in the middle of a job."""
    disk, child = FailingStorage(), FakeChild()
    async with Supervisor(tmp_path, spawn=child.spawn, storage=disk, durability="none") as supervisor:
        job = await supervisor.start(["x"])
        disk.hold_writes()
        await child.feed(b"abc\n")
        child.exit(0)
        async with asyncio.timeout(10):
            while not disk.holding:  # noqa: ASYNC110 - a thread gets there
                await asyncio.sleep(0.001)
        disk.release()
        assert_receipt(await job.wait(), capture="complete", stdout="abc\n")


async def test_a_slow_disk_is_slow(tmp_path: Path) -> None:
    """Past the patience with it persistence is given up, though each write came back in the end [B4]."""
    disk = FailingStorage()
    disk.write_slowly(0.2)
    limits = Limits(stall_timeout=0.02)
    receipt = await told(tmp_path, disk, limits=limits, durability="none")
    assert_receipt(receipt, code=0, stdout="0123456789")
    assert receipt.capture.reason in {"writer-stalled", "writer-stuck"}, "the second if it came back later still"


async def test_faults_that_mean_nothing_are_refused() -> None:
    """Where they are set."""
    with pytest.raises(ValueError, match="no room"):
        FailingStorage().fill_after(-1)
    with pytest.raises(ValueError, match="at least a byte"):
        FailingStorage().write_short(0)
