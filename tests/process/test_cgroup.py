"""A cgroup for what forks faster than it is killed, where a subtree is ours (contract F3, cgroups(7))."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from supervisor.process import cgroup, proc
from supervisor.sansio.membership import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from supervisor.process.cgroup import Enclosure


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """What one test's system offers is not another's."""
    cgroup.usable_subtree.cache_clear()
    yield
    cgroup.usable_subtree.cache_clear()


@pytest.fixture
def enclosure() -> Iterator[Enclosure]:
    """Yield a real cgroup."""
    made = cgroup.make(f"spoolvisor-test-{os.getpid()}")
    if made is None:
        pytest.skip("no writable subtree of cgroups here")
    yield made
    deadline = time.monotonic() + 30
    while made.directory.exists() and time.monotonic() < deadline:
        made.remove()  # members that were killed may not have left it yet


def sleeper() -> tuple[subprocess.Popen[bytes], Identity]:
    """Start a process; return it with its identity."""
    process = subprocess.Popen(["sleep", "1000"])
    found = proc.process(process.pid)
    assert found is not None
    return process, found.identity


def test_all_that_is_in_it_ends_at_once(enclosure: Enclosure) -> None:
    """What is started by a member is a member, whatever session it has."""
    command = ["sh", "-c", "read go; setsid sleep 1000 & echo $!; exec sleep 1000"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    found = proc.process(process.pid)
    assert found is not None
    assert enclosure.take(found.identity)
    process.stdin.write("go\n")
    process.stdin.flush()
    other = int(process.stdout.readline())
    assert enclosure.members() == {process.pid, other}
    assert enclosure.kill()
    assert process.wait() == -signal.SIGKILL
    assert process.stdout.read() == ""  # the other one has let go of it, too
    process.stdin.close()
    process.stdout.close()


def test_what_is_alive_at_its_removal_goes_back(enclosure: Enclosure) -> None:
    """And the cgroups that somebody made in it are removed as well."""
    process, identity = sleeper()
    before = proc.read(f"/proc/{process.pid}/cgroup", 4096)
    assert enclosure.take(identity)
    assert proc.read(f"/proc/{process.pid}/cgroup", 4096) != before
    (enclosure.directory / "below").mkdir()
    enclosure.remove()
    assert not enclosure.directory.exists()
    assert proc.read(f"/proc/{process.pid}/cgroup", 4096) == before
    assert not enclosure.kill()
    process.kill()
    process.wait()


def test_a_process_that_is_not_the_one_that_was_meant_stays_where_it_is(
    enclosure: Enclosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pid was given away before it was moved, or in that very moment: then it is moved back."""
    process, identity = sleeper()
    before = proc.read(f"/proc/{process.pid}/cgroup", 4096)
    stale = Identity(identity.pid, identity.start - 1)
    assert not enclosure.take(stale)
    assert proc.read(f"/proc/{process.pid}/cgroup", 4096) == before
    found = proc.process(process.pid)
    assert found is not None
    answers = [found, replace(found, identity=stale)]
    monkeypatch.setattr(cgroup, "process", lambda *_: answers.pop())
    assert not enclosure.take(stale)
    assert answers == []
    assert proc.read(f"/proc/{process.pid}/cgroup", 4096) == before
    process.kill()
    process.wait()
    monkeypatch.undo()
    assert not enclosure.take(identity)


def system(root: Path, mounts: str, groups: str = "0::/user/mine\n") -> Path:
    """Make a /proc that tells of cgroups."""
    (root / "self").mkdir()
    (root / "self" / "mountinfo").write_text(mounts)
    (root / "self" / "cgroup").write_text(groups)
    return root


def mount(point: Path, *, root: str = "/", kind: str = "cgroup2") -> str:
    """One line of mountinfo."""
    return f"30 24 0:26 {root} {point} rw,relatime shared:9 - {kind} cgroup2 rw\n"


def test_the_mount_is_found_wherever_it_is(tmp_path: Path) -> None:
    """Beside those of version 1, and where only a part of the hierarchy is mounted (containers)."""
    lines = "short - cgroup2\n" + mount(tmp_path / "v1", kind="cgroup") + mount(tmp_path / "v2")
    assert cgroup.own_directory(system(tmp_path, lines)) == tmp_path / "v2/user/mine"
    (tmp_path / "self/mountinfo").write_text(mount(tmp_path / "v2", root="/user"))
    assert cgroup.own_directory(tmp_path) == tmp_path / "v2/mine"
    (tmp_path / "self/mountinfo").write_text(mount(tmp_path / "v2", root="/other"))
    assert cgroup.own_directory(tmp_path) is None
    (tmp_path / "self/cgroup").write_text("3:cpu:/\n")
    assert cgroup.own_directory(tmp_path) is None
    assert cgroup.own_directory(tmp_path / "nowhere") is None


@pytest.fixture
def subtree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return our cgroup's directory in a made-up system without systemd."""
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path / "systemd")
    own = tmp_path / "v2/user/mine"
    own.mkdir(parents=True)
    (own / "cgroup.procs").touch()
    system(tmp_path, mount(tmp_path / "v2"))
    return own


def test_a_subtree_is_ours_if_it_can_be_written(tmp_path: Path, subtree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked once: it costs more than a spawn has to give."""
    assert cgroup.usable_subtree(tmp_path) == subtree
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cgroup.usable_subtree(tmp_path) == subtree
    cgroup.usable_subtree.cache_clear()
    assert cgroup.usable_subtree(tmp_path) is None
    assert cgroup.make("a", tmp_path) is None


def test_where_systemd_runs_the_subtree_must_have_been_given_to_us(
    tmp_path: Path, subtree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others are its own, also those that our user may write."""
    (tmp_path / "systemd").mkdir()
    assert cgroup.usable_subtree(tmp_path) is None
    cgroup.usable_subtree.cache_clear()
    monkeypatch.setattr(os, "getxattr", lambda _path, name: b"1" if name == "user.delegate" else b"")
    assert cgroup.usable_subtree(tmp_path) == subtree


def test_a_kernel_without_a_kill_for_cgroups_is_of_no_use(tmp_path: Path, subtree: Path) -> None:
    """Before Linux 5.14; what was made for it is removed, and a directory that cannot be made is none."""
    assert cgroup.make("a", tmp_path) is None
    assert sorted(path.name for path in subtree.iterdir()) == ["cgroup.procs"]
    (subtree / "b").touch()
    assert cgroup.make("b", tmp_path) is None
