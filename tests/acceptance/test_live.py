"""Showing a job's text to a reader of any pace: what is kept is never missed, and nothing waits for it (B1, E1)."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import Limits, Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from supervisor import Job
    from supervisor.live import Shown
    from supervisor.storage import LocalStorage

FLOOD: Final = (sys.executable, str(Path(__file__).parents[1] / "programs" / "flood.py"))
LINES: Final = 2**17
TEXT: Final = b"".join(b"%07d\n" % number for number in range(LINES))
PATIENCE: Final = 30.0


async def flooding(supervisor: Supervisor, fifo: Path) -> Job:
    """Return a job that has printed all of `TEXT`, most of which has left the window, and ends with `drained`."""
    os.mkfifo(fifo)
    job = await supervisor.start([*FLOOD, str(LINES), str(fifo)], window_bytes=4096)
    while job._course.pumps["stdout"].stream.preview.total < len(TEXT):  # noqa: ASYNC110 - no event says it
        await asyncio.sleep(0)
    return job


async def drained(fifo: Path) -> None:
    """Let the flood end."""
    await asyncio.to_thread(fifo.read_bytes)


async def all_of(read: AsyncIterator[Shown]) -> list[Shown]:
    """Return all that is still shown."""
    return [shown async for shown in read]


def joined(shown: list[Shown]) -> bytes:
    """Return the text."""
    return b"".join(piece.text for piece in shown)


@pytest.mark.asyncio
async def test_a_reader_that_comes_late_gets_all_that_is_kept(tmp_path: Path) -> None:
    """From the file what fell out of the window, from the window the rest; also after the supervisor closed."""
    async with Supervisor(tmp_path, durability="none") as supervisor:
        job = await flooding(supervisor, tmp_path / "fifo")
        await drained(tmp_path / "fifo")
        await job.wait()
    shown = await all_of(job.live("stdout"))
    assert len(shown) > 2
    assert all(not piece.skipped for piece in shown)
    assert joined(shown) == TEXT


@pytest.mark.asyncio
async def test_beyond_a_limit_the_window_is_all_there_is(tmp_path: Path) -> None:
    """One gap, behind what was kept and before the window's text."""
    async with Supervisor(tmp_path, limits=Limits(job_bytes=2**19), durability="none") as supervisor:
        job = await flooding(supervisor, tmp_path / "fifo")
        await drained(tmp_path / "fifo")
        receipt = await job.wait()
    *kept, last = await all_of(job.live("stdout"))
    assert receipt.capture.reason == "job-limit"
    assert joined(kept) == TEXT[: receipt.streams["stdout"].committed]
    assert all(not piece.skipped for piece in kept)
    assert last.text == TEXT[len(joined(kept)) + last.skipped :]


@pytest.mark.asyncio
async def test_a_file_that_is_gone_makes_a_gap(tmp_path: Path) -> None:
    """The window's text is shown all the same: a storage fault is never raised here [D1]."""
    async with Supervisor(tmp_path, durability="none") as supervisor:
        job = await flooding(supervisor, tmp_path / "fifo")
        await drained(tmp_path / "fifo")
        await job.wait()
        (file,) = tmp_path.rglob("stdout.log")  # noqa: ASYNC240 - a test may block
        file.unlink()
        (only,) = await all_of(job.live("stdout"))
    assert only.text == TEXT[only.skipped :]


@pytest.mark.asyncio
async def test_text_on_its_way_to_the_disk_is_waited_for(tmp_path: Path, disk: Callable[..., LocalStorage]) -> None:
    """It fell out of the window before it was committed; a reader that is cancelled meanwhile has taken nothing."""
    go = threading.Event()

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        assert go.wait(PATIENCE)
        return os.writev(descriptor, buffers)

    async with Supervisor(tmp_path, storage=disk(write), durability="none") as supervisor:
        job = await flooding(supervisor, tmp_path / "fifo")
        reader = asyncio.ensure_future(anext(job.live("stdout")))
        await asyncio.sleep(0)
        assert not reader.done()
        reader.cancel()
        await asyncio.wait({reader})
        assert reader.cancelled()
        reading = asyncio.ensure_future(all_of(job.live("stdout")))
        go.set()
        await drained(tmp_path / "fifo")
        shown = await reading
    assert all(not piece.skipped for piece in shown)
    assert joined(shown) == TEXT


@pytest.mark.asyncio
@pytest.mark.realtime
async def test_a_disk_that_hangs_costs_a_gap_and_not_the_showing(
    tmp_path: Path, disk: Callable[..., LocalStorage]
) -> None:
    """After `stall_timeout` the newest text is shown, while the command still runs and nothing is committed [B4]."""
    go = threading.Event()

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        assert go.wait(PATIENCE)
        return os.writev(descriptor, buffers)

    limits = Limits(stall_timeout=0.3)
    async with Supervisor(tmp_path, storage=disk(write), limits=limits, durability="none") as supervisor:
        job = await flooding(supervisor, tmp_path / "fifo")
        first = await asyncio.wait_for(anext(job.live("stdout")), PATIENCE)
        assert job.receipt.process.state == "running"
        go.set()
        await drained(tmp_path / "fifo")
    assert first.skipped
    assert first.text == TEXT[first.skipped :]


@pytest.mark.asyncio
async def test_a_run_without_a_file_is_shown_from_its_window_alone(tmp_path: Path) -> None:
    """Nothing is waited for that may never be in a file; what is not in the window is counted."""
    async with Supervisor(tmp_path, durability="none") as supervisor:
        script = "echo one; read line; echo two; echo three"
        running = asyncio.ensure_future(supervisor.run(["sh", "-c", script], stdin=b"\n", window_bytes=1))
        while not supervisor.jobs:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0)
        (job,) = supervisor.jobs
        await running
        shown = await all_of(job.live("stdout"))
    assert sum(piece.skipped + len(piece.text) for piece in shown) == len("one\ntwo\nthree\n")
