"""Crash tests that anybody can run: `pytest tests/crash`. What needs root is skipped without, by name.

The work is done by the program `harness/main.py`, once for each disk; its figures are printed at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    Tried = Callable[..., None]

HARNESS: Final = Path(__file__).parent / "harness"
MEMORY: Final = Path("/dev/shm")
PATIENCE: Final = 600
"""Seconds after which a program of the harness is stuck."""
TRIED: Final = "crash tests tried"


def pytest_terminal_summary(terminalreporter: Any) -> None:  # noqa: ANN401 - pytest does not export its type
    """Print how much was tried."""
    figures: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == TRIED and getattr(report, "when", None) == "call":
                    figures.update(value)
    if figures:
        terminalreporter.section("crash tests")
        for what, count in figures.items():
            terminalreporter.line(f"{count:6} {what}")


@pytest.fixture
def tried(request: pytest.FixtureRequest) -> Tried:
    """Return a function that adds to the figures that are printed at the end."""

    def add(**figures: int) -> None:
        named = {name.replace("_", " "): count for name, count in figures.items()}
        request.node.user_properties.append((TRIED, named))

    return add


def program(name: str, *arguments: object) -> list[str]:
    """Return the command for a program of the harness, with this process's imports."""
    code = "import runpy, sys; sys.path[:] = {!r}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    # A thread that was joined may be in the kernel's count for a moment more, of which `os.fork` warns (3.12).
    quiet = ("-W", "ignore:This process:DeprecationWarning")
    return [
        sys.executable,
        *quiet,
        "-c",
        code.format([str(HARNESS), *sys.path]),
        str(HARNESS / name),
        *map(str, arguments),
    ]


def answer(name: str, *arguments: object) -> Any:  # noqa: ANN401 - JSON
    """Run a program of the harness to its end, and return what it says."""
    done = subprocess.run(
        program(name, *arguments), check=False, capture_output=True, text=True, timeout=PATIENCE, env=os.environ
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def type_of(directory: Path) -> str:
    """Return what the file system of a directory is called."""
    done = subprocess.run(["stat", "-f", "-c", "%T", directory], check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


@contextmanager
def mounted(where: Path, *options: str) -> Generator[Path]:
    """Lend a file system that is mounted for as long. Skips the test without root, or where nothing can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    where.mkdir()
    done = subprocess.run(["mount", *options, str(where)], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        where.chmod(0o700)
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


@dataclass
class Disks:
    """Directories on the disks in question, and what was tried there already."""

    places: dict[str, Path]
    came: dict[tuple[str, ...], Any] = field(default_factory=dict[tuple[str, ...], Any])

    def ask(self, disk: str, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        """Return the answer of the harness's main program there; it is asked once."""
        key = (disk, *arguments)
        if key not in self.came:
            with tempfile.TemporaryDirectory(dir=self.places[disk]) as place:
                self.came[key] = answer("main.py", place, *arguments)
        return self.came[key]


@pytest.fixture(scope="session")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disks]:
    """Lend a directory of the tests' own disk and one in memory; the latter is missing where there is no tmpfs."""
    places = {"disk": tmp_path_factory.mktemp("crash")}
    with ExitStack() as undo:
        if MEMORY.is_dir() and type_of(MEMORY) == "tmpfs":
            places["memory"] = Path(tempfile.mkdtemp(dir=MEMORY, prefix="spoolvisor-crash-"))
            undo.callback(shutil.rmtree, places["memory"])
        elif os.geteuid() == 0 and sys.platform == "linux":
            where = tmp_path_factory.mktemp("memory") / "disk"
            places["memory"] = undo.enter_context(mounted(where, "-t", "tmpfs", "-o", "size=256m", "spoolvisor-crash"))
        yield Disks(places)


@pytest.fixture
def ask_program() -> Callable[..., Any]:
    """Return a function that runs a program of the harness, and returns what it says."""
    return answer


@pytest.fixture
def command() -> Callable[..., list[str]]:
    """Return a function that returns the command for a program of the harness."""
    return program


@pytest.fixture
def mount() -> Callable[..., Any]:
    """Return a context manager that mounts a file system."""
    return mounted
