"""What `/proc` shows of one process: kinship, its environment's mark, the pipes that it holds (contract F2, F3).

Reading it costs about 10 µs for each process that is looked at. Nothing here raises for a process that ends meanwhile
or belongs to somebody else: it is then not seen, or not seen to be marked.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..sansio.membership import Process, names_mark, parse_stat

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ROOT: Final = Path("/proc")
STAT_BYTES: Final = 1024
"""52 numbers and a name of 15 bytes are about 300."""
ENVIRONMENT_BYTES: Final = 4 * 1024 * 1024
"""An argument list and its environment have at most a quarter of the stack's limit, mostly 2 MiB (execve(2))."""


def read(path: str, most: int) -> bytes:
    """Return the beginning of a file of `/proc`. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(descriptor, most)
        # One read gives at most a page, or less where the file is made line by line.
        while len(text) > STAT_BYTES and len(text) < most and (more := os.read(descriptor, most)):
            text += more
    finally:
        os.close(descriptor)
    return text


def process(pid: int, root: Path = ROOT) -> Process | None:
    """Return what the system shows of one process, zombies included; None if there is none, or nothing to see."""
    try:
        return parse_stat(read(f"{root}/{pid}/stat", STAT_BYTES))
    except (OSError, ValueError):  # ESRCH: it ended since the open
        return None


def marked(pid: int, mark: str, root: Path = ROOT) -> bool | None:
    """Whether the environment with which the process was started names the job; False if we may not see it.

    None if it is empty: cleared, or not there yet, in the middle of an exec.
    """
    try:
        environment = read(f"{root}/{pid}/environ", ENVIRONMENT_BYTES)
    except OSError:
        return False
    return names_mark(environment, mark) if environment else None


def program(pid: int, root: Path = ROOT) -> str:
    """Return the path of the program that the process runs, which changes with an exec; empty if we may not see it."""
    try:
        return os.readlink(f"{root}/{pid}/exe")
    except OSError:
        return ""


def newest(root: Path = ROOT) -> int | None:
    """Return the pid that was given out last: it changes when a process or thread is started (proc_loadavg(5))."""
    try:
        return int(read(f"{root}/loadavg", STAT_BYTES).split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def children(pid: int, root: Path = ROOT) -> frozenset[int] | None:
    """Return the pids of a process's children, zombies included; None where the kernel does not tell."""
    found: set[int] = set()
    try:
        for task in os.listdir(f"{root}/{pid}/task"):
            found.update(map(int, read(f"{root}/{pid}/task/{task}/children", STAT_BYTES * STAT_BYTES).split()))
    except OSError:
        return None
    return frozenset(found)


def pid_max(root: Path) -> int:
    """Return where pids begin anew; 0 if that is hidden, as if they had."""
    try:
        return int(read(f"{root}/sys/kernel/pid_max", 32))
    except (OSError, ValueError):
        return 0


def holders(pids: Iterable[int], held: Collection[int | str], root: Path = ROOT) -> tuple[int, ...]:
    """Return those of `pids` that have one of the pipes, given by inode, or paths open for writing."""
    targets = frozenset(f"pipe:[{what}]" if isinstance(what, int) else what for what in held)
    return tuple(pid for pid in pids if _writes_to(f"{root}/{pid}/fd", targets))


def _writes_to(directory: str, targets: frozenset[str]) -> bool:
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    return any(_is_writer(f"{directory}/{name}", targets) for name in names)


def _is_writer(link: str, targets: frozenset[str]) -> bool:
    """Whether a link of `/proc/<pid>/fd` leads to a target and is open for writing; its mode says that, proc(5).

    A fork of the host may have copied our reading end: such a process holds nothing open.
    """
    try:
        return os.readlink(link) in targets and bool(os.lstat(link).st_mode & stat.S_IWUSR)
    except OSError:
        return False
