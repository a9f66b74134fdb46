"""What the tests of the whole path share: a conversation to look into, child programs, hosts and small disks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import Receipt
from supervisor.storage import Files, LocalStorage, look_at_allowance, visiting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from supervisor import Job, Page

    PageWithText = Callable[[Job], Awaitable[Page]]
    Until = Callable[[Callable[[], object]], Awaitable[None]]

PROGRAMS: Final = Path(__file__).parents[1] / "programs"
PATIENCE: Final = 30.0
"""Seconds after which a test gives up; nothing waits for it to pass."""


@dataclass(frozen=True)
class Conversation:
    """A conversation's directory, looked at from outside the supervisor."""

    path: Path

    async def used(self) -> int:
        """Return what counts against its allowance, nothing of which is reserved any more."""
        async with visiting(Files(), self.path) as visit:
            assert visit is not None
            seen = await visit.run("counting", partial(look_at_allowance, visit.files, visit.rooms))
        assert seen.reserved == 0
        return seen.used

    def captures(self) -> list[Path]:
        """Return the directories of its captures, oldest first."""
        return sorted((self.path / "tool-outputs" / "captures").glob("*"))

    def files(self) -> set[Path]:
        """Return every file in it, those of the supervisor's own state included."""
        return {path for path in self.path.rglob("*") if path.is_file()}

    def holding(self, text: bytes) -> list[Path]:
        """Return the files that contain `text` now; one that vanishes meanwhile contains nothing."""
        found: list[Path] = []
        for path in self.files():
            try:
                if text in path.read_bytes():
                    found.append(path)
            except FileNotFoundError:
                continue
        return found

    def published(self, receipt: Receipt) -> Receipt:
        """Return the receipt as it lies on this disk."""
        return Receipt.parse((self.captures_of(receipt) / "receipt.json").read_bytes())

    def captures_of(self, receipt: Receipt) -> Path:
        """Return the directory of the receipt's capture."""
        return self.path / "tool-outputs" / "captures" / receipt.capture_id

    def text(self, receipt: Receipt, stream: str = "stdout") -> bytes:
        """Return the file that the receipt's reference names, after checking that its boundary is the file's size."""
        facts = receipt.streams[stream]  # type: ignore[index]
        assert facts is not None
        assert facts.reference is not None
        data = (self.path / facts.reference).read_bytes()
        assert facts.retained.end == facts.committed == len(data)
        return data


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    """Return a private, empty directory as a conversation."""
    path = tmp_path / "conversation"
    path.mkdir(mode=0o700)
    return Conversation(path)


@pytest.fixture
def program() -> Callable[..., list[str]]:
    """Return the command for a program of tests/programs and its arguments."""

    def command(name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-S", "-E", str(PROGRAMS / f"{name}.py"), *arguments]

    return command


@pytest.fixture
def host_program() -> Callable[..., list[str]]:
    """Return the same for a program that imports `supervisor`, from wherever this process has it."""

    def command(name: str, *arguments: str) -> list[str]:
        code = (
            "import runpy, sys; sys.path[:] = {!r}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        return [sys.executable, "-c", code.format(sys.path), str(PROGRAMS / f"{name}.py"), *arguments]

    return command


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_module(request: pytest.FixtureRequest) -> str:
    """Return the module whose `run` a host program uses."""
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture
def until() -> Until:
    """Return a function that waits for something that only another process or thread can make true."""

    async def wait(true: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():  # noqa: ASYNC110 - it is in a file, in /proc or in a snapshot; nobody sets an event
                await asyncio.sleep(0.001)

    return wait


@pytest.fixture
def first_text() -> Callable[[Job], Awaitable[str]]:
    """Return a function that waits for the first text of a job that was started with `window_bytes`."""

    async def first(job: Job) -> str:
        async with asyncio.timeout(PATIENCE), aclosing(job.live("stdout")) as pieces:
            async for shown in pieces:
                return shown.text.decode()
        raise AssertionError("the child said nothing")

    return first


@pytest.fixture
def page_with_text() -> PageWithText:
    """Return a function that returns a job's first page that has text."""

    async def first(job: Job) -> Page:
        async with asyncio.timeout(PATIENCE), aclosing(job.follow()) as pages:
            return await anext(pages)

    return first


class SpoolFiles(Files):
    """The real calls, but for those on the descriptors of spools that were made under one of some names."""

    def __init__(
        self, write: Callable[[int, Sequence[bytes | memoryview]], int], names: Sequence[str], most: int
    ) -> None:
        self._write = write
        self._names = names
        self._left = most
        self._spools: set[int] = set()

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create, and remember the first of the spools."""
        descriptor = super().create(name, parent=parent, flags=flags)
        if name in self._names and self._left:
            self._left -= 1
            self._spools.add(descriptor)
        return descriptor

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write in the test's own way to a spool."""
        return self._write(descriptor, buffers) if descriptor in self._spools else super().write(descriptor, buffers)

    def close(self, descriptor: int) -> None:
        """Forget the number: somebody else may get it."""
        self._spools.discard(descriptor)
        super().close(descriptor)


@pytest.fixture
def disk() -> Callable[..., LocalStorage]:
    """Return a function that makes a storage whose spools are written by a function of the test's."""

    def make(
        write: Callable[[int, Sequence[bytes | memoryview]], int],
        names: Sequence[str] = ("stdout.live", "stderr.live"),
        *,
        most: int = 1000,
    ) -> LocalStorage:
        return LocalStorage(SpoolFiles(write, names, most))

    return make


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Return a function that mounts a file system for the test, or skips it where that is not allowed."""
    mounts: list[Path] = []

    def mount(*arguments: str) -> Path:
        place = tmp_path / f"disk{len(mounts)}"
        place.mkdir(mode=0o700)
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        done = subprocess.run(["mount", *arguments, place], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not possible here: {done.stderr.strip()}")
        mounts.append(place)
        place.chmod(0o700)
        return place

    yield mount
    for place in mounts:
        subprocess.run(["umount", place], check=True)
