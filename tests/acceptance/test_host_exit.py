"""However a host ends, nothing that it ran stays: by itself, or by its guard where it can do nothing (F10)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE: Final = 30.0
TREE: Final = "setsid sh -c 'echo ready; exec sleep 1000' & exec sleep 1000"
"""A leader, and a process that left its group and session."""
STUBBORN: Final = "trap '' TERM; echo ready; while :; do sleep 1; done"


def alive(pid: int) -> bool:
    """Whether the process is more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def ignored(pid: int) -> int:
    """Return the signals that a process ignores, as its status has them."""
    status = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return int(next(line for line in status if line.startswith("SigIgn")).split()[1], 16)


def until(true: Callable[[], bool]) -> None:
    """Return when it is true; it is in /proc, and nobody sets an event."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def marked(value: str) -> list[int]:
    """Return the live processes that bear a mark of the test's."""
    found: list[int] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOST={value}\0".encode() in (directory / "environ").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


@dataclass
class Host:
    """A running host, its command, and its guard if it has one."""

    process: subprocess.Popen[str]
    mark: str
    pid: int
    guard: int | None

    def end(self) -> tuple[str, int]:
        """Return what it printed last and its code, once it ended and nothing of it lives."""
        rest, _ = self.process.communicate(timeout=PATIENCE)
        until(lambda: not any(map(alive, marked(self.mark))))
        return rest.strip(), self.process.returncode


@pytest.fixture
def start(loop_module: str, host_program: Callable[..., list[str]]) -> Iterator[Callable[..., Host]]:
    """Return a function that starts a host and returns once its command runs."""
    hosts: list[Host] = []

    def begin(way: str, script: str = TREE, *, guard: bool = False, grace: float = 20.0) -> Host:
        mark = f"{os.getpid()}-{len(hosts)}-{way}"
        command = host_program("ending_host", loop_module, way, "guard" if guard else "plain", "sh", "-c", script)
        environment = {**os.environ, "HOST": mark, "GRACE": str(grace)}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        host = Host(process, mark, pids[0], pids[1] if guard else None)
        hosts.append(host)
        return host

    yield begin
    for host in hosts:
        host.process.kill()
        host.process.communicate()
        for pid in marked(host.mark):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("way", "last", "code", "guard"),
    [
        ("return", "cancelled supervisor-shutdown", 0, True),
        ("raise", "cancelled supervisor-shutdown", 1, False),
        ("exit", "None None", 3, False),
        ("handler", "cancelled supervisor-shutdown", 1, False),
        ("interrupt", "cancelled supervisor-shutdown", -signal.SIGINT, False),
        ("dropped", "", 4, False),
        ("dropped", "", 4, True),
    ],
)
def test_nothing_stays_of_a_host_that_ends_by_itself(
    start: Callable[..., Host], way: str, last: str, code: int, *, guard: bool
) -> None:
    """Neither a descendant that left the group nor the guard; a loop that is dropped has its commands killed."""
    assert start(way, guard=guard).end() == (last, code)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_guard_ends_what_a_killed_host_ran(start: Callable[..., Host], number: int) -> None:
    """The whole tree, and then itself."""
    host = start("wait", guard=True)
    host.process.send_signal(number)
    assert host.end() == ("", -number)


@pytest.mark.parametrize("loop_module", ["asyncio"])
def test_the_guard_kills_what_does_not_hear(start: Callable[..., Host]) -> None:
    """After the command's own grace."""
    host = start("wait", STUBBORN, guard=True, grace=0.2)
    host.process.kill()
    assert host.end() == ("", -signal.SIGKILL)


@pytest.mark.parametrize("loop_module", ["asyncio"])
def test_the_guard_asks_first_and_continues_who_is_stopped(start: Callable[..., Host], tmp_path: Path) -> None:
    """What cleans up on TERM gets to; it must not write to a pipe that nobody reads any more."""
    told = tmp_path / "told"
    host = start(
        "wait", f"exec 2>/dev/null; trap 'echo >{told}; exit' TERM; echo ready; while :; do sleep 0.1; done", guard=True
    )
    os.kill(host.pid, signal.SIGSTOP)
    host.process.kill()
    assert host.end() == ("", -signal.SIGKILL)
    assert told.exists()


def test_a_guard_that_was_killed_is_missed(start: Callable[..., Host]) -> None:
    """The receipt of a job that it was to guard says so, and closing does not wait for it."""
    host = start("lost", guard=True)
    assert host.guard is not None
    os.kill(host.guard, signal.SIGKILL)
    assert host.end() == ("cancelled supervisor-shutdown no-guard no-guard", 0)


@pytest.mark.parametrize("loop_module", ["asyncio"])
def test_without_a_guard_a_killed_host_leaves_its_command(start: Callable[..., Host]) -> None:
    """As it is documented: nobody is left who could end it."""
    host = start("wait")
    host.process.kill()
    host.process.wait()
    assert alive(host.pid)


@pytest.mark.parametrize("loop_module", ["asyncio"])
def test_a_signal_for_all_does_not_end_the_guard(start: Callable[..., Host]) -> None:
    """It would be gone when it is needed."""
    host = start("wait", guard=True)
    assert host.guard is not None
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    wanted = sum(1 << number - 1 for number in numbers)
    until(lambda: ignored(host.guard or 0) & wanted == wanted)
    for number in numbers:
        os.kill(host.guard, number)
    host.process.kill()
    assert host.end() == ("", -signal.SIGKILL)


def test_a_killed_run_leaves_no_command(tmp_path: Path) -> None:
    """The command line has a guard."""
    place = str(Path(supervisor.__file__).parents[1])
    environment = {**os.environ, "HOST": f"{os.getpid()}-run", "PYTHONPATH": place}
    command = [sys.executable, "-m", "supervisor", "run", "--dir", str(tmp_path), "--shell", TREE]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=PATIENCE)
    until(lambda: not any(map(alive, marked(environment["HOST"]))))
