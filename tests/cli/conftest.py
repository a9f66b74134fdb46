"""What the tests of the command line share: real runs of it, each with a home and a directory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Program = Callable[..., tuple[str, ...]]

PROGRAMS: Final = Path(__file__).parents[1] / "programs"
PATIENCE: Final = 60.0
"""Seconds after which a test gives up; nothing waits for it to pass."""


@dataclass(frozen=True)
class Done:
    """A finished run."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines of stderr."""
        return self.err.splitlines()

    @property
    def receipt(self) -> dict[str, Any]:
        """The receipt that `--json` printed, as the only line of stdout."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


class CommandLine:
    """The command line under test. Its working directory, home and captures are in the test's own directory."""

    def __init__(self, place: Path) -> None:
        self.place: Final = place
        self.kept: Final = place / "kept"
        """The conversation of every run that names no other."""
        self.processes: Final[list[subprocess.Popen[bytes]]] = []

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the test's environment with nothing in it that would send captures elsewhere."""
        unwanted = {"SPOOLVISOR_DIR", "XDG_STATE_HOME"}
        inherited = {name: value for name, value in os.environ.items() if name not in unwanted}
        found = {"HOME": str(self.place), "PYTHONPATH": str(Path(supervisor.__file__).parent.parent)}
        return inherited | found | {"SPOOLVISOR_DIR": str(self.kept)} | variables

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - Popen's
        """Start the command line; its streams are pipes unless given."""
        return self.start_by((), *arguments, **options)

    def start_by(
        self,
        starter: tuple[str, ...],
        *arguments: str,
        variables: dict[str, str] | None = None,
        **options: Any,  # noqa: ANN401 - Popen's
    ) -> subprocess.Popen[bytes]:
        """Start the command line by a program that ends in executing its arguments."""
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            [*starter, sys.executable, "-W", "error", "-m", "supervisor", *arguments],
            env=self.environment(**(variables or {})),
            cwd=self.place,
            **(streams | options),
        )
        self.processes.append(process)
        return process

    def finish(self, process: subprocess.Popen[bytes]) -> Done:
        """Read what it prints and wait for its end."""
        out, err = process.communicate(timeout=PATIENCE)
        return Done(process.returncode, (out or b"").decode(), (err or b"").decode())

    def __call__(self, *arguments: str, **options: Any) -> Done:  # noqa: ANN401 - Popen's
        """Run the command line to its end."""
        return self.finish(self.start(*arguments, **options))

    def captures(self, directory: Path | None = None) -> list[Path]:
        """Return the capture directories of a conversation, oldest first."""
        return sorted((directory or self.kept).glob("tool-outputs/captures/*"))

    def text(self, stream: str) -> bytes:
        """Return what the only capture kept of a stream."""
        (capture,) = self.captures()
        return (capture / f"{stream}.log").read_bytes()


@pytest.fixture
def spoolvisor(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line; whatever a failed test left of it is killed."""
    command_line = CommandLine(tmp_path)
    yield command_line
    for process in command_line.processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def program() -> Program:
    """Return the command that runs a child program of tests/programs."""
    return lambda name, *arguments: (sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments))
