"""What holds for every test: both event loops, one hypothesis profile, and nothing left behind (contract F10)."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from supervisor import Completion

    NextOf = Callable[[AsyncIterator[Completion]], Awaitable[Completion]]
    NoneIsLeft = Callable[[Path], Awaitable[None]]

try:
    import uvloop
except ImportError:  # no wheel for this platform: asyncio's loop alone
    uvloop = None

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=200,
    deadline=None,  # the machine is shared; pytest-timeout bounds the test
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Whoever started us may ignore signals (`nohup`, a background job of a script); children of tests would inherit that.
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

CLEARANCE: Final = 2.0
"""Seconds that a test's end may take to become visible: a dying thread, a killed grandchild that init must reap."""

PATIENCE: Final = 30.0
"""Seconds after which a test gives up; nothing waits for it to pass."""

PROGRAMS: Final = Path(__file__).parent / "programs"
MARK: Final = "SPOOLVISOR_TEST"
"""The environment variable by which a descendant is known even after it left the session and lost its parent."""


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each asyncio test on both loops (design: "every test and bench runs on both")."""
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if uvloop is not None:
        factories["uvloop"] = uvloop.new_event_loop
    return factories


def children() -> set[int]:
    """The pids of this process's children, zombies included (proc(5), `/proc/pid/task/tid/children`)."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*"):
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:  # the thread ended meanwhile, or the kernel has no such file
            continue
    return found


def marked(value: str) -> set[int]:
    """The pids of all live processes whose environment was started with the test's mark."""
    needle = f"{MARK}={value}\0".encode()
    found: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (process / "environ").read_bytes():
                found.add(int(process.name))
        except OSError:  # ended meanwhile, or not ours to look at
            continue
    return found


def descriptors() -> dict[int, str]:
    """The open descriptors and what they are of, without the one that lists them."""
    found: dict[int, str] = {}
    directory = Path("/proc/self/fd")
    for link in list(directory.iterdir()) if directory.is_dir() else ():
        try:
            found[int(link.name)] = str(link.readlink())
        except OSError:  # the listing's own
            continue
    return found


@dataclass(frozen=True)
class Belongings:
    """What this process owns at one moment, outside pytest's own directories."""

    children: set[int]
    descendants: set[int]
    descriptors: dict[int, str]
    threads: set[threading.Thread]
    temporary: set[str]

    @classmethod
    def now(cls, temporary: Path, mark: str | None) -> Belongings:
        """Look at each kind; without a mark no descendant is looked for."""
        return cls(
            children=children(),
            descendants=marked(mark) if mark else set(),
            descriptors=descriptors(),
            threads=set(threading.enumerate()),
            temporary={path.name for path in temporary.iterdir()},
        )

    def beyond(self, before: Belongings) -> dict[str, object]:
        """Return what is here and was not `before`, by kind; empty when nothing is left."""
        opened = {fd: what for fd, what in self.descriptors.items() if before.descriptors.get(fd) != what}
        left: dict[str, object] = {
            "children": self.children - before.children,
            "descendants": self.descendants,
            "descriptors": opened,
            "threads": self.threads - before.threads,
            "temporary files": self.temporary - before.temporary,
        }
        return {kind: what for kind, what in left.items() if what}


def settle(before: Belongings, temporary: Path, mark: str | None) -> dict[str, object]:
    """Return what is still left when nothing is, or after `CLEARANCE` seconds, whichever comes first."""
    left = Belongings.now(temporary, mark).beyond(before)
    if not left:
        return left
    gc.collect()  # a cycle may hold a descriptor; its ResourceWarning is an error of its own
    deadline = time.monotonic() + CLEARANCE
    while (left := Belongings.now(temporary, mark).beyond(before)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return left


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A temporary directory of the session's own, so that whatever is left in it is ours (contract D1)."""
    directory = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(directory))
        patch.setattr(tempfile, "tempdir", None)
        yield directory


@pytest.fixture(scope="session", autouse=True)
def loops_were_used() -> None:
    """Have libuv open the signal pipe that it keeps for the process's life (`uv__signal_global_init`)."""
    for factory in pytest_asyncio_loop_factories().values():
        factory().close()


@pytest.fixture(autouse=True)
def nothing_left(
    request: pytest.FixtureRequest, temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test that leaves a child, descendant, descriptor, thread or temporary file.

    It is set up first and so looks last: after the loop was closed and all other fixtures were torn down.
    """
    pure = "sansio" in request.path.parts  # starts nothing (tests/test_layers.py), so /proc need not be searched
    mark = None if pure else uuid.uuid4().hex
    if mark:
        monkeypatch.setenv(MARK, mark)
    before = Belongings.now(temporary_directory, None)
    yield
    left = settle(before, temporary_directory, mark)
    assert not left, f"left behind: {left}"


@pytest_asyncio.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Fail a test that leaves a task: asyncio's runner would cancel it in silence."""
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks left behind: {left}"


@pytest.fixture(autouse=True)
def tasks_checked(request: pytest.FixtureRequest, nothing_left: None) -> None:  # noqa: ARG001 - orders the two
    """Ask for `no_task_left` where there is a loop."""
    if request.node.get_closest_marker("asyncio"):
        request.getfixturevalue("no_task_left")


@pytest.fixture
def next_of() -> NextOf:
    """Return a function that returns the next completion."""

    async def next_one(completions: AsyncIterator[Completion]) -> Completion:
        async with asyncio.timeout(PATIENCE):
            return await anext(completions)

    return next_one


@pytest.fixture
def none_is_left(next_of: NextOf) -> NoneIsLeft:
    """Return a function that checks that a new supervisor offers nothing but the end of its own job."""
    from supervisor import Supervisor  # noqa: PLC0415 - most tests need none of it

    async def check(directory: Path) -> None:
        async with Supervisor(directory) as supervisor:
            job = await supervisor.start(["true"])
            completion = await next_of(supervisor.completions())
            assert completion.receipt.capture_id == job.capture_id
            await completion.acknowledge()

    return check


@pytest.fixture(scope="session")
def program() -> Callable[..., list[str]]:
    """Return a function that returns the command for a program of tests/programs, with this process's imports."""
    code = "import runpy, sys; sys.path[:] = {!r}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    start = [sys.executable, "-c", code.format([*sys.path, str(PROGRAMS)])]
    return lambda name, *arguments: [*start, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]
