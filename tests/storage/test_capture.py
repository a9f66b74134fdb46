"""A capture's life on disk: layout, order, the few ways in which it ends."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import Capture, Conversation, Files, LocalStorage, PublishOutcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio

PATIENCE = 20.0
STREAMS = ("stdout", "stderr")


def listing(directory: Path) -> dict[str, int]:
    """Return the names in a directory, and their sizes."""
    return {path.name: path.lstat().st_size for path in directory.iterdir()}


async def filled(conversation: Conversation, name: str = "one") -> Capture:
    """Return a capture with a launch record and some text."""
    capture = await conversation.create_capture(name, STREAMS)
    await capture.record_launch(b'{"launch": 1}')
    await capture.spools["stdout"].write([b"out\n"])
    await capture.spools["stderr"].write([b"error\n"])
    return capture


async def test_layout_while_live(conversation: Conversation) -> None:
    """[D3] Live names, the reserved receipt out of sight, the launch record whole."""
    capture = await conversation.create_capture("one", STREAMS)
    assert listing(capture.path) == {"stdout.live": 0, "stderr.live": 0, ".receipt.reserved": 0}
    assert capture.path == conversation.directory / capture.reference
    assert capture.reference == "tool-outputs/captures/one"
    await capture.record_launch(b'{"launch": 1}')
    assert (capture.path / "launch.json").read_bytes() == b'{"launch": 1}'
    assert [spool.path.name for spool in capture.spools.values()] == ["stdout.live", "stderr.live"]


async def test_published_capture(conversation: Conversation) -> None:
    """[D3, D4] Final names, facts that are those of the files, a receipt of exactly its bytes, and nothing else."""
    capture = await filled(conversation)
    sealed = await capture.seal()
    assert (sealed.barrier, sealed.directories, sealed.error) == (True, True, None)
    for name, text in (("stdout", b"out\n"), ("stderr", b"error\n")):
        stream = sealed.streams[name]
        assert (stream.name, stream.size, stream.fault) == (f"{name}.log", len(text), None)
        assert stream.digest == hashlib.sha256(text).hexdigest()
        assert (capture.path / stream.name).read_bytes() == text
    assert "receipt.json" not in listing(capture.path)
    outcome = await capture.publish(b'{"receipt": 1}')
    assert outcome == PublishOutcome(published=True, durable=True, directories=True, error=None)
    assert listing(capture.path) == {"stdout.log": 4, "stderr.log": 6, "launch.json": 13, "receipt.json": 14}
    assert capture.ended


async def test_at_most_five_descriptors_a_job(
    descriptors: Callable[[], dict[str, str]], conversation: Conversation
) -> None:
    """The design's bound; none is left after the end."""
    before = descriptors()
    capture = await filled(conversation)
    during = descriptors()
    assert len(during) - len(before) == 4
    await capture.seal()
    await capture.publish(b"{}")
    assert descriptors() == before


async def test_order_of_publication(tmp_path: Path, faulty: Any) -> None:  # noqa: ANN401 - a fixture's class
    """[D4] Data, names, their directory; the receipt, its name; its directory and all above. None is dropped."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="barrier")
    capture = await filled(conversation)
    faulty.log.clear()
    await capture.seal()
    sealing = [call for call in faulty.log if call not in {"status", "status_at", "close"}]
    assert sealing == ["sync_file", "sync_file", "rename_exclusive", "rename_exclusive", "sync_directory"]
    faulty.log.clear()
    await capture.publish(b"{}")
    publishing = [call for call in faulty.log if call != "close"]
    assert publishing == ["write", "truncate", "sync_file", "rename_exclusive"] + ["sync_directory"] * 4
    second = await filled(conversation, "two")
    await second.seal()
    faulty.log.clear()
    await second.publish(b"{}")
    assert faulty.log.count("sync_directory") == 2
    await conversation.close()


async def test_durability_none_syncs_nothing_and_says_so(tmp_path: Path, faulty: Any) -> None:  # noqa: ANN401
    """[D4] The names are the same."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="none")
    capture = await filled(conversation)
    sealed = await capture.seal()
    assert (sealed.barrier, sealed.directories, sealed.error) == (False, None, None)
    outcome = await capture.publish(b"{}")
    assert outcome == PublishOutcome(published=True, durable=False, directories=None, error=None)
    assert not [call for call in faulty.log if call.startswith("sync")]
    assert set(listing(capture.path)) == {"stdout.log", "stderr.log", "launch.json", "receipt.json"}
    await conversation.close()


async def test_nothing_of_it_runs_on_the_loop(tmp_path: Path) -> None:
    """[D8] Every system call of a whole life is made on another thread."""
    threads = set[int]()

    class Watching(Files):
        """Notes the thread of each call."""

        def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
            threads.add(threading.get_ident())
            return super().__getattribute__(name)

    storage = LocalStorage(Watching())
    await storage.create_directory(tmp_path / "new")
    conversation = await storage.open(tmp_path / "new", limits=Limits(), durability="barrier")
    capture = await filled(conversation)
    await capture.seal()
    await capture.publish(b"{}")
    await (await filled(conversation, "two")).discard()
    await conversation.create_capture("three", STREAMS)
    await conversation.close()
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("stage", ["new", "written", "sealed"])
async def test_discard_leaves_nothing(
    descriptors: Callable[[], dict[str, str]], conversation: Conversation, stage: str
) -> None:
    """[A7] A run that needs no file leaves none, whatever was done before."""
    before = descriptors()
    capture = await conversation.create_capture("one", STREAMS) if stage == "new" else await filled(conversation)
    if stage == "sealed":
        await capture.seal()
    assert await capture.discard() is None
    assert listing(conversation.directory / "tool-outputs" / "captures") == {}
    assert descriptors() == before


async def test_discard_leaves_what_is_not_ours(conversation: Conversation) -> None:
    """[D1] A stranger's file is not removed, and that something stayed is told."""
    capture = await filled(conversation)
    (capture.path / "notes.txt").write_text("mine")
    error = await capture.discard()
    assert error is not None
    assert "not empty" in error
    assert listing(capture.path) == {"notes.txt": 4}


async def test_existing_final_names_are_not_overwritten(conversation: Conversation) -> None:
    """[D2, D3] The live file stays beside a planted one, the stream is not complete, and the receipt has no name."""
    capture = await filled(conversation)
    (capture.path / "stdout.log").write_text("planted")
    (capture.path / "receipt.json").write_text("planted")
    sealed = await capture.seal()
    stream = sealed.streams["stdout"]
    assert stream.name == "stdout.live"
    assert stream.fault is not None
    assert stream.fault.reason == "io-error"
    assert (sealed.barrier, sealed.error) == (False, stream.fault.error)
    assert sealed.streams["stderr"].fault is None
    outcome = await capture.publish(b"{}")
    assert not outcome.published
    assert not outcome.durable
    assert outcome.error is not None
    assert (capture.path / "stdout.log").read_text() == "planted"
    assert (capture.path / "receipt.json").read_text() == "planted"
    assert (capture.path / "stdout.live").read_bytes() == b"out\n"


@pytest.mark.parametrize("what", ["truncated", "linked", "removed"])
async def test_interference_is_seen(conversation: Conversation, what: str) -> None:
    """[D3] A live file that somebody cut, linked or removed never becomes a complete stream."""
    capture = await filled(conversation)
    path = capture.spools["stdout"].path
    if what == "truncated":
        os.truncate(path, 1)
    elif what == "linked":
        path.with_name("copy").hardlink_to(path)
    else:
        path.unlink()
    sealed = await capture.seal()
    fault = sealed.streams["stdout"].fault
    assert fault is not None
    assert fault.reason == "io-error"
    assert not sealed.barrier
    assert sealed.streams["stderr"].fault is None


@pytest.mark.parametrize("when", ["before launch", "before seal", "before publish"])
async def test_vanished_directory_is_a_typed_fault(conversation: Conversation, when: str) -> None:
    """[D1] `rm -rf` under us: writes go on into the unlinked files, nothing is complete, nothing is raised."""
    capture = await conversation.create_capture("one", STREAMS)
    if when == "before launch":
        shutil.rmtree(conversation.directory / "tool-outputs")
        with pytest.raises(StorageError) as caught:
            await capture.record_launch(b"{}")
        assert caught.value.reason == "no-directory"
    await capture.spools["stdout"].write([b"text"])
    if when == "before seal":
        shutil.rmtree(conversation.directory / "tool-outputs")
    sealed = await capture.seal()
    if when == "before publish":
        assert sealed.barrier
        shutil.rmtree(conversation.directory / "tool-outputs")
    else:
        assert not sealed.barrier
        assert {stream.fault.reason for stream in sealed.streams.values() if stream.fault} == {"io-error"}
    outcome = await capture.publish(b"{}")
    assert (outcome.published, outcome.durable) == (False, False)
    with pytest.raises(StorageError) as caught:
        await conversation.create_capture("two", STREAMS)
    assert caught.value.reason == "no-directory"
    assert listing(conversation.directory) == {}


async def test_moved_conversation_goes_on(tmp_path: Path) -> None:
    """[D1] Descriptors follow a rename of the directory above."""
    (tmp_path / "old").mkdir(mode=0o700)
    conversation = await LocalStorage().open(tmp_path / "old", limits=Limits(), durability="barrier")
    capture = await filled(conversation)
    (tmp_path / "old").rename(tmp_path / "new")
    sealed = await capture.seal()
    outcome = await capture.publish(b"{}")
    await conversation.close()
    assert sealed.barrier
    assert outcome.durable
    assert (tmp_path / "new" / "tool-outputs" / "captures" / "one" / "receipt.json").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "-x", ".hidden", "a b", "a\0", "x" * 129, "ä"])
async def test_capture_id_is_a_plain_name(conversation: Conversation, name: str) -> None:
    """[D1] Nothing that could lead elsewhere reaches the file system."""
    with pytest.raises(ValueError, match="plain name"):
        await conversation.create_capture(name, STREAMS)
    with pytest.raises(ValueError, match="plain name"):
        await conversation.create_capture("one", (name,))
    assert listing(conversation.directory / "tool-outputs" / "captures") == {}


async def test_existing_capture_id_is_refused(conversation: Conversation) -> None:
    """[D2] Names are exclusive: what is there stays as it is."""
    capture = await filled(conversation)
    before = listing(capture.path)
    with pytest.raises(StorageError) as caught:
        await conversation.create_capture("one", STREAMS)
    assert caught.value.reason == "io-error"
    assert listing(capture.path) == before


async def test_close_leaves_open_captures_as_leftovers(
    descriptors: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    """[D6] Neither removed nor published; no descriptor of them is left. A second close does nothing."""
    before = descriptors()
    conversation = await LocalStorage().open(tmp_path, limits=Limits(), durability="barrier")
    capture = await filled(conversation)
    await conversation.close()
    await conversation.close()
    assert set(listing(capture.path)) == {"stdout.live", "stderr.live", "launch.json", ".receipt.reserved"}
    assert capture.ended
    assert all("captures" not in target or number in before for number, target in descriptors().items())


async def test_cancelled_opening_leaves_nothing_open(
    descriptors: Callable[[], dict[str, str]],
    tmp_path: Path,
    stuck_files: Callable[[str], Any],
) -> None:
    """[D8, F10] What the call opens after nobody waits for it is closed again, and its owner's file is removed."""
    before = descriptors()
    files = stuck_files("lock")
    task = asyncio.create_task(LocalStorage(files).open(tmp_path, limits=Limits(), durability="barrier"))
    await asyncio.to_thread(files.entered.wait, PATIENCE)
    task.cancel()
    files.free()
    with pytest.raises(asyncio.CancelledError):
        await task
    files.close_pipe()
    assert descriptors() == before
    assert listing(tmp_path / "tool-outputs" / ".supervisor") == {}


async def test_cancelled_making_leaves_no_capture(
    descriptors: Callable[[], dict[str, str]], tmp_path: Path, stuck_files: Callable[[str], Any]
) -> None:
    """[D8, F10] What is made after nobody waits for it is removed again, before the conversation is closed."""
    before = descriptors()
    files = stuck_files("reserve")
    conversation = await LocalStorage(files).open(tmp_path, limits=Limits(), durability="barrier")
    task = asyncio.create_task(conversation.create_capture("one", STREAMS))
    await asyncio.to_thread(files.entered.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    closing = asyncio.create_task(conversation.close())
    files.free()
    await closing
    files.close_pipe()
    assert listing(tmp_path / "tool-outputs" / "captures") == {}
    assert descriptors() == before
