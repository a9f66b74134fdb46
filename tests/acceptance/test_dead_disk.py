"""A file system call that never returns leaves the child, the loop, other jobs and the interpreter free (D8)."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Limits, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from conftest import Conversation as Seen

    from supervisor.storage import Storage

MIB: Final = 1024 * 1024


class DeadEnd:
    """A write that never comes back: it goes into a full pipe that nobody reads, until `free`."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        with suppress(BlockingIOError):
            while True:
                os.write(self._write, bytes(65536))
        os.set_blocking(self._write, True)
        self.entered = threading.Event()

    def __call__(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Block in the kernel; once freed, fail as a dead disk does."""
        del descriptor, buffers
        self.entered.set()
        with suppress(BrokenPipeError):
            os.write(self._write, b"x")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def free(self) -> None:
        """Let the blocked calls fail."""
        os.close(self._read)

    def close(self) -> None:
        """Close the pipe; nobody is in it any more."""
        os.close(self._write)


@pytest.fixture
def dead_end() -> Iterator[DeadEnd]:
    """Return a write that never comes back before the test's end."""
    end = DeadEnd()
    yield end
    end.free()
    for thread in threading.enumerate():
        if thread.name.startswith("spoolvisor-writer"):
            thread.join(5)
    end.close()


@pytest.mark.asyncio
async def test_a_disk_that_never_answers_frees_the_child_and_disturbs_nobody(
    conversation: Seen, disk: Callable[..., Storage], dead_end: DeadEnd, until: Callable[..., Any]
) -> None:
    """After `stall_timeout` persistence is given up; the other job's file is complete (B4, D8)."""
    storage = disk(dead_end, ("stdout.live",), most=1)
    limits = Limits(stall_timeout=0.3, queue_bytes=256 * 1024)
    async with asyncio.timeout(20), Supervisor(conversation.path, limits=limits, storage=storage) as supervisor:
        stuck = await supervisor.start("yes | head -c 20000000; echo END; exit 5", shell=True)
        await until(dead_end.entered.is_set)
        other = await (await supervisor.start("seq 1 50000; exit 6", shell=True)).wait()
        receipt = await stuck.wait()
    assert other.process is not None
    assert other.process.code == 6
    assert other.capture.state == "complete"
    assert conversation.published(other) == other
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code, receipt.process.reason) == ("exited", 5, None)
    assert receipt.capture.state in {"partial", "failed"}
    assert receipt.capture.reason in {"writer-stalled", "writer-stuck"}
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert facts.raw.observed == 20_000_004
    assert (facts.committed, facts.retained.end, facts.uncommitted) == (None, None, None)  # nobody can know (A4)
    assert receipt.stdout.endswith("END\n")
    assert receipt.durability is not None
    assert not receipt.durability.barrier


def test_an_interpreter_with_a_stuck_write_ends(
    conversation: Seen, host_program: Callable[..., list[str]], loop_module: str
) -> None:
    """Closing the supervisor and leaving the program wait for no call that never returns (D8)."""
    done = subprocess.run(
        host_program("stuck_host", loop_module, str(conversation.path)), check=True, capture_output=True, timeout=30
    )
    assert done.stderr == b""
    told = json.loads(done.stdout)
    assert told["code"] == 5
    assert told["reason"] in {"writer-stalled", "writer-stuck"}
    assert told["threads"] >= 1  # it really was still in the call


def test_a_frozen_file_system_frees_the_child_and_the_interpreter(
    mounted: Callable[..., Path], host_program: Callable[..., list[str]], tmp_path: Path, loop_module: str
) -> None:
    """The real thing: fsfreeze(8) on an ext4 of its own, thawed whatever happens."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    made = subprocess.run(["mkfs.ext4", "-q", image], check=False, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no ext4 here: {made.stderr.strip()}")
    place = mounted("-o", "loop", str(image))
    host = subprocess.Popen(
        host_program("frozen_host", loop_module, str(place)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    frozen = False
    try:
        assert host.stdin is not None
        assert host.stdout is not None
        assert host.stdout.readline() == "running\n"
        freeze = subprocess.run(["fsfreeze", "--freeze", place], check=False, capture_output=True, text=True)
        frozen = freeze.returncode == 0
        if not frozen:
            pytest.skip(f"freezing is not possible here: {freeze.stderr.strip()}")
        host.stdin.write("frozen\n")
        host.stdin.flush()
        told = json.loads(host.stdout.readline())
        # Its threads sit in the kernel until the thaw, so only what it says before its exit can be waited for here.
        assert told["code"] == 5
        assert told["reason"] in {"writer-stalled", "writer-stuck"}
        assert host.stdout.readline() == "closed\n"
    finally:
        if frozen:
            subprocess.run(["fsfreeze", "--unfreeze", place], check=True)
        try:
            host.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            host.kill()
            host.communicate()
            raise
    assert host.returncode == 0
