"""Starts a command with limits: by `trampoline`, a process that sets them on itself before it becomes the command.

It costs the start of a bare interpreter, about 10 ms on the spawner's thread and in the command's `usage`; commands
without limits never come here.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import socket
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import cgroup, faults
from .childlimits import Refused
from .trampoline import READY

if TYPE_CHECKING:
    from collections.abc import Callable

    from .cgroup import Enclosure
    from .childlimits import ChildLimits
    from .launch import Launch

PLACE: Final = str(Path(__file__).parent)
PROGRAM: Final = f"import sys; sys.path.append({PLACE!r}); import trampoline; trampoline.run()"
"""Imported and not run as a script, so that its compiled form is found; last in the path, so that nothing is hidden."""
UNSUPPORTED: Final = {"memory_bytes": "memory-limit-unsupported", "pids": "pids-limit-unsupported"}


def enclose(launch: Launch) -> tuple[Enclosure | None, tuple[str, ...]]:
    """Return a cgroup with the limits on the whole tree, and the words for those that no cgroup here can set."""
    limits = launch.child_limits
    if limits is None:
        return None, ()
    wanted = {name: value for name in UNSUPPORTED if (value := getattr(limits, name)) is not None}
    enclosure = cgroup.make_limited(f"spoolvisor-{launch.mark}", memory=limits.memory_bytes, pids=limits.pids)
    return enclosure, () if enclosure is not None else tuple(UNSUPPORTED[name] for name in wanted)


def steps(limits: ChildLimits, enclosure: Enclosure | None) -> list[tuple[str, tuple[object, ...]]]:
    """Return what the trampoline has to do, each with its name; whatever needs a right comes before the right goes."""
    ids = limits.ids()
    found: list[tuple[str, tuple[object, ...]]] = []
    if enclosure is not None:
        name = "pids" if limits.memory_bytes is None else "memory_bytes"
        found.append((name, ("cgroup", str(enclosure.directory / "cgroup.procs"))))
    plain = {name: getattr(limits, name) for name in ("oom_score_adj", "nice", "umask")}
    found += [(name, (name, value)) for name, value in plain.items() if value is not None]
    found += [(name, ("rlimit", number, soft, hard)) for name, number, soft, hard in limits.numbers()]
    if ids.groups is not None:
        found.append(("user", ("groups", *ids.groups)))
    if ids.group is not None:
        found.append(("user" if limits.group is None else "group", ("group", ids.group)))
    if ids.user is not None:
        found.append(("user", ("user", ids.user)))
    return found


def orders(launch: Launch, enclosure: Enclosure | None) -> bytes:
    """Return all that the trampoline is told."""
    assert launch.child_limits is not None
    environment = {os.fsencode(name): os.fsencode(value) for name, value in launch.environment().items()}
    paths = [os.fsencode(path) for path in faults.candidates(launch)]
    arguments = [os.fsencode(argument) for argument in launch.argv]
    return marshal.dumps((steps(launch.child_limits, enclosure), paths, arguments, environment))


def create(
    launch: Launch, enclosure: Enclosure | None, start: Callable[[Launch, int], int], kept_as: int | None = None
) -> int:
    """Start the command by `start`, which keeps a descriptor open in the child as `kept_as` or as what it is.

    Raises: OSError with the command's own error, `Refused` for a limit's; nothing is left in either case.
    """
    if not os.access(sys.executable or "", os.X_OK):
        raise Refused(errno.EACCES if os.path.exists(sys.executable or "") else errno.ENOENT, "trampoline")
    ours, theirs = socket.socketpair()
    with closing(ours):
        with closing(theirs):
            kept = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
        try:
            number = kept if kept_as is None else kept_as
            # The host's environment: the command's may lack what the interpreter needs to start.
            argv = (sys.executable, "-I", "-S", "-c", PROGRAM, str(number))
            pid = start(replace(launch, argv=argv, env=dict(os.environ), child_limits=None), kept)
        finally:
            os.close(kept)
        told = exchange(ours, orders(launch, enclosure))
    if told == READY:
        return pid
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)  # it ends by itself once it has told
    number_told, _, limit = told.removeprefix(READY).decode().partition(" ")
    if limit or not number_told:
        raise Refused(int(number_told or errno.EIO), limit or "trampoline")
    raise OSError(int(number_told), os.strerror(int(number_told)))


def exchange(channel: socket.socket, text: bytes) -> bytes:
    """Send the orders and return the answer, whole: its end is the exec's, or the process's."""
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended early, and the answer is empty
        channel.sendall(text, getattr(socket, "MSG_NOSIGNAL", 0))
        channel.shutdown(socket.SHUT_WR)
    answer = b""
    with suppress(ConnectionResetError):
        while part := channel.recv(1024):
            answer += part
    return answer
