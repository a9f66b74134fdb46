"""A follower of another process's capture is woken by what happens to its files (E4)."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

import pytest

from supervisor.errors import UnknownCapture
from supervisor.storage import Files, Watch, open_watch, watching
from supervisor.storage.faults import UnsafeDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CAPTURE: Final = "20260101T000000000000Z-" + "0" * 32
NEVER: Final = 1000.0
"""Seconds that no test waits: whoever is not woken hits the patience below."""
PATIENCE: Final = 30.0


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Return the directory of a capture with one live file."""
    capture = tmp_path / "tool-outputs" / "captures" / CAPTURE
    capture.mkdir(parents=True)
    for directory in (capture, capture.parent):
        directory.chmod(0o700)
    (capture / "stdout.live").touch(mode=0o600)
    return capture


def watched(conversation: Path) -> Watch:
    """Return a watch on the capture, where there is inotify."""
    number = open_watch(Files(), conversation, CAPTURE)
    if number is None:
        pytest.skip("no inotify here")
    return Watch(number)


def grow(capture: Path) -> None:
    """Let the live file grow."""
    live = capture / "stdout.live"
    os.truncate(live, live.stat().st_size + 1)  # not a write: a descriptor's closing would be an event of its own


def let_go(capture: Path) -> None:
    """Close the live file without a write, as the kernel does for an owner that died."""
    os.close(os.open(capture / "stdout.live", os.O_WRONLY))


def finish(capture: Path) -> None:
    """Give the live file its final name."""
    (capture / "stdout.live").rename(capture / "stdout.log")


def publish(capture: Path) -> None:
    """Make a file."""
    (capture / "receipt.json").touch()


def remove(capture: Path) -> None:
    """Remove the live file."""
    (capture / "stdout.live").unlink()


@pytest.mark.parametrize("happen", [grow, let_go, finish, publish, remove])
@pytest.mark.asyncio
async def test_what_happens_to_the_files_wakes(capture: Path, tmp_path: Path, happen: Callable[[Path], None]) -> None:
    """Growth, an owner that let go, a final name, a receipt, a removal: each at once, without a timer."""
    watch = watched(tmp_path)
    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.ensure_future(watch.wait(NEVER))
        await asyncio.sleep(0)
        assert not waiting.done()
        happen(capture)
        await waiting
    watch.close()


@pytest.mark.asyncio
async def test_what_happened_since_the_drain_is_not_missed(capture: Path, tmp_path: Path) -> None:
    """Between a look and the wait for what comes after it there is no gap; what was drained wakes nobody."""
    watch = watched(tmp_path)
    number = watch._number
    assert number is not None
    watch.drain()
    grow(capture)
    async with asyncio.timeout(PATIENCE):
        await watch.wait(NEVER)
        watch.drain()
        waiting = asyncio.ensure_future(watch.wait(NEVER))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert not asyncio.get_running_loop().remove_reader(number), "the cancelled wait left its reader"
        grow(capture)
        await watch.wait(NEVER)
        assert not asyncio.get_running_loop().remove_reader(number)
    watch.close()
    watch.close()


@pytest.mark.asyncio
async def test_without_inotify_the_wait_is_bounded(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such call, no instance left, no watch left: the follower's own deadline wakes it, and nothing stays open."""
    assert capture.is_dir()  # noqa: ASYNC240 - nothing else is on this test's loop
    for name, call in (("_start", None), ("_add", None), ("_start", lambda _: -1), ("_add", lambda *_: -1)):
        with monkeypatch.context() as patch:
            patch.setattr(watching, name, call)
            assert open_watch(Files(), tmp_path, CAPTURE) is None
    watch = Watch(None)
    watch.drain()
    async with asyncio.timeout(PATIENCE):
        await watch.wait(0.001)
    watch.close()


def test_only_a_capture_that_is_there_is_watched(capture: Path, tmp_path: Path) -> None:
    """The directory is opened as for reading."""
    with pytest.raises(UnknownCapture):
        open_watch(Files(), tmp_path, CAPTURE[:-1] + "1")
    capture.chmod(0o755)
    with pytest.raises(UnsafeDirectoryError):
        open_watch(Files(), tmp_path, CAPTURE)
