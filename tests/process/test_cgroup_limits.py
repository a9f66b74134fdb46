"""Limits on a whole tree by a cgroup, in a made-up hierarchy (cgroups(7)); what the kernel writes the test writes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor import ChildLimits, Supervisor
from supervisor.process import cgroup, limited
from supervisor.process.launch import Launch

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = 64 * 1024 * 1024


@pytest.fixture
def delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a directory that has controllers for its cgroups; this process is said to be in its `main`.

    A made-up cgroup gets the files that the kernel would put into it, and is removed with them.
    """
    cgroup.usable_subtree.cache_clear()
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path / "systemd")
    above = tmp_path / "v2" / "app"
    (above / "main").mkdir(parents=True)
    for directory in (above, above / "main"):
        (directory / "cgroup.procs").touch()
        (directory / "cgroup.subtree_control").write_text("cpu memory pids\n" if directory == above else "")
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/app/main\n")
    mount = f"30 24 0:26 / {tmp_path / 'v2'} rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
    (tmp_path / "self" / "mountinfo").write_text(mount)
    mkdir, rmdir = Path.mkdir, Path.rmdir
    files = ("cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max")

    def make(path: Path) -> None:
        mkdir(path)
        for name in files:
            (path / name).touch()
        (path / "memory.events").write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n")

    def remove(path: Path) -> None:
        for file in list(path.iterdir()):
            file.unlink()
        rmdir(path)

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", remove)
    root = cgroup.make_limited.__kwdefaults__
    monkeypatch.setitem(root, "root", tmp_path)
    yield above
    cgroup.usable_subtree.cache_clear()


def jobs_in(directory: Path) -> list[Path]:
    """Return the cgroups that were made for commands."""
    return list(directory.glob("spoolvisor-*"))


def test_the_limits_are_written_and_swap_is_no_way_around(delegated: Path) -> None:
    """In a cgroup beside our own, because one with processes cannot have controllers below it."""
    made = cgroup.make_limited("job", memory=MEMORY, pids=7)
    assert made is not None
    assert made.directory == delegated / "job"
    texts = {name: (made.directory / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max")}
    assert texts == {"memory.max": str(MEMORY), "memory.swap.max": "0", "pids.max": "7"}
    assert (made.directory / "memory.oom.group").read_text() == "1"
    made.end()
    assert not made.directory.exists()


def test_only_what_was_asked_for_is_set(delegated: Path) -> None:
    """And nothing is made for no limit."""
    assert cgroup.make_limited("job") is None
    made = cgroup.make_limited("job", pids=7)
    assert made is not None
    assert (made.directory / "memory.max").read_text() == ""
    made.end()
    assert sorted(path.name for path in delegated.iterdir()) == ["cgroup.procs", "cgroup.subtree_control", "main"]


def test_what_survives_goes_back_to_our_own(delegated: Path) -> None:
    """The directory above has controllers, so that no process can be in it."""
    made = cgroup.make_limited("job", pids=7)
    assert made is not None
    (made.directory / "cgroup.procs").write_text("4711\n")
    made.remove()
    assert (delegated / "main" / "cgroup.procs").read_text() == "4711"
    assert (delegated / "cgroup.procs").read_text() == ""


def test_there_is_none_without_the_controllers(delegated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where the directory above is somebody else's, nor where a limit cannot be written."""
    (delegated / "cgroup.subtree_control").write_text("pids\n")
    assert cgroup.make_limited("job", memory=MEMORY, pids=7) is None
    (delegated / "cgroup.subtree_control").write_text("memory pids\n")
    (delegated / "main" / "cgroup.subtree_control").unlink()
    assert cgroup.make_limited("job", pids=7) is None
    (delegated / "main" / "cgroup.subtree_control").touch()
    (delegated / "job").mkdir()
    assert cgroup.make_limited("job", pids=7) is None
    write = cgroup._write
    monkeypatch.setattr(cgroup, "_write", lambda path, text: path.name != "pids.max" and write(path, text))
    assert cgroup.make_limited("other", pids=7) is None
    assert not (delegated / "other").exists()
    monkeypatch.setattr(os, "access", lambda path, *_: not str(path).startswith(f"{delegated}/cgroup"))
    cgroup.usable_subtree.cache_clear()
    assert cgroup.make_limited("third", pids=7) is None
    (delegated / "job").rmdir()


@pytest.mark.usefixtures("delegated")
def test_a_command_is_in_its_cgroup_before_it_is_the_command() -> None:
    """The trampoline puts itself there first of all; a failed start leaves none."""
    launch = Launch(("true",), child_limits=ChildLimits(memory_bytes=MEMORY, nice=3))
    enclosure, unsupported = limited.enclose(launch)
    assert enclosure is not None
    assert unsupported == ()
    assert launch.child_limits is not None
    names = [name for name, _ in limited.steps(launch.child_limits, enclosure)]
    assert names == ["memory_bytes", "nice"]
    enclosure.end()


@pytest.mark.asyncio
async def test_a_tree_that_was_killed_for_its_memory_says_so(delegated: Path) -> None:
    """State `cancelled`, reason `memory` (contract A3); the kernel's part is the test's here."""
    script = 'trap "" TERM; echo ready; read line; kill -KILL $$'
    async with Supervisor() as supervisor:
        job = await supervisor.start(
            script, shell=True, stdin="pipe", child_limits=ChildLimits(memory_bytes=MEMORY), window_bytes=100
        )
        async for _ in job.live("stdout"):
            break
        (made,) = jobs_in(delegated)
        assert (made / "cgroup.procs").read_text() == "0"
        (made / "cgroup.procs").write_text("")
        (made / "memory.events").write_text("oom 1\noom_kill 2\n")
        await job.write(b"go\n")
        receipt = await job.wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("cancelled", "memory")
    assert (receipt.process.signal, receipt.process.forced) == (9, False)
    assert receipt.limitations == ("tree-by-snapshot",)
    assert not made.exists()


@pytest.mark.asyncio
async def test_an_end_with_memory_left_is_an_ordinary_one(delegated: Path) -> None:
    """The cgroup is gone with the command, also after a start that failed or was cancelled."""
    limits = ChildLimits(memory_bytes=MEMORY)
    async with Supervisor() as supervisor:
        assert (await supervisor.run(["true"], child_limits=limits)).check().limitations == ()
        with pytest.raises(Exception, match="not found"):
            await supervisor.run(["no-such-program"], child_limits=limits)
        task = asyncio.create_task(supervisor.run(["sleep", "1000"], child_limits=limits))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
    assert jobs_in(delegated) == []
