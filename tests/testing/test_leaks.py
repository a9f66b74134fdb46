"""`assert_no_leaks`, shown failing for each kind, and waiting for an end that is on its way."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from supervisor import Supervisor
from supervisor.testing import FakeChild, assert_no_leaks, leaks

HASTE = 0.05
"""Seconds in which what is left here does not go."""


def test_a_descriptor_that_is_left_is_named() -> None:
    """With what it is of; one that was open before is none."""
    before = os.open(os.devnull, os.O_RDONLY)
    told = r"left behind:\n  a descriptor: \d+ \(/dev/null\)$"
    with pytest.raises(AssertionError, match=told), assert_no_leaks(clearance=HASTE):
        left = os.open(os.devnull, os.O_RDONLY)
    os.close(left)
    os.close(before)


def test_a_number_that_is_of_something_else_now_is_a_leak() -> None:
    """What was closed does not make up for what was opened."""
    before = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(AssertionError, match=f"a descriptor: {before}"), assert_no_leaks(clearance=HASTE):  # noqa: PT012 - what is left is the point
        os.close(before)
        assert os.open("/dev/zero", os.O_RDONLY) == before
    os.close(before)


def test_a_child_that_is_left_is_named_and_a_zombie_too() -> None:
    """With its pid and name."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with pytest.raises(AssertionError, match=r"a child process: \d+ \("), assert_no_leaks(clearance=HASTE):
        child = subprocess.Popen(command, stdin=subprocess.PIPE)
    child.communicate()
    with pytest.raises(AssertionError, match=r"a child process: \d+ \("), assert_no_leaks(clearance=HASTE):  # noqa: PT012 - what is left is the point
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    child.wait()


def test_a_thread_that_is_left_is_named_and_one_that_ends_soon_is_none() -> None:
    """The end of the second is waited for."""
    over = threading.Event()
    with pytest.raises(AssertionError, match=r"a thread: lingering"), assert_no_leaks(clearance=HASTE):  # noqa: PT012 - what is left is the point
        thread = threading.Thread(target=over.wait, name="lingering")
        thread.start()
    with assert_no_leaks():
        threading.Timer(0.05, over.set).start()
    thread.join()


def test_a_cgroup_that_is_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked for below our own group; where there is no unified hierarchy, there is none."""
    groups: set[str] = set()
    monkeypatch.setattr(leaks, "_cgroups", lambda: set(groups))
    with pytest.raises(AssertionError, match=f"a cgroup: {tmp_path}"), assert_no_leaks(clearance=HASTE):
        groups.add(str(tmp_path))


@pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="the system has no control groups")
def test_cgroups_are_read_from_the_unified_hierarchy_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those below our own group; what is mounted beside it, or instead, has everybody's groups."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    ours = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), None)
    if ours is None:
        pytest.skip("the system has no unified hierarchy")
    (tmp_path / "memory" / "others").mkdir(parents=True)
    unified = tmp_path / "unified"
    (unified / ours / "mine" / "below").mkdir(parents=True)
    monkeypatch.setattr(leaks, "HIERARCHIES", (tmp_path, unified))
    assert leaks._cgroups() == set()
    (unified / "cgroup.controllers").touch()
    assert leaks._cgroups() == {str(unified / ours / "mine"), str(unified / ours / "mine" / "below")}


@pytest.mark.asyncio
async def test_looks_that_take_long_leave_time_for_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stands still, looking alone takes longer than the clearance."""
    monkeypatch.setattr(leaks, "_cgroups", lambda: set(time.sleep(2 * HASTE) or ()))
    async with assert_no_leaks(clearance=HASTE):
        asyncio.get_running_loop().create_task(asyncio.sleep(HASTE))


def test_a_call_that_checks_nothing_says_so() -> None:
    """`assert_no_leaks()` alone reads as if it did."""
    with pytest.warns(RuntimeWarning, match="checks a block"):
        assert_no_leaks()


@pytest.mark.asyncio
async def test_a_task_that_is_left_is_named_and_one_that_ends_soon_is_none() -> None:
    """Only `async with` lets the second end."""
    over = asyncio.Event()
    with pytest.raises(AssertionError, match=r"a task: <Task"):
        async with assert_no_leaks(clearance=HASTE):
            task = asyncio.create_task(over.wait())
    over.set()
    await task
    async with assert_no_leaks():
        asyncio.get_running_loop().create_task(asyncio.sleep(0.02))


@pytest.mark.asyncio
async def test_another_error_is_not_hidden() -> None:
    """What went wrong in the block is what the test shows, whatever it left."""
    with pytest.raises(KeyError):  # noqa: PT012 - what is left is the point
        async with assert_no_leaks():
            left = os.open(os.devnull, os.O_RDONLY)
            raise KeyError
    os.close(left)
    with pytest.raises(KeyError), assert_no_leaks():  # noqa: PT012 - what is left is the point
        left = os.open(os.devnull, os.O_RDONLY)
        raise KeyError
    os.close(left)


@pytest.mark.asyncio
async def test_a_supervisor_that_was_closed_leaves_nothing_and_one_that_was_not_does(tmp_path: Path) -> None:
    """A real command and a fake one, with files."""
    async with assert_no_leaks(), Supervisor(tmp_path) as supervisor:
        await supervisor.start([sys.executable, "-c", "import time; time.sleep(60)"])
    child = FakeChild()
    supervisor = Supervisor(tmp_path, spawn=child.spawn)
    with pytest.raises(AssertionError, match=r"a task: .*spoolvisor job 1"):  # noqa: PT012 - what is left is the point
        async with assert_no_leaks(clearance=HASTE):
            await supervisor.__aenter__()
            await supervisor.start(["x"])
    await supervisor.__aexit__(None, None, None)
