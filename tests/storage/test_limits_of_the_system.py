"""Real full disks and real limits, not injected ones [B5]."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import LocalStorage, SpoolFault

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).parent.parent / "programs" / "storage_limits.py"
KIB = 1024

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tmpfs and its reservations are Linux's")


@contextmanager
def tmpfs(where: Path, options: str) -> Iterator[Path]:
    """Mount a small file system of our own; it is unmounted whatever happens."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a tmpfs")
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "spoolvisor-test", str(where)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def run(*arguments: str) -> dict[str, Any]:
    """Run the program to its end and return what it saw."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.asyncio
async def test_full_disk_keeps_the_prefix_and_the_receipt(tmp_path: Path) -> None:
    """[B5, design decision 4] 1 MiB of disk keeps more than half as output, and the largest receipt fits."""
    with tmpfs(tmp_path / "disk", "size=1m") as disk:
        conversation = await LocalStorage().open(disk, limits=Limits(), durability="barrier")
        capture = await conversation.create_capture("one", ("stdout", "stderr"))
        await capture.record_launch(b"{}")
        written, fault = bytearray(), None
        while fault is None:
            chunk = bytes([len(written) // 3000 % 256]) * 3000
            written += chunk
            try:
                await capture.spools["stdout"].write([chunk])
            except SpoolFault as error:
                fault = error
        with pytest.raises(SpoolFault) as other:
            await capture.spools["stderr"].write([b"error\n"])
        sealed = await capture.seal()
        outcome = await capture.publish(b"r" * 64 * KIB)
        kept = (capture.path / "stdout.log").read_bytes()
        receipt = (capture.path / "receipt.json").read_bytes()
        with pytest.raises(StorageError) as next_one:
            await conversation.create_capture("two", ("stdout",))
        names = [path.name for path in capture.path.parent.iterdir()]
        await conversation.close()
    assert (fault.reason, fault.errno) == ("no-space", errno.ENOSPC)
    assert other.value.reason == "no-space"
    assert len(kept) >= 512 * KIB
    assert written.startswith(kept)
    assert sealed.streams["stdout"].size == len(kept)
    assert sealed.error is None
    assert outcome.durable
    assert receipt == b"r" * 64 * KIB
    assert next_one.value.reason == "no-space"
    assert names == ["one"]


@pytest.mark.asyncio
@pytest.mark.parametrize("options", ["size=48k", "size=1m,nr_inodes=8", "size=1m,nr_inodes=7", "size=1m,nr_inodes=6"])
async def test_capture_that_does_not_fit_leaves_nothing(tmp_path: Path, options: str) -> None:
    """[design decision 4] No room for the receipt or no inode for a stream: refused at once, the directory is gone."""
    with tmpfs(tmp_path / "disk", options) as disk:
        conversation = await LocalStorage().open(disk, limits=Limits(), durability="barrier")
        with pytest.raises(StorageError) as caught:
            await conversation.create_capture("one", ("stdout", "stderr"))
        names = list((disk / "tool-outputs" / "captures").iterdir())
        await conversation.close()
    assert (caught.value.reason, caught.value.errno) == ("no-space", errno.ENOSPC)
    assert names == []


@pytest.mark.asyncio
async def test_disk_without_room_for_the_owner_is_refused(tmp_path: Path) -> None:
    """Opening fails as a whole, typed, and leaves no owner's file that nobody holds."""
    with tmpfs(tmp_path / "disk", "size=1m,nr_inodes=4") as disk:
        with pytest.raises(StorageError) as caught:
            await LocalStorage().open(disk, limits=Limits(), durability="barrier")
        left = [path for path in disk.rglob("*") if not path.is_dir()]
    assert caught.value.reason == "no-space"
    assert left == []


def test_file_size_limit_is_a_boundary(tmp_path: Path) -> None:
    """RLIMIT_FSIZE: a true short write, then EFBIG; what is on disk is exactly the limit, and the receipt comes."""
    seen = run("filesize", str(tmp_path), "100000")
    assert seen == {"reason": "no-space", "errno": errno.EFBIG, "size": 100_000, "sealed": None, "published": True}
    captures = tmp_path / "tool-outputs" / "captures"
    assert (captures / "one" / "stdout.log").stat().st_size == 100_000
