"""What `/proc` shows, from made-up trees of files and from the real one (contract F2, F3)."""

from __future__ import annotations

import os
from pathlib import Path

from supervisor.process import proc
from supervisor.sansio.membership import VARIABLE


def add(root: Path, pid: int, *, name: str = "sh", state: str = "S", start: int = 1000, environ: bytes = b"") -> Path:
    """Make a process."""
    directory = root / str(pid)
    (directory / "fd").mkdir(parents=True)
    (directory / "stat").write_text(f"{pid} ({name}) {state} 1 {pid} {pid} 0 -1 0 {'0 ' * 12}{start} 0")
    (directory / "environ").write_bytes(environ)
    return directory


def test_what_cannot_be_read_is_no_process(tmp_path: Path) -> None:
    """It vanished, is cut short, or was none; a name forges nothing."""
    add(tmp_path, 11, name="a) R 1 5 (b", start=1001)
    add(tmp_path, 13, name="x) S 1 10 (y", state="Z", start=1002)
    (tmp_path / "15").mkdir()
    (tmp_path / "16" / "stat").mkdir(parents=True)
    add(tmp_path, 17)
    (tmp_path / "17" / "stat").write_text("17 (cut")
    found = {pid: proc.process(pid, tmp_path) for pid in range(11, 18)}
    assert {pid: process.identity.start for pid, process in found.items() if process} == {11: 1001, 13: 1002}


def test_the_mark_is_told_apart_from_none_and_from_nothing_to_see(tmp_path: Path) -> None:
    """An environment that is empty may belong to a process in the middle of an exec."""
    mark = VARIABLE.encode() + b"=outer:m\0"
    add(tmp_path, 10, environ=mark)
    add(tmp_path, 11, environ=b"A=m\0")
    add(tmp_path, 12)
    assert [proc.marked(pid, "m", tmp_path) for pid in (10, 11, 12, 13)] == [True, False, None, False]


def test_the_numbers_of_the_system(tmp_path: Path) -> None:
    """Where pids begin anew, and which was given out last; what is hidden is as if they had, or unknown."""
    assert (proc.pid_max(tmp_path), proc.newest(tmp_path)) == (0, None)
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/pid_max").write_text("4194304\n")
    (tmp_path / "loadavg").write_text("0.1 0.2 0.3 1/99 4711\n")
    assert (proc.pid_max(tmp_path), proc.newest(tmp_path)) == (4194304, 4711)
    (tmp_path / "loadavg").write_text("")
    assert proc.newest(tmp_path) is None
    assert proc.newest() is not None


def test_a_program_is_told_by_its_path(tmp_path: Path) -> None:
    """It changes with an exec; where it is hidden, nothing does."""
    assert proc.program(os.getpid()) == str(Path("/proc/self/exe").readlink())
    assert proc.program(1, tmp_path) == ""


def test_only_the_writing_end_of_a_pipe_holds_it() -> None:
    """This process has both ends of two pipes, and gives one writing end up; a fork of the host has our reading end."""
    first, second = os.pipe(), os.pipe()
    inodes = [os.fstat(end).st_ino for end, _ in (first, second)]
    assert proc.holders((os.getpid(),), inodes[:1]) == (os.getpid(),)
    os.close(first[1])
    assert proc.holders((os.getpid(),), inodes[:1]) == ()
    assert proc.holders((os.getpid(),), inodes) == (os.getpid(),)
    for end in (first[0], *second):
        os.close(end)


def test_without_proc_nobody_can_know(tmp_path: Path) -> None:
    """None, and never "nobody" (contract A4, F3)."""
    nowhere = tmp_path / "nowhere"
    assert proc.children(1, nowhere) is None
    assert proc.process(1, nowhere) is None
    assert proc.holders((1,), (2,), nowhere) == ()


def test_this_process_is_seen_as_it_is() -> None:
    """The real /proc: parent, group and session, and a long environment is read to its end."""
    own = proc.process(os.getpid())
    assert own is not None
    assert (own.parent, own.group, own.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    parent = proc.process(os.getppid())
    assert parent is None or parent.identity.start <= own.identity.start
    assert proc.read("/proc/self/environ", 2**22) == Path("/proc/self/environ").read_bytes()
    assert len(proc.read("/proc/self/maps", 2**22)) > 4096
