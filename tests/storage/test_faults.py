"""A disk that fails at any one call: typed outcome, exact boundary, nothing open, nothing half made [B5, D4]."""

# ruff: noqa: ANN401 - fixtures hand out classes of conftest.py
from __future__ import annotations

import errno
import shutil
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import LocalStorage, PublishOutcome, Sealed, SpoolFault, publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio

STREAMS = ("stdout", "stderr")
REASONS = {"no-space", "io-error", "no-directory", "unsafe-directory"}
ERRNOS = [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE]


@dataclass
class Story:
    """What one whole life of a capture came to."""

    unopened: StorageError | None = None
    unmade: StorageError | None = None
    unlaunched: StorageError | None = None
    faults: dict[str, SpoolFault] = field(default_factory=dict)
    sealed: Sealed | None = None
    outcome: PublishOutcome | None = None
    undiscarded: str | None = None
    limitations: tuple[str, ...] = ()


async def live(files: Any, directory: Path) -> Story:
    """Live a whole life, and discard a second capture; note what is typed and let the rest out."""
    story = Story()
    try:
        conversation = await LocalStorage(files).open(directory, limits=Limits(), durability="barrier")
    except StorageError as error:
        story.unopened = error
        return story
    try:
        capture = await conversation.create_capture("one", STREAMS)
    except StorageError as error:
        story.unmade = error
        assert not (directory / "tool-outputs" / "captures" / "one").exists() or files.fail_name == "remove_directory"
    else:
        try:
            await capture.record_launch(b"{}")
        except StorageError as error:
            story.unlaunched = error
        for name, spool in capture.spools.items():
            try:
                await spool.write([b"0123456789"])
            except SpoolFault as error:
                story.faults[name] = error
        story.sealed = await capture.seal()
        story.outcome = await capture.publish(b"{}")
        other = None
        try:
            other = await conversation.create_capture("two", STREAMS)
        except StorageError as error:
            story.unmade = error
        if other is not None:
            story.undiscarded = await other.discard()
    story.limitations = conversation.limitations
    await conversation.close()
    return story


def check(story: Story, directory: Path) -> None:
    """Assert what holds after any fault: reasons are words, and what the facts say is what lies on the disk."""
    for error in (story.unopened, story.unmade, story.unlaunched):
        assert error is None or error.reason in REASONS, error
    capture = directory / "tool-outputs" / "captures" / "one"
    if story.sealed is None or story.outcome is None:
        return
    for name, stream in story.sealed.streams.items():
        path = capture / stream.name
        assert stream.size == path.stat().st_size
        assert stream.size == (0 if name in story.faults else 10)
        assert stream.name == f"{name}.log" or stream.fault is not None
    failed = [stream.fault for stream in story.sealed.streams.values() if stream.fault is not None]
    assert story.sealed.barrier == (not failed)
    assert (story.sealed.error is None) == (not failed)
    assert (capture / "receipt.json").exists() == story.outcome.published
    assert story.outcome.durable == (story.outcome.error is None)
    assert story.outcome.published or not story.outcome.durable


async def test_every_call_may_fail(descriptors: Callable[[], dict[str, str]], tmp_path: Path, faulty: Any) -> None:
    """Each call of a whole life fails once: never a traceback, never a false fact, nothing left open."""
    clean = await live(faulty, made(tmp_path / "clean"))
    assert clean.outcome == PublishOutcome(published=True, durable=True, directories=True, error=None)
    calls = len(faulty.log)
    assert calls > 60
    for number in (errno.EIO, errno.ENOSPC):
        for index in range(calls):
            directory = made(tmp_path / "faulty")
            before = descriptors()
            faulty.log, faulty.fail_at, faulty.number = [], index, number
            story = await live(faulty, directory)
            called = faulty.log[index]
            try:
                check(story, directory)
                assert descriptors() == before
            except AssertionError as error:
                error.add_note(f"call {index} ({called}) failed with {errno.errorcode[number]}: {story}")
                raise
            shutil.rmtree(directory)


def made(directory: Path) -> Path:
    """Make a private directory and return it."""
    directory.mkdir(mode=0o700)
    return directory


@pytest.mark.parametrize(
    "name",
    [
        "close",
        "create",
        "link",
        "lock",
        "make_directory",
        "names",
        "open_directory",
        "remove_directory",
        "rename_exclusive",
        "reserve",
        "set_mode",
        "status",
        "sync_directory",
        "sync_file",
        "truncate",
        "unlink",
        "write",
    ],
)
@pytest.mark.parametrize("number", ERRNOS)
async def test_a_call_may_always_fail(
    descriptors: Callable[[], dict[str, str]], tmp_path: Path, faulty: Any, name: str, number: int
) -> None:
    """A disk on which one kind of call never works, errors of the cleaning up included."""
    before = descriptors()
    faulty.fail_name, faulty.number = name, number
    story = await live(faulty, tmp_path)
    check(story, tmp_path)
    assert descriptors() == before


async def fault_at(faulty: Any, directory: Path, name: str) -> Story:
    """Return the story of a capture whose calls of a name fail with EIO once it is made."""
    story = Story()
    conversation = await LocalStorage(faulty).open(directory, limits=Limits(), durability="barrier")
    capture = await conversation.create_capture("one", STREAMS)
    await capture.spools["stdout"].write([b"0123456789"])
    faulty.fail_name = name
    story.sealed = await capture.seal()
    faulty.fail_name = None
    story.outcome = await capture.publish(b"{}")
    await conversation.close()
    return story


@pytest.mark.parametrize("name", ["sync_file", "sync_directory", "close", "rename_exclusive", "status"])
async def test_failed_sync_or_name_is_never_complete(tmp_path: Path, faulty: Any, name: str) -> None:
    """[D4] Every stream carries the fault and no barrier is claimed; the receipt still comes."""
    story = await fault_at(faulty, tmp_path, name)
    assert story.sealed is not None
    assert story.outcome is not None
    assert {stream.fault.reason for stream in story.sealed.streams.values() if stream.fault} == {"io-error"}
    assert all(stream.fault for stream in story.sealed.streams.values())
    assert not story.sealed.barrier
    assert story.sealed.streams["stdout"].size == 10
    assert story.outcome.published
    assert {stream.place for stream in story.sealed.streams.values()} == {"here"}  # nothing was moved or removed
    ending = ".live" if name == "rename_exclusive" else ".log"
    assert {stream.name for stream in story.sealed.streams.values()} == {"stdout" + ending, "stderr" + ending}


async def test_failed_data_sync_is_not_retried(tmp_path: Path, faulty: Any) -> None:
    """[D4] A second fsync would report success with the data lost: one call a stream, and one for the receipt."""
    await fault_at(faulty, tmp_path, "sync_file")
    assert faulty.log.count("sync_file") == 3


async def test_last_sync_alone_fails(tmp_path: Path, faulty: Any) -> None:
    """[D4] The receipt has its name, and what the caller gets says that it may not last."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="barrier")
    capture = await conversation.create_capture("one", STREAMS)
    assert (await capture.seal()).barrier
    faulty.fail_name = "sync_directory"
    outcome = await capture.publish(b"{}")
    assert (outcome.published, outcome.durable, outcome.directories) == (True, False, None)
    assert outcome.error is not None
    assert "syncing the directories" in outcome.error
    await conversation.close()


async def test_ancestors_are_synced_again_after_a_failure(tmp_path: Path, faulty: Any) -> None:
    """The next capture's barrier covers what the first one's did not reach."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="barrier")
    first, second = [await conversation.create_capture(name, STREAMS) for name in ("one", "two")]
    await first.seal()
    await second.seal()
    faulty.fail_name = "sync_directory"
    await first.publish(b"{}")
    faulty.fail_name = None
    faulty.log.clear()
    assert (await second.publish(b"{}")).durable
    assert faulty.log.count("sync_directory") == 4
    await conversation.close()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
async def test_directories_that_cannot_be_synced_are_named(
    tmp_path: Path,
    faulty: Any,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """[D4] No failure: warned about once a directory, and named; the data's barrier holds."""
    monkeypatch.setattr(publish, "_warned", set())
    faulty.fail_name, faulty.number = "sync_directory", number
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        story = await live(faulty, tmp_path)
    assert story.sealed is not None
    assert (story.sealed.barrier, story.sealed.directories, story.sealed.error) == (True, False, None)
    assert story.outcome == PublishOutcome(published=True, durable=True, directories=False, error=None)
    assert story.limitations == ("no-directory-barrier",)
    assert len(caught) == 4
    assert {warning.category for warning in caught} == {RuntimeWarning}


async def test_warnings_as_errors_end_no_capture(
    tmp_path: Path,
    faulty: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under `-W error` the facts are the same."""
    monkeypatch.setattr(publish, "_warned", set())
    faulty.fail_name, faulty.number = "sync_directory", errno.EINVAL
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        story = await live(faulty, tmp_path)
    assert story.outcome == PublishOutcome(published=True, durable=True, directories=False, error=None)


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL])
async def test_space_that_cannot_be_reserved_is_named(tmp_path: Path, faulty: Any, number: int) -> None:
    """A file system without fallocate(2) stores all the same; that a full disk may cost the receipt is said."""
    faulty.fail_name, faulty.number = "reserve", number
    story = await live(faulty, tmp_path)
    assert story.outcome is not None
    assert story.outcome.durable
    assert story.limitations == ("receipt-space-not-reserved",)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
async def test_file_system_without_exclusive_rename(tmp_path: Path, faulty: Any, number: int) -> None:
    """Link and unlink give the same result."""
    faulty.fail_name, faulty.number = "rename_exclusive", number
    story = await live(faulty, tmp_path)
    check(story, tmp_path)
    assert story.outcome is not None
    assert story.outcome.durable
    names = {path.name for path in (tmp_path / "tool-outputs" / "captures" / "one").iterdir()}
    assert names == {"stdout.log", "stderr.log", "launch.json", "receipt.json"}


async def test_file_system_without_locks(tmp_path: Path, faulty: Any) -> None:
    """Others cannot tell whether the owner lives; it is named, and everything else works."""
    faulty.fail_name, faulty.number = "lock", errno.ENOLCK
    story = await live(faulty, tmp_path)
    assert story.outcome is not None
    assert story.outcome.durable
    assert story.limitations == ("owner-lock-unsupported",)
