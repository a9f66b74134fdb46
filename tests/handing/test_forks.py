"""A conversation that is copied with its live files, moved, or deleted under us [D1, D6]."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from supervisor import Receipt, Supervisor, list_captures, read_capture, recover, remove_captures
from supervisor.storage import Files, LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Talk

    from supervisor import Job
    from supervisor.sansio.receipt import StreamFacts


async def committed(job: Job, count: int) -> None:
    """Return when that many bytes of stdout are committed."""
    async for page in job.follow():
        if page.cursor.offset >= count:
            return


@pytest.mark.asyncio
async def test_a_fork_has_leftovers_and_the_original_goes_on(
    other: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]
) -> None:
    """In the copy, the owner's file is nobody's: its captures are partial, recovered, removed, as if it had died."""
    fork = tmp_path / "fork"
    async with Supervisor(other.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        await job.write(b"one\n")
        await committed(job, 4)
        shutil.copytree(other.path, fork)
        (there,) = await list_captures(fork)
        assert (there.capture.state, there.capture.reason) == ("partial", "supervisor-lost")
        (recovered,) = await recover(fork)
        assert facts(recovered).path == str(fork / str(facts(recovered).reference))
        assert (await read_capture(fork, job.capture_id)).text == "one\n"
        (here,) = await list_captures(other.path)
        assert here.capture.state == "pending"
        await remove_captures(fork, [job.capture_id])
        await job.write(b"two\n")
        await job.write_eof()
        receipt = await job.wait()
    assert (receipt.capture.state, await receipt.read_text("stdout")) == ("complete", "one\ntwo\n")
    assert await list_captures(other.path) == [receipt]
    assert await list_captures(fork) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("what", ["", "tool-outputs", "tool-outputs/captures"])
async def test_a_receipt_leads_nowhere_after_its_directory_was_deleted(
    other: Talk, what: str, facts: Callable[..., StreamFacts]
) -> None:
    """Under a running job: no reference, no path, `unavailable`, for an unsanitised copy as well; the child lives."""
    async with Supervisor(other.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe", keep="raw")
        await job.write(b"one\n")
        await committed(job, 4)
        shutil.rmtree(other.path / what)
        await job.write_eof()
        receipt = await job.wait()
    assert receipt.ok
    assert (receipt.capture.state, receipt.capture.reason, receipt.stdout) == ("partial", "io-error", "one\n")
    for name in ("stdout", "stderr"):
        stream = facts(receipt, name)
        assert (stream.reference, stream.path, stream.access) == (None, None, "unavailable")
        assert stream.raw_copy is not None
        assert stream.raw_copy.path is None
    assert "not available" not in receipt.render() or str(other.path) not in receipt.render()


@pytest.mark.asyncio
async def test_one_file_that_was_deleted_is_unavailable_alone(other: Talk, facts: Callable[..., StreamFacts]) -> None:
    """The receipt on disk says the same as the one from memory."""
    async with Supervisor(other.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "cat; echo oops >&2"], stdin="pipe")
        await job.write(b"one\n")
        await committed(job, 4)
        place = other.path / "tool-outputs" / "captures" / job.capture_id
        (place / "stdout.live").unlink()
        await job.write_eof()
        receipt = await job.wait()
    assert (facts(receipt).state, facts(receipt).access, facts(receipt).path) == ("partial", "unavailable", None)
    assert (facts(receipt, "stderr").state, facts(receipt, "stderr").access) == ("complete", "local")
    assert Receipt.parse((place / "receipt.json").read_bytes()) == receipt
    assert await list_captures(other.path) == [receipt]


@pytest.mark.asyncio
async def test_a_file_put_in_the_place_of_ours_is_not_named(other: Talk, facts: Callable[..., StreamFacts]) -> None:
    """Its path would lead to somebody else's text."""
    async with Supervisor(other.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        await job.write(b"one\n")
        await committed(job, 4)
        live = other.path / "tool-outputs" / "captures" / job.capture_id / "stdout.live"
        live.unlink()
        live.write_bytes(b"two\n")
        live.chmod(0o600)
        await job.write_eof()
        receipt = await job.wait()
    assert (facts(receipt).state, facts(receipt).access, facts(receipt).path) == ("partial", "unavailable", None)


@pytest.mark.asyncio
async def test_a_conversation_that_was_moved_is_found_there(
    other: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]
) -> None:
    """The job's own receipt needs a transfer; at its new place the capture is whole, with the paths of there."""
    moved = tmp_path / "moved"
    async with Supervisor(other.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        await job.write(b"one\n")
        await committed(job, 4)
        other.path.rename(moved)
        await job.write_eof()
        receipt = await job.wait()
    assert receipt.capture.state == "complete"
    stdout = facts(receipt)
    assert (stdout.reference is not None, stdout.path, stdout.access) == (True, None, "needs-transfer")
    (listed,) = await list_captures(moved)
    assert (facts(listed).path, facts(listed).access) == (str(moved / str(stdout.reference)), "local")
    assert await listed.read_text("stdout") == "one\n"


class Vanishing(Files):
    """The system's calls; a directory is removed, or moved, just before the receipt gets its name."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._before = before

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Let it vanish first."""
        if target == "receipt.json":
            self._before()
        super().rename_exclusive(source, target, parent=parent)


@pytest.mark.asyncio
async def test_a_directory_that_vanishes_before_publication_is_told(
    other: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]
) -> None:
    """Removed, its texts are unavailable; moved, the receipt has its name there and says where it was made."""
    removed = LocalStorage(Vanishing(lambda: shutil.rmtree(other.path)))
    async with Supervisor(other.path, storage=removed) as supervisor:
        receipt = await supervisor.run("echo x; exit 1", shell=True)
    assert (facts(receipt).reference, facts(receipt).path, facts(receipt).access) == (None, None, "unavailable")
    assert receipt.durability is not None
    assert not receipt.durability.barrier
    other.path.mkdir(mode=0o700)
    moved = LocalStorage(Vanishing(lambda: other.path.rename(tmp_path / "moved")))
    async with Supervisor(other.path, storage=moved) as supervisor:
        await supervisor.run("echo x; exit 1", shell=True)
    (listed,) = await list_captures(tmp_path / "moved")
    assert str(facts(listed).path).startswith(str(tmp_path / "moved"))
