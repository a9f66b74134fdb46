"""A disk that is full, slow, failing or gone costs the capture, never the command (B4, B5, D1)."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Limits, Supervisor
from supervisor.process import spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Conversation as Seen

    from supervisor.process import Child, Launch
    from supervisor.storage import Storage

MIB: Final = 1024 * 1024
NOISE: Final = "yes | head -c 3000000; echo END; echo oops >&2; exit 5"


class AtOnce(asyncio.SubprocessProtocol):
    """Holds back all that a transport says, and passes it on in one turn of the loop: the burst of a fast child."""

    def __init__(self, inner: asyncio.SubprocessProtocol) -> None:
        self._inner = inner
        self._held: list[Callable[[], None]] = []
        self._missing = 3

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Hold it back."""
        self._held.append(lambda: self._inner.pipe_data_received(fd, data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Hold it back, unless it was the last event."""
        self._held.append(lambda: self._inner.pipe_connection_lost(fd, exc))
        self._pass_on()

    def process_exited(self) -> None:
        """Hold it back, unless it was the last event."""
        self._held.append(self._inner.process_exited)
        self._pass_on()

    def _pass_on(self) -> None:
        self._missing -= 1
        if not self._missing:
            for event in self._held:
                event()


def fill(path: Path) -> None:
    """Write into a file until the disk takes no more byte."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.fixture
def small_disk(mounted: Callable[..., Path], conversation: Seen) -> Seen:
    """Return a conversation on a disk of its own of 1 MiB."""
    return type(conversation)(mounted("-t", "tmpfs", "-o", "size=1m,mode=0700", "spoolvisor-test"))


@pytest.mark.asyncio
@pytest.mark.parametrize("foreground", [True, False])
async def test_a_disk_that_fills_keeps_the_prefix_the_code_and_a_receipt(small_disk: Seen, foreground: bool) -> None:  # noqa: FBT001
    """The receipt's room was reserved before the first byte (B5, design 4)."""
    async with Supervisor(small_disk.path) as supervisor:
        if foreground:
            receipt = await supervisor.run(NOISE, shell=True)
        else:
            receipt = await (await supervisor.start(NOISE, shell=True)).wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 5)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")
    kept = small_disk.text(receipt)
    assert len(kept) >= MIB // 2
    assert set(kept) == set(b"y\n")
    assert receipt.stdout.endswith("END\n")
    assert receipt.stderr == "oops\n"
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert facts.raw.observed == 3_000_004 == (facts.raw.accepted or 0) + (facts.raw.discarded or 0)
    assert facts.uncommitted == 3_000_004 - len(kept)
    assert (small_disk.captures_of(receipt) / "receipt.json").read_bytes() == receipt.to_json()


@pytest.mark.asyncio
async def test_on_a_disk_that_is_full_already_the_command_runs(small_disk: Seen) -> None:
    """There is no room for a receipt, so nothing is promised (D2); once there is, captures are made again."""
    async with Supervisor(small_disk.path) as supervisor:
        filler = small_disk.path / "filler"
        fill(filler)
        job = await supervisor.start(NOISE, shell=True)
        started = await job.wait()
        run = await supervisor.run(NOISE, shell=True)
        assert small_disk.captures() == []
        filler.unlink()
        again = await supervisor.run("echo back; exit 1", shell=True)
    for receipt in (started, run):
        assert receipt.process is not None
        assert receipt.process.code == 5
        assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "no-space")
        assert receipt.stderr == "oops\n"
    assert again.capture.state == "complete"
    assert small_disk.text(again) == b"back\n"


@pytest.mark.asyncio
async def test_a_full_disk_at_the_opening_is_no_error(small_disk: Seen) -> None:
    """The supervisor works without its conversation, and receipts say why."""
    fill(small_disk.path / "filler")
    async with Supervisor(small_disk.path) as supervisor:
        receipt = await supervisor.run(NOISE, shell=True)
    assert receipt.process is not None
    assert receipt.process.code == 5
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "no-space")


@pytest.mark.asyncio
async def test_a_disk_that_answers_late_loses_nothing(conversation: Seen, disk: Callable[..., Storage]) -> None:
    """A pause shorter than `stall_timeout` only slows the child (B4)."""
    never = threading.Event()

    def write_slowly(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        never.wait(0.02)
        return os.writev(descriptor, buffers)

    limits = Limits(stall_timeout=5, queue_bytes=256 * 1024)
    async with Supervisor(conversation.path, limits=limits, storage=disk(write_slowly)) as supervisor:
        receipt = await supervisor.run("yes | head -c 6000000; exit 1", shell=True)
    assert receipt.capture.state == "complete"
    assert len(conversation.text(receipt)) == 6_000_000


@pytest.mark.asyncio
async def test_a_last_write_that_is_still_out_at_the_end_loses_nothing(
    conversation: Seen, disk: Callable[..., Storage]
) -> None:
    """That the output has ended is no stall: a write has all of `stall_timeout` to come back (B4, B5)."""
    never = threading.Event()

    def write_slowly(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        never.wait(0.1)
        return os.writev(descriptor, buffers)

    async def spawn_at_once(protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        return await spawn(AtOnce(protocol), launch)

    async with Supervisor(conversation.path, storage=disk(write_slowly), spawn=spawn_at_once) as supervisor:
        job = await supervisor.start("head -c 900000 /dev/zero | tr '\\0' x; exit 1", shell=True)
        receipt = await job.wait()
    assert (receipt.capture.state, receipt.capture.reason) == ("complete", None)
    assert conversation.text(receipt) == b"x" * 900_000


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EIO, "io-error"),
        (errno.EDQUOT, "no-space"),
        (errno.ENOSPC, "no-space"),
        (errno.EFBIG, "no-space"),
        (errno.EMFILE, "io-error"),
    ],
)
async def test_a_failing_write_ends_persistence_at_an_exact_boundary(
    conversation: Seen, disk: Callable[..., Storage], number: int, reason: str
) -> None:
    """A short write comes first, as a disk that fills gives it; what it took is kept and counted (B5)."""
    calls = 0

    def write_once_in_part(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(number, os.strerror(number))
        return os.write(descriptor, memoryview(buffers[0])[:1001])

    storage = disk(write_once_in_part, ("stdout.live",))
    async with Supervisor(conversation.path, storage=storage) as supervisor:
        receipt = await (await supervisor.start(NOISE, shell=True)).wait()
    assert receipt.process is not None
    assert receipt.process.code == 5
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", reason)
    assert len(conversation.text(receipt)) == 1001
    assert conversation.text(receipt, "stderr") == b"oops\n"
    assert receipt.stdout.endswith("END\n")
    assert conversation.published(receipt) == receipt


@pytest.mark.asyncio
async def test_a_directory_that_vanishes_costs_the_capture_only(
    conversation: Seen, first_text: Callable[..., Any]
) -> None:
    """The child lives, and its receipt comes from memory (D1)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe", window_bytes=1024)
        await job.write(b"one\n")
        await first_text(job)
        shutil.rmtree(conversation.path / "tool-outputs")
        await job.write(b"two\n")
        await job.write_eof()
        receipt = await job.wait()
        after = await supervisor.run("echo three; exit 1", shell=True)
    assert receipt.ok
    assert receipt.stdout == "one\ntwo\n"
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "io-error")
    assert receipt.durability is not None
    assert receipt.durability.error
    assert after.process is not None
    assert after.process.code == 1
    assert after.capture.state == "unavailable"
    assert conversation.files() == set()
