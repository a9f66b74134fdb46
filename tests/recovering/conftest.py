"""A conversation whose supervisor was killed with five live jobs, and what is looked at in it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS: Final = 5


def kill_supervisor(command: list[str]) -> list[str]:
    """Run a supervisor that has live jobs, kill it, and return their captures, oldest first."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stderr is not None
        line = host.stdout.readline()
        host.kill()
        assert line, host.stderr.read().decode()
    ids: list[str] = json.loads(line)
    return ids


@dataclass(frozen=True)
class Left:
    """A conversation after its supervisor."""

    path: Path
    ids: list[str]

    @property
    def captures(self) -> Path:
        """The directory of all captures."""
        return self.path / "tool-outputs" / "captures"

    def capture(self, number: int) -> Path:
        """Return one capture's directory."""
        return self.captures / self.ids[number]

    def launch(self, number: int) -> dict[str, Any]:
        """Return one capture's launch record."""
        record: dict[str, Any] = json.loads((self.capture(number) / "launch.json").read_bytes())
        return record

    def text(self, number: int) -> str:
        """Return what job `number` has committed on stdout."""
        return f"line one of {number}\nno end"

    def error_text(self, number: int) -> str:
        """Return what it has committed on stderr."""
        return f"problem of {number}\n"


@pytest.fixture
def killed_supervisor(program: Callable[..., list[str]]) -> Callable[[Path, str], Left]:
    """Return a function that lets a supervisor on some loop have five live jobs in a directory, and kills it."""
    return lambda directory, loop: Left(directory, kill_supervisor(program("many_jobs", loop, directory, JOBS)))


@pytest.fixture(scope="session")
def wreck(tmp_path_factory: pytest.TempPathFactory, program: Callable[..., list[str]]) -> Left:
    """Such a conversation, made once, to be copied."""
    directory = tmp_path_factory.mktemp("wreck")
    return Left(directory, kill_supervisor(program("many_jobs", "asyncio", directory, JOBS)))


@pytest.fixture
def left(wreck: Left, tmp_path: Path) -> Left:
    """A copy of it of the test's own: a copy is a leftover as well."""
    directory = tmp_path / "left"
    subprocess.run(["cp", "-a", wreck.path, directory], check=True)
    return Left(directory, wreck.ids)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty conversation."""
    directory = tmp_path / "empty"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def tree() -> Callable[[Path], dict[str, tuple[int, int, int, int]]]:
    """Return a function that tells mode, size, inode and time of change of everything under a directory."""

    def look(directory: Path) -> dict[str, tuple[int, int, int, int]]:
        found = {}
        for path in directory.rglob("*"):
            status = path.lstat()
            found[str(path)] = (status.st_mode, status.st_size, status.st_ino, status.st_mtime_ns)
        return found

    return look
