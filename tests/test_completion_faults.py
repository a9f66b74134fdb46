"""Completions of captures that cannot be marked, whose barrier failed, or that are gone (E5, D4)."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import StorageError, Supervisor, list_captures, remove_captures
from supervisor.storage import Files, LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import NextOf, NoneIsLeft


@pytest.mark.asyncio
@pytest.mark.parametrize("directory", [None, "missing"])
async def test_an_unavailable_capture_is_told_of_once_from_memory(
    tmp_path: Path, directory: str | None, next_of: NextOf
) -> None:
    """There is nothing to mark, and acknowledging it is no error."""
    async with Supervisor(None if directory is None else tmp_path / directory) as supervisor:
        job = await supervisor.start(["echo", "text"])
        completions = supervisor.completions()
        completion = await next_of(completions)
        assert completion.receipt == await job.wait()
        assert completion.receipt.capture.state == "unavailable"
        await completion.acknowledge()
        await job.acknowledge()
        other = await supervisor.start(["true"], capture="none")
        assert (await next_of(completions)).receipt.capture_id == other.capture_id


class FailingFiles(Files):
    """Files of which some calls fail, from when they are told to."""

    def __init__(self) -> None:
        self.fail: str | None = None

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Fail the calls of that name."""
        found = super().__getattribute__(name)
        if name == "fail" or name != self.fail:
            return found

        def call(*_: object, **__: object) -> object:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return call


class FailingLastSync(Files):
    """Files whose directories cannot be synced, once, after the first receipt got its name."""

    def __init__(self) -> None:
        self._published = self._failed = False

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Rename, and remember."""
        super().rename_exclusive(source, target, parent=parent)
        self._published = self._published or target == "receipt.json"

    def sync_directory(self, descriptor: int) -> None:
        """Fail after publication."""
        if self._published and not self._failed:
            self._failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_directory(descriptor)


@pytest.mark.asyncio
async def test_a_failed_barrier_has_no_completion_now_or_later(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """`wait` returns the receipt with the error; nobody is told of an end that may not last [D4]."""
    async with Supervisor(tmp_path, storage=LocalStorage(FailingLastSync())) as supervisor:
        job = await supervisor.start(["true"])
        receipt = await job.wait()
        assert receipt.durability is not None
        assert receipt.durability.error
        good = await supervisor.start(["true"])
        completion = await next_of(supervisor.completions())
        assert completion.receipt.capture_id == good.capture_id
        await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_a_marker_that_cannot_be_written_costs_no_completion_of_ours(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """It is told of from memory; that it was acknowledged cannot be written, which is said, and can be tried again."""
    files = FailingFiles()
    async with Supervisor(tmp_path, storage=LocalStorage(files)) as supervisor:
        job = await supervisor.start(["true"])
        await job.wait()
        files.fail = "write"
        completion = await next_of(supervisor.completions())
        assert completion.receipt.capture_id == job.capture_id
        with pytest.raises(StorageError):
            await completion.acknowledge()
        files.fail = None
        await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_a_removed_capture_is_told_of_by_its_own_supervisor_only(tmp_path: Path, next_of: NextOf) -> None:
    """Its end is still to be had from memory; acknowledging what is gone is no error, and nothing comes back."""
    async with Supervisor(tmp_path) as supervisor:
        job = await supervisor.start(["true"])
        await job.wait()
        await remove_captures(tmp_path, [job.capture_id])
        completion = await next_of(supervisor.completions())
        assert completion.receipt.capture_id == job.capture_id
        await completion.acknowledge()
    assert await list_captures(tmp_path) == []


@pytest.mark.asyncio
async def test_a_receipt_of_another_version_is_left_to_who_can_read_it(tmp_path: Path, next_of: NextOf) -> None:
    """It is handed to nobody here, so nobody is told later, or meanwhile, that somebody had it [E5]."""
    async with Supervisor(tmp_path) as supervisor:
        job = await supervisor.start(["true"])
        await job.wait()
    file = tmp_path / "tool-outputs" / "captures" / job.capture_id / "receipt.json"
    readable = file.read_bytes()
    async with Supervisor(tmp_path) as older:
        file.write_bytes(b'{"schema":99}')
        own = await older.start(["true"])
        assert (await next_of(older.completions())).receipt.capture_id == own.capture_id
        file.write_bytes(readable)
        async with Supervisor(tmp_path) as newer:
            completion = await next_of(newer.completions())
            assert completion.receipt.capture_id == job.capture_id
            assert not completion.redelivered
            await completion.acknowledge()
