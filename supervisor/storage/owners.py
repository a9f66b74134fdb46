"""Who owns live captures: one locked file per supervisor, and how to tell whether its owner lives (contract D6).

Liveness is a held flock(2), never an mtime or a bare pid: the kernel lets go of it however the process ends. The file
also says who held it (boot id, pid namespace, pid, start time), for people and for a lock that cannot be asked. POSIX
record locks would be lost as soon as any other descriptor of the file is closed (fcntl(2)).
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from dataclasses import dataclass
from typing import Final

from .descriptor import Descriptor
from .directory import are_one, check_file, close_quietly, create_private_file, unlink_quietly
from .faults import UnsafeDirectoryError
from .files import UNSUPPORTED, Files, rename_noreplace, write_all

SUFFIX: Final = ".owner"
UNLOCKED: Final = "owner-lock-unsupported"
"""The limitation that is named where the file system has no locks: others cannot tell whether we live."""
LOCK_UNSUPPORTED: Final = UNSUPPORTED | {errno.ENOLCK}
START_TIME_FIELD: Final = 22 - 3
"""proc_pid_stat(5): field 22, counted from the state, which is the first one after the command's name."""


@dataclass(frozen=True, slots=True)
class Owner:
    """This process as the owner of captures; the lock is held until `release`, in no fork of it."""

    name: str
    """The owner file's name in `tool-outputs/.supervisor/`."""
    identity: dict[str, str | int | None]
    """`boot_id`, `pid_namespace`, `pid`, `start_time` (ticks after boot); None for what the system does not tell."""
    limitations: tuple[str, ...]
    descriptor: Descriptor
    directory: Descriptor

    def release(self, files: Files) -> None:
        """Remove the file and let go of the lock. Blocks; an error leaves a file without a lock, which is harmless.

        In a fork of the owner it does nothing: the file and the lock are the parent's.
        """
        if os.getpid() != self.identity["pid"]:
            return
        try:
            with self.directory.borrow() as state:
                unlink_quietly(files, self.name, parent=state)
        except OSError:
            pass
        _held.discard(self.descriptor)  # first: a fork must not close a number that is somebody else's by then
        self.descriptor.discard()


_held: Final[set[Descriptor]] = set()
"""The locked files of this process's owners."""


def _let_go_of_copies() -> None:
    """Close a fork's copies: a flock(2) is held as long as one is open, so a dead owner would look alive."""
    while _held:
        _held.pop().close_copy()


os.register_at_fork(after_in_child=_let_go_of_copies)


def this_process() -> dict[str, str | int | None]:
    """Return what tells this process from every other one, on this boot and any other."""
    return {
        "boot_id": _read("/proc/sys/kernel/random/boot_id"),
        "pid_namespace": _pid_namespace(),
        "pid": os.getpid(),
        "start_time": start_time("self"),
    }


def start_time(process: int | str) -> int | None:
    """Return when `process` started, in ticks after boot; None where nobody tells."""
    text = _read(f"/proc/{process}/stat")
    # The command's name may hold spaces and parentheses: only the last one ends it (proc_pid_stat(5)).
    return None if text is None else int(text.rpartition(")")[2].split()[START_TIME_FIELD])


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:  # no such /proc
        return None


def _pid_namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def take_ownership(files: Files, state: Descriptor) -> Owner:
    """Return a new owner whose file became visible with its lock held and its content written. Blocks.

    Raises:
        OSError: from the system; nothing is left behind.
    """
    name = f"{secrets.token_hex(16)}{SUFFIX}"
    hidden = f".{name}"
    identity = this_process()
    with state.borrow() as directory:
        number = create_private_file(files, hidden, parent=directory, flags=os.O_RDWR)
        try:
            limitations = _lock(files, number)
            write_all(files, number, json.dumps(identity).encode())
            rename_noreplace(files, hidden, name, parent=directory)
        except OSError:
            unlink_quietly(files, hidden, parent=directory)
            unlink_quietly(files, name, parent=directory)
            close_quietly(files, number)
            raise
    descriptor = Descriptor(files, number)
    _held.add(descriptor)
    return Owner(name, identity, limitations, descriptor, state)


def is_live(state: int, name: str, files: Files | None = None) -> bool | None:
    """Return whether the owner file `name` in the directory `state` is locked by a live process. Blocks.

    False also for a file that is gone: a clean end removes it. None where nobody can know: no locks on this file
    system, or something that is not an owner file in its place.
    """
    files = files or Files()
    try:
        number = files.open_existing(name, parent=state)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        _check_owner_file(files, number, name, state)
        files.lock(number, exclusive=False)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        close_quietly(files, number)


def _check_owner_file(files: Files, number: int, name: str, state: int) -> None:
    """Return if it is one of ours, which a crash may have left with its hidden name too (`rename_noreplace`) [D2]."""
    try:
        check_file(files, number)
    except UnsafeDirectoryError:
        twin = name[1:] if name.startswith(".") else f".{name}"
        if not are_one(files, number, twin, parent=state):
            raise


def _lock(files: Files, number: int) -> tuple[str, ...]:
    try:
        files.lock(number, exclusive=True)
    except OSError as error:
        if error.errno not in LOCK_UNSUPPORTED:
            raise
        return (UNLOCKED,)
    return ()
