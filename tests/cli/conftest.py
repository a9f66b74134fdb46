"""What the tests of the command line share: real runs of it, each with a home and a directory of its own."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

import supervisor
from supervisor import cli
from supervisor.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Program = Callable[..., tuple[str, ...]]

PROGRAMS: Final = Path(__file__).parents[1] / "programs"
for module in pkgutil.iter_modules(cli.__path__):
    importlib.import_module(f"{cli.__name__}.{module.name}")  # once here, not in each fork

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
        """Run the command line to its end: in a fork of this process, which has imported it, or by Popen's options."""
        return self.finish(self.start(*arguments, **options)) if options else self.fork(*arguments)

    def fork(self, *arguments: str) -> Done:
        """Run the command line to its end, as `start` would, without another interpreter's start."""
        out, err = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            self._become(arguments, out[1], err[1])
        os.close(out[1])
        os.close(err[1])
        with os.fdopen(out[0]) as stdout, os.fdopen(err[0]) as stderr, ThreadPoolExecutor(1) as reader:
            errors = reader.submit(stderr.read)
            done = stdout.read(), errors.result(timeout=PATIENCE)
        _, status = os.waitpid(child, 0)
        return Done(os.waitstatus_to_exitcode(status), *done)

    def _become(self, arguments: tuple[str, ...], out: int, err: int) -> NoReturn:
        code = 70  # EX_SOFTWARE
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.closerange(3, 1 << 16)
            sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
            os.chdir(self.place)
            variables = self.environment()
            os.environ.clear()
            os.environ.update(variables)
            warnings.simplefilter("error")
            main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:  # noqa: BLE001 - as an interpreter ends
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)

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
