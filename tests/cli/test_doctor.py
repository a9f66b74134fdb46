"""`doctor`: what is wrong is found, and nothing is changed by looking."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

import supervisor
from supervisor.cli import checks
from supervisor.cli.checks import Finding

if TYPE_CHECKING:
    import pytest
    from conftest import CommandLine

LOOKS = ["names", "loop", "engine", "directory", "barrier", "locks", "pidfd", "cgroup"]


def refuse(*_: object) -> None:
    """Be a system call that this file system has not."""
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def test_a_line_for_each_look_and_nothing_is_made(spoolvisor: CommandLine) -> None:
    """All is well here, or works with less; the directory comes with the first run."""
    done = spoolvisor("doctor")
    lines = [line.partition(": ") for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert [head.split()[1] for head, _, _ in lines] == LOOKS
    assert {head.split()[0] for head, _, _ in lines} <= {"ok", "warn"}
    assert f"ok directory: {spoolvisor.kept}, to be made by the first run" in done.out
    assert list(spoolvisor.place.iterdir()) == []


def test_a_collision_of_the_import_names_fails(spoolvisor: CommandLine) -> None:
    """Another distribution owns one of them: exit 1, and it is named; so does a directory that others may write."""
    installed = spoolvisor.place / "site" / "supervisor-4.2.5.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: supervisor\nVersion: 4.2.5\n")
    (installed / "top_level.txt").write_text("supervisor\n")
    spoolvisor.kept.mkdir()
    spoolvisor.kept.chmod(0o777)
    path = os.pathsep.join((str(Path(supervisor.__file__).parents[1]), str(installed.parent)))
    done = spoolvisor("doctor", variables={"PYTHONPATH": path})
    failed = [line for line in done.out.splitlines() if line.startswith("fail ")]
    assert (done.code, len(failed)) == (1, 2)
    assert failed[0].startswith("fail names: supervisor is also of supervisor: install spoolvisor into")
    assert failed[1].startswith(f"fail directory: {spoolvisor.kept}: ")


def test_another_package_in_the_way_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `adapters` that lies before ours on the path is imported instead of it."""
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(checks.util.sys.modules, "adapters", raising=False)
    finding = checks.names({})
    assert finding.verdict == "fail"
    assert f"adapters is imported from {tmp_path / 'adapters'}" in finding.text


def test_our_own_distribution_is_no_collision() -> None:
    """Installed, it owns both names."""
    ours = {"supervisor": ["spoolvisor"], "adapters": ["spoolvisor"]}
    assert checks.names(ours) == Finding("ok", "supervisor and adapters are ours alone")


def test_a_system_that_gives_less_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No uvloop, no pidfd, no locks, no unnamed files, no barrier: all of it works, with less."""
    with monkeypatch.context() as patch:
        patch.setattr(checks, "loop_factory", lambda: None)
        patch.setattr(checks, "pidfd_supported", lambda: False)
        patch.setattr(fcntl, "flock", refuse)
        patch.setattr(checks.Files, "sync_directory", refuse)
        found = [checks.loop(), checks.pidfd(), checks.locks(tmp_path), checks.barrier(tmp_path)]
    assert [finding.verdict for finding in found] == ["warn"] * 4
    monkeypatch.setattr(os, "open", refuse)
    assert checks.locks(tmp_path).verdict == "warn"


def test_a_disk_that_fails_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a sync is not a missing barrier, and one look's error keeps no other from being taken."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(checks.Files, "sync_directory", fail)
    assert checks.barrier(tmp_path).verdict == "fail"
    monkeypatch.setattr(checks.Files, "lock", fail)
    assert checks.contained(lambda: checks.locks(tmp_path)).verdict == "fail"


def test_a_directory_that_cannot_be_made_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest one above it is what says so."""
    wanted = tmp_path / "a" / "b"
    assert checks.nearest_directory(wanted) == tmp_path
    assert checks.directory(wanted, tmp_path).verdict == "ok"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert checks.directory(wanted, tmp_path) == Finding("fail", f"{tmp_path} cannot be written to")


def test_control_groups_are_looked_for_where_they_are(tmp_path: Path) -> None:
    """None, version 1 only, not mounted, or ours to use (cgroups(7))."""
    membership, root = tmp_path / "cgroup", tmp_path / "fs"
    assert checks.cgroup(membership, root) == Finding("warn", "v2 is not there")
    membership.write_text("4:memory:/x\n")
    assert checks.cgroup(membership, root).verdict == "warn"
    membership.write_text("4:memory:/x\n0::/user/shell\n")
    assert checks.cgroup(membership, root).verdict == "warn"
    (root / "user" / "shell").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("")
    assert checks.cgroup(membership, root) == Finding("warn", "v2, but /user/shell is not writable")
    (root / "user" / "shell" / "cgroup.procs").write_text("")
    assert checks.cgroup(membership, root) == Finding("ok", "v2, and /user/shell is writable")
