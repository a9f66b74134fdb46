"""A cgroup of version 2 for what forks faster than it is killed (contract F3, cgroups(7)).

No process leaves its cgroup by a fork, a new session or an empty environment, and `cgroup.kill` ends all of it at once,
stopped and frozen members too. Putting each command into one at its start would cost up to 11 ms, because the kernel
waits for a grace period of its own, so one is made only for a tree that outlives a few rounds of SIGKILL.

A subtree is ours if the directory of our own cgroup may be written and, on a system that systemd runs, was delegated to
us: the other directories are systemd's alone, writable or not (systemd, CGROUP_DELEGATION). No controller is switched
on, so limits and accounts stay those of our own cgroup.

A command with limits on its whole tree is in one from its start. The controllers must be on in the directory above it,
and that directory can have no processes of its own (cgroups(7), "no internal processes"): so it is looked for from our
own cgroup upwards, as far as the directories are ours.
"""

from __future__ import annotations

import functools
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .proc import ROOT, process, read

if TYPE_CHECKING:
    from ..sansio.membership import Identity

SYSTEMD: Final = Path("/run/systemd/system")
"""Exists where systemd is the init of this system: sd_booted(3)."""
DELEGATED: Final = ("user.delegate", "trusted.delegate")
"""What systemd sets to "1" on a directory that it gave away."""
REMOVAL_WAITS: Final = (0.001, 0.002, 0.004, 0.008)
"""Seconds. A process that was killed is in its cgroup until its very end, and a cgroup with a process stays."""
PROCS_BYTES: Final = 4 * 1024 * 1024
"""Of a file of the kernel's: some ten thousand lines of `mountinfo`, and all pids that there can be."""


class Enclosure:
    """A cgroup for members of one command's tree."""

    def __init__(self, directory: Path, root: Path = ROOT, home: Path | None = None) -> None:
        self.directory: Final = directory
        self._home: Final = home or directory.parent
        """Where members go that outlive it."""
        self._root: Final = root

    def take(self, target: Identity) -> bool:
        """Move a process into it; whether it was there to be moved. Whatever it starts from now on is in it, too."""
        if not self._is_there(target) or not _write(self.directory / "cgroup.procs", str(target.pid).encode()):
            return False
        found = process(target.pid, self._root)
        if found is not None and found.identity != target:  # the pid changed hands just now
            self._release(target.pid)
            return False
        return True

    def members(self) -> frozenset[int]:
        """Return the pids in it, and in cgroups that somebody made below it."""
        found: set[int] = set()
        for directory in self._directories():
            with suppress(OSError):
                found.update(map(int, read(f"{directory}/cgroup.procs", PROCS_BYTES).split()))
        return frozenset(found - {0})  # 0: in a pid namespace that we do not see

    def kill(self) -> bool:
        """Kill all that is in it at once; whether the kernel took the order."""
        return _write(self.directory / "cgroup.kill", b"1")

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed a member because the memory of all of them was used up."""
        try:
            events = read(str(self.directory / "memory.events"), PROCS_BYTES).split()
        except OSError:
            return False
        return b"oom_kill" in events[:-1] and events[events.index(b"oom_kill") + 1] != b"0"

    def end(self) -> None:
        """Kill what is in it and remove it, as far as that is possible at once."""
        self.kill()
        self.remove()

    def remove(self) -> None:
        """Remove it; what still lives in it goes back to where it was."""
        for pid in self.members():
            self._release(pid)
        for directory in reversed(self._directories()):
            for pause in REMOVAL_WAITS:
                try:
                    directory.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(pause)

    def _is_there(self, target: Identity) -> bool:
        found = process(target.pid, self._root)
        return found is not None and found.identity == target

    def _release(self, pid: int) -> None:
        _write(self._home / "cgroup.procs", str(pid).encode())

    def _directories(self) -> list[Path]:
        return [Path(name) for name, _, _ in os.walk(self.directory)]


def make(name: str, root: Path = ROOT) -> Enclosure | None:
    """Make an empty cgroup; None where none is to be had."""
    subtree = usable_subtree(root)
    if subtree is None:
        return None
    directory = subtree / name
    try:
        directory.mkdir()
    except OSError:
        return None
    enclosure = Enclosure(directory, root)
    if (directory / "cgroup.kill").exists():
        return enclosure
    enclosure.remove()  # before Linux 5.14 there is nothing in it that signals do not do as well
    return None


def make_limited(
    name: str, *, memory: int | None = None, pids: int | None = None, root: Path = ROOT
) -> Enclosure | None:
    """Make an empty cgroup with limits in bytes and processes; None where none is to be had, or no limit is given.

    Swap is no way around the one on memory, and a tree that goes past it is killed as one.
    """
    files = {"memory.max": memory, "pids.max": pids}
    wanted = {file: value for file, value in files.items() if value is not None}
    home = usable_subtree(root)
    parent = None if home is None or not wanted else _with_controllers(home, {file.split(".")[0] for file in wanted})
    if parent is None:
        return None
    enclosure = Enclosure(parent / name, root, home)
    try:
        enclosure.directory.mkdir()
    except OSError:
        return None
    if all(_write(enclosure.directory / file, str(value).encode()) for file, value in wanted.items()):
        if memory is not None:
            _write(enclosure.directory / "memory.swap.max", b"0")  # there is none where swap is not accounted
            _write(enclosure.directory / "memory.oom.group", b"1")
        return enclosure
    enclosure.remove()
    return None


def _with_controllers(directory: Path, wanted: set[str]) -> Path | None:
    """Return the nearest directory at or above `directory` that is ours and whose cgroups have the controllers."""
    while is_ours(directory):
        try:
            controllers = read(str(directory / "cgroup.subtree_control"), PROCS_BYTES).decode().split()
        except OSError:
            return None
        if wanted <= {*controllers}:
            return directory
        directory = directory.parent
    return None


def is_ours(directory: Path) -> bool:
    """Whether cgroups may be made in a directory."""
    if not all(os.access(path, os.W_OK) for path in (directory, directory / "cgroup.procs")):
        return False
    return not SYSTEMD.exists() or _was_delegated(directory)


@functools.cache
def usable_subtree(root: Path = ROOT) -> Path | None:
    """Return the directory in which cgroups may be made; None where there is none. Asked once for each process."""
    directory = own_directory(root)
    return directory if directory is not None and is_ours(directory) else None


def _was_delegated(directory: Path) -> bool:
    for name in DELEGATED:
        with suppress(OSError):
            if os.getxattr(directory, name) == b"1":
                return True
    return False


def own_directory(root: Path = ROOT) -> Path | None:
    """Return the directory of this process's cgroup, by its mount point, which is not always `/sys/fs/cgroup`."""
    try:
        groups = read(f"{root}/self/cgroup", PROCS_BYTES).splitlines()
        mounts = read(f"{root}/self/mountinfo", PROCS_BYTES).splitlines()
    except OSError:
        return None
    path = next((line.removeprefix(b"0::") for line in groups if line.startswith(b"0::")), None)
    if path is None:
        return None
    for line in mounts:
        before, _, after = line.partition(b" - ")
        fields = before.split(b" ")
        if after.split(b" ")[0] == b"cgroup2" and len(fields) > _MOUNT_POINT:
            below = os.path.relpath(os.fsdecode(path), os.fsdecode(fields[_MOUNT_POINT - 1]))
            if not below.startswith(".."):
                return Path(os.path.normpath(Path(os.fsdecode(fields[_MOUNT_POINT])) / below))
    return None


def _write(path: Path, text: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


_MOUNT_POINT: Final = 4
"""proc_pid_mountinfo(5): the fifth field; before it the root of the mount within the hierarchy."""
