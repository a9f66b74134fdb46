"""Calls that never return, or far too late [D8]: the loop, all others and the interpreter's end are free."""

# ruff: noqa: ANN401 - nothing else is on a test's loop; fixtures hand out classes
from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import Capture, Conversation, LocalStorage, SpoolFault

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = Path(__file__).parent.parent / "programs" / "storage_limits.py"
PATIENCE = 20.0
LIMITS = Limits(stall_timeout=0.4)
STREAMS = ("stdout", "stderr")

pytestmark = pytest.mark.realtime


async def stuck_capture(files: Any, directory: Path) -> tuple[Conversation, Capture]:
    """Return a capture whose stdout has a write that does not return, given up by its caller."""
    conversation = await LocalStorage(files).open(directory, limits=LIMITS, durability="barrier")
    capture = await conversation.create_capture("one", STREAMS)
    return conversation, capture


class Armed:
    """Files that are stuck in one call from `arm` on; before it, and after `free`, they work."""

    def __init__(self, stuck_files: Callable[[str], Any], name: str) -> None:
        self.files = stuck_files("nothing")
        self.name = name

    def arm(self) -> None:
        """Let the next call of the name block."""
        self.files._name = self.name

    async def entered(self) -> None:
        """Return when a call is blocked."""
        assert await asyncio.to_thread(self.files.entered.wait, PATIENCE)


@pytest.fixture
def armed(stuck_files: Callable[[str], Any], request: pytest.FixtureRequest) -> Any:
    """Files that can be made to hang in the call that the test names."""
    return Armed(stuck_files, request.param)


@pytest.mark.asyncio
@pytest.mark.parametrize("armed", ["write"], indirect=True)
async def test_stuck_write_is_given_up_and_its_end_still_counted(tmp_path: Path, armed: Armed) -> None:
    """[B4] `outstanding` until it comes back; then `size` has what it kept, and nothing more is written."""
    conversation, capture = await stuck_capture(armed.files, tmp_path)
    spool = capture.spools["stdout"]
    await spool.write([b"before\n"])
    armed.arm()
    writing = asyncio.create_task(spool.write([b"first" * 100_000, b"never written"]))
    await armed.entered()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert spool.outstanding
    assert spool.size == 7
    assert spool.hexdigest() is None
    with pytest.raises(AssertionError):
        await spool.write([b"two at a time"])
    spool.abandon()
    flight = spool._flight
    assert flight is not None
    armed.files.free()
    with pytest.raises(SpoolFault) as caught:
        await asyncio.wrap_future(flight)
    assert caught.value.reason == "writer-stalled"
    assert not spool.outstanding
    assert spool.size == 7 + 256 * 1024
    assert spool.path.stat().st_size == spool.size
    with pytest.raises(SpoolFault):
        await spool.write([b"more"])
    sealed = await capture.seal()
    assert sealed.streams["stdout"].size == spool.size
    assert sealed.streams["stdout"].fault is None
    await conversation.close()
    armed.files.close_pipe()


@pytest.mark.asyncio
@pytest.mark.parametrize("armed", ["write"], indirect=True)
@pytest.mark.parametrize("abandoned", [True, False])
async def test_outstanding_write_is_sealed_as_unknown(
    tmp_path: Path, armed: Armed, descriptors: Callable[[], dict[str, str]], *, abandoned: bool
) -> None:
    """[A4, D8] No size, no digest, the live name; the other stream is whole. Its late end finds its own file."""
    before = descriptors()
    conversation, capture = await stuck_capture(armed.files, tmp_path)
    spool = capture.spools["stdout"]
    await capture.spools["stderr"].write([b"error\n"])
    armed.arm()
    writing = asyncio.create_task(spool.write([b"text"]))
    await armed.entered()
    if abandoned:
        spool.abandon()
    sealed = await capture.seal()
    stream = sealed.streams["stdout"]
    assert (stream.name, stream.size, stream.digest) == ("stdout.live", None, None)
    assert stream.fault is not None
    assert stream.fault.reason == "writer-stuck"
    assert sealed.streams["stderr"].name == "stderr.log"
    assert sealed.streams["stderr"].fault is None
    assert not sealed.barrier
    await capture.close()
    other = await conversation.create_capture("two", STREAMS)
    assert await other.discard() is None
    await conversation.close()
    held = [target for target in descriptors().values() if target.startswith(str(tmp_path))]
    assert held == [str(spool.path)]
    armed.files.free()
    await asyncio.wait({writing}, timeout=PATIENCE)
    armed.files.close_pipe()
    assert spool.path.read_bytes() == b"text"
    assert spool.size == 4
    assert [target for target in descriptors().values() if target not in before.values()] == []


@pytest.mark.asyncio
@pytest.mark.parametrize("armed", ["sync_file", "sync_directory", "rename_exclusive"], indirect=True)
async def test_stuck_barrier_is_typed_and_publishes_nothing_later(tmp_path: Path, armed: Armed) -> None:
    """[D8] Every stream is `writer-stuck`, its boundary unknown; a late call changes no further name."""
    conversation, capture = await stuck_capture(armed.files, tmp_path)
    armed.arm()
    sealed = await capture.seal()
    assert {stream.fault.reason for stream in sealed.streams.values() if stream.fault} == {"writer-stuck"}
    assert [stream.size for stream in sealed.streams.values()] == [None, None]
    assert not sealed.barrier
    assert sealed.directories is (True if armed.name == "sync_file" else None)
    outcome = await capture.publish(b"{}")
    assert (outcome.published, outcome.durable) == (False, False)
    assert outcome.error is not None
    threads = conversation._site.writers
    await conversation.close()
    armed.files.free()
    await gone(lambda: not threads.stuck)
    armed.files.close_pipe()
    names = {path.name for path in capture.path.iterdir()}
    assert "receipt.json" not in names
    if armed.name == "rename_exclusive":
        # The one call that hung has its effect; the next one was not made any more.
        assert names == {"stdout.log", "stderr.live", ".receipt.reserved"}


@pytest.mark.asyncio
@pytest.mark.parametrize(("armed", "published"), [("truncate", False), ("sync_directory", True)], indirect=["armed"])
async def test_stuck_publication_says_how_far_it_came(tmp_path: Path, armed: Armed, *, published: bool) -> None:
    """[D4, D8] The receipt has its name or never gets it; nothing is durable."""
    conversation, capture = await stuck_capture(armed.files, tmp_path)
    assert (await capture.seal()).barrier
    armed.arm()
    outcome = await capture.publish(b"{}")
    threads = conversation._site.writers
    await conversation.close()
    armed.files.free()
    await gone(lambda: not threads.stuck)
    armed.files.close_pipe()
    assert (outcome.published, outcome.durable) == (published, False)
    assert outcome.error is not None
    assert "did not return" in outcome.error
    assert (capture.path / "receipt.json").exists() == published


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["open_directory", "make_directory", "lock", "rename_exclusive"])
async def test_stuck_opening_is_typed(
    tmp_path: Path, stuck_files: Callable[[str], Any], descriptors: Callable[[], dict[str, str]], name: str
) -> None:
    """[D8] Opening has the same deadline as writing; what comes back late is closed and removed again."""
    before = descriptors()
    files = stuck_files(name)
    with pytest.raises(StorageError) as caught:
        await LocalStorage(files).open(tmp_path, limits=LIMITS, durability="barrier")
    assert caught.value.reason == "writer-stuck"
    files.free()
    await gone(lambda: len(descriptors()) == len(before) + 1)
    files.close_pipe()
    state = tmp_path / "tool-outputs" / ".supervisor"
    assert not state.exists() or list(state.iterdir()) == []


async def gone(done: Callable[[], bool]) -> None:
    """Return when it is so; the loop turns meanwhile."""
    async with asyncio.timeout(PATIENCE):
        while not done():
            await asyncio.to_thread(done)


@pytest.mark.asyncio
@pytest.mark.parametrize("armed", ["make_directory", "reserve", "set_mode", "create"], indirect=True)
async def test_stuck_making_is_typed_and_leaves_no_capture(
    tmp_path: Path, armed: Armed, descriptors: Callable[[], dict[str, str]]
) -> None:
    """[D8] Capture is unavailable; what is made too late is removed by the thread that made it."""
    conversation = await LocalStorage(armed.files).open(tmp_path, limits=LIMITS, durability="barrier")
    armed.arm()
    before = descriptors()
    with pytest.raises(StorageError) as caught:
        await conversation.create_capture("one", STREAMS)
    assert caught.value.reason == "writer-stuck"
    armed.files.free()
    await gone(lambda: not conversation._site.writers.stuck)
    assert list((tmp_path / "tool-outputs" / "captures").iterdir()) == []
    assert len(descriptors()) == len(before) - 1
    await conversation.close()
    armed.files.close_pipe()


@pytest.mark.asyncio
@pytest.mark.parametrize("armed", ["rename_exclusive"], indirect=True)
async def test_stuck_launch_record_is_typed(tmp_path: Path, armed: Armed) -> None:
    """[D8] The job goes on without it."""
    conversation, capture = await stuck_capture(armed.files, tmp_path)
    armed.arm()
    with pytest.raises(StorageError) as caught:
        await capture.record_launch(b"{}")
    assert caught.value.reason == "writer-stuck"
    armed.files.free()
    await gone(lambda: not conversation._site.writers.stuck)
    await conversation.close()
    armed.files.close_pipe()


@pytest.mark.parametrize(
    "call", ["open_directory", "reserve", "write", "sync_file", "sync_directory", "close", "unlink"]
)
def test_interpreter_ends_with_a_thread_that_hangs_for_ever(tmp_path: Path, call: str) -> None:
    """[D8] A real blocked read in a daemon thread: every step is typed and bounded, and the program ends."""
    tmp_path.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), "stuck", str(tmp_path), call],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    text = json.dumps(seen)
    if call != "unlink":  # only the clean end hangs there
        assert "writer-stuck" in text or "did not return" in text
    if call == "write":
        assert seen["open"] == "writer-stuck"
