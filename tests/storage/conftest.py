"""Conversations to store in, and a disk that fails on command."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class FaultyFiles(Files):
    """Files whose calls are logged, and of which one, or each of a name, fails with an errno.

    Syncs are logged and left out: no test here takes the power away, and a disk's latency adds up.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fail_at: int | None = None
        self.fail_name: str | None = None
        self.number = errno.EIO
        self._count_lock = threading.Lock()

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Wrap each public method of `Files`."""
        found = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(Files, name):
            return found

        def call(*args: object, **kwargs: object) -> object:
            with self._count_lock:
                index = len(self.log)
                self.log.append(name)
            if index == self.fail_at or name == self.fail_name:
                if name == "close":  # close(2) releases the descriptor whatever it reports
                    found(*args, **kwargs)
                raise OSError(self.number, os.strerror(self.number))
            return None if name.startswith("sync") else found(*args, **kwargs)

        return call


class StuckFiles(Files):
    """Files whose call of one name goes into a full pipe, so that it is blocked in the kernel until `free`.

    Syncs are left out, so that a busy disk is not taken for a stuck one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self._write, bytes(65536))
        os.set_blocking(self._write, True)
        self.entered = threading.Event()

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Block in the call of that name before it does its work."""
        found = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(Files, name):
            return found

        def call(*args: object, **kwargs: object) -> object:
            if name == self._name:
                self.entered.set()
                with contextlib.suppress(OSError):  # EPIPE once it is freed
                    os.write(self._write, b"x")
            return None if name.startswith("sync") else found(*args, **kwargs)

        return call

    def free(self) -> None:
        """Let blocked and later calls go on."""
        if self._read >= 0:
            os.close(self._read)
            self._read = -1

    def close_pipe(self) -> None:
        """Free, and close the pipe; call when no thread is in it any more."""
        self.free()
        os.close(self._write)


@pytest.fixture
def descriptors() -> Callable[[], dict[str, str]]:
    """List this process's open descriptors and what they are of, without the listing's own."""

    def listing() -> dict[str, str]:
        found: dict[str, str] = {}
        for link in list(Path("/proc/self/fd").iterdir()):
            with contextlib.suppress(OSError):
                found[link.name] = str(link.readlink())
        return found

    return listing


@pytest.fixture
def faulty() -> FaultyFiles:
    """Files that fail where the test says so."""
    return FaultyFiles()


@pytest.fixture
def stuck_files() -> Callable[[str], StuckFiles]:
    """Make files whose calls of a name block until they are freed."""
    return StuckFiles


@pytest_asyncio.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[Conversation]:
    """An open conversation in an empty directory, with barrier."""
    opened = await LocalStorage().open(tmp_path, limits=Limits(), durability="barrier")
    yield opened
    await opened.close()
