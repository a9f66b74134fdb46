"""Exports: what may be given away, whole or not at all, and true on each side [E9, E10]."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from supervisor import (
    LiveCapture,
    Receipt,
    StorageError,
    Supervisor,
    UnknownCapture,
    export_captures,
    list_captures,
    read_capture,
    remove_captures,
)
from supervisor.handing import hand_over
from supervisor.limits import Limits
from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Talk

    from supervisor.sansio.receipt import StreamFacts


class SmallDisk(Files):
    """The system's calls on a disk that has room for so many bytes, all files together."""

    def __init__(self, room: int) -> None:
        self._room = room

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write as far as there is room."""
        data = b"".join(buffers)[: self._room]
        if not data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._room -= len(data)
        return super().write(descriptor, [data])


class GatedCopy(Files):
    """The system's calls, of which the one that makes the first copy waits for a test."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create it, when the test lets us."""
        if name == "stdout.log":
            self.begun.set()
            self.go.wait(30)
        return super().create(name, parent=parent, flags=flags)


@pytest.mark.asyncio
async def test_an_export_is_a_conversation_without_what_is_of_here(talk: Talk, tmp_path: Path) -> None:
    """Same ids and texts; no label, command, pid, path or unsanitised copy; and the source is as it was."""
    before = talk.tree()
    out = tmp_path / "deep" / "out"
    made = await export_captures(talk.path, iter(talk.ids), out)
    assert [receipt.capture_id for receipt in made] == talk.ids
    assert await list_captures(out) == made
    assert talk.tree() == before
    assert await list_captures(talk.path) == talk.receipts
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    for incidental in (b"marigold", b"seq 2000", str(talk.path).encode(), str(tmp_path).encode()):
        assert incidental not in everything
    assert not list(out.rglob("*.raw"))
    for copy, original in zip(made, talk.receipts, strict=True):
        assert (copy.capture, copy.upstream, copy.source) == (original.capture, original.upstream, original.source)
        assert await copy.read_text("stdout") == await original.read_text("stdout")
        assert (await read_capture(out, copy.capture_id, "stdout")).state == "complete"
        assert (
            Receipt.parse((out / "tool-outputs/captures" / copy.capture_id / "receipt.json").read_bytes()).ok == copy.ok
        )
    for path in out.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.asyncio
async def test_an_export_can_be_moved_and_called_again(
    talk: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]
) -> None:
    """Its references are relative, so its paths are those of where it is; what is there stays as it is."""
    out, moved = tmp_path / "out", tmp_path / "moved"
    await export_captures(talk.path, talk.ids[:1], out)
    shutil.move(out, moved)
    (listed,) = await list_captures(moved)
    assert facts(listed).path == str(moved / str(facts(listed).reference))
    status = (moved / str(facts(listed).reference)).stat()
    again = await export_captures(talk.path, talk.ids, moved)
    assert again == await list_captures(moved)
    assert (moved / str(facts(listed).reference)).stat() == status


@pytest.mark.asyncio
async def test_a_missing_or_changed_text_is_unavailable_in_the_copy(
    talk: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]
) -> None:
    """Gone, cut, or of the same length and other bytes: named, without a reference; the other text is there."""
    (talk.capture(0) / "stdout.log").unlink()
    for number, change in enumerate((b"one\nTWO\n", b"one\n", b"one\ntwo\nand\n")):
        (talk.capture(1) / "stdout.log").write_bytes(change)
        first, second = await export_captures(talk.path, talk.ids, tmp_path / f"out-{number}")
        assert (facts(first).access, facts(first).reference, facts(first).path) == ("unavailable", None, None)
        assert first.limitations == ("text-not-copied:stdout",) or "text-not-copied:stdout" not in first.limitations
        assert await first.read_text("stderr") == "oops\n"
        # What was appended to a final file is no part of it.
        assert facts(second).access == ("local" if number == 2 else "unavailable")
        assert ("text-not-copied:stdout" in second.limitations) == (number != 2)
        assert await list_captures(tmp_path / f"out-{number}") == [first, second]
    (listed, _) = await list_captures(talk.path)
    assert (facts(listed).access, facts(listed).path) == ("unavailable", None)


@pytest.mark.asyncio
async def test_a_live_source_is_not_copied_nor_anything_with_it(talk: Talk, tmp_path: Path) -> None:
    """Nothing is written, also for an id that is unknown or cannot be one; once it has ended, all is copied."""
    async with Supervisor(talk.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        with pytest.raises(LiveCapture) as caught:
            await export_captures(talk.path, [talk.ids[0], job.capture_id], tmp_path / "out")
        assert caught.value.capture_id == job.capture_id
        await job.write_eof()
        await job.wait()
        copies = await export_captures(talk.path, [talk.ids[0], job.capture_id], tmp_path / "out2")
        assert copies[1].capture.state == "complete"
    with pytest.raises(UnknownCapture):
        await export_captures(talk.path, [talk.ids[0], talk.ids[0][:-32] + "0" * 32], tmp_path / "out")
    with pytest.raises(ValueError, match="not a capture id"):
        await export_captures(talk.path, [talk.ids[0], "../x"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.asyncio
async def test_a_leftover_is_recovered_and_copied_as_partial(talk: Talk, tmp_path: Path) -> None:
    """It is never promoted, on neither side [D6]."""
    (talk.capture(0) / "receipt.json").unlink()
    (copy,) = await export_captures(talk.path, talk.ids[:1], tmp_path / "out")
    assert (copy.capture.state, copy.capture.reason) == ("partial", "supervisor-lost")
    assert (await list_captures(talk.path))[0].capture == copy.capture


@pytest.mark.asyncio
async def test_a_destination_inside_the_conversation_is_refused(talk: Talk, tmp_path: Path) -> None:
    """The conversation itself, what is below it, and both by a link; beside it or around it will do."""
    (tmp_path / "link").symlink_to(talk.path)
    before = talk.tree()
    for inside in (talk.path, talk.path / "out", tmp_path / "link", tmp_path / "link" / "tool-outputs" / "x"):
        with pytest.raises(ValueError, match="inside the conversation"):
            await export_captures(talk.path, talk.ids, inside)
    assert talk.tree() == before
    assert sorted(path.name for path in talk.path.iterdir()) == ["tool-outputs"]
    assert len(await export_captures(talk.path, talk.ids, tmp_path)) == 2
    assert len(await export_captures(talk.path, talk.ids, tmp_path / "talk-2")) == 2


@pytest.mark.asyncio
async def test_a_full_destination_has_the_copies_that_are_whole(talk: Talk, tmp_path: Path) -> None:
    """Wherever it fills up: what is listed is whole, nothing else is left, and the source is as it was."""
    before = talk.tree()
    counts = set()
    for room in (0, 100, *range(500, 24_000, 750)):
        out = tmp_path / f"out-{room}"
        try:
            await hand_over(SmallDisk(room), talk.path, talk.ids, out, limits=Limits(), export=True)
        except StorageError as error:
            assert error.reason == "no-space"  # noqa: PT017 - it may also have room
        listed = await list_captures(out)
        for copy, original in zip(listed, talk.receipts, strict=False):
            assert copy.capture == original.capture
            assert await copy.read_text("stdout") == await original.read_text("stdout")
        names = [path.name for path in (out / "tool-outputs").glob("captures/*")]
        assert sorted(names) == [copy.capture_id for copy in listed]
        counts.add(len(listed))
    assert counts == {0, 1, 2}
    assert talk.tree() == before


@pytest.mark.asyncio
async def test_a_destination_that_cannot_be_made_private_is_refused(talk: Talk, tmp_path: Path) -> None:
    """World-writable, a file, or under a file [D2]."""
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for place in ("open", "file", "file/below"):
        with pytest.raises(StorageError):
            await export_captures(talk.path, talk.ids, tmp_path / place)
    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.asyncio
async def test_a_removal_waits_for_a_copy_under_way(talk: Talk, tmp_path: Path) -> None:
    """So what is removed when it was handed over was handed over whole."""
    files = GatedCopy()
    target = tmp_path / "out"
    copying = asyncio.create_task(hand_over(files, talk.path, talk.ids[:1], target, limits=Limits(), export=True))
    await asyncio.to_thread(files.begun.wait, 30)
    removing = asyncio.create_task(remove_captures(talk.path, talk.ids[:1]))
    _, unfinished = await asyncio.wait({removing}, timeout=0.2)
    files.go.set()
    (copy,) = await copying
    assert await removing > 0
    assert unfinished == {removing}
    assert await copy.read_text("stdout") == "".join(f"{number}\n" for number in range(1, 2001))
    assert talk.captures() == talk.ids[1:]


@pytest.mark.asyncio
async def test_nothing_is_exported_from_nothing(tmp_path: Path) -> None:
    """A directory that never had a capture, with and without ids; one that is missing."""
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    assert await export_captures(empty, [], tmp_path / "out") == []
    with pytest.raises(UnknownCapture):
        await export_captures(empty, ["20260101T000000000000Z-" + "0" * 32], tmp_path / "out")
    with pytest.raises(StorageError):
        await export_captures(tmp_path / "missing", [], tmp_path / "out")
    assert not (tmp_path / "out").exists()
