"""What a failed start lacked, in a word and with a path (contract F6).

The system's number alone does not say: ENOENT is a missing directory, program or `#!` interpreter (field report
H5-060). The file system is therefore asked afterwards; it can have changed meanwhile, and then the word is a guess,
while the number never is.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

from ..errors import SpawnError, SpawnFault
from .childlimits import Refused
from .terminal import NoTerminal

if TYPE_CHECKING:
    from .launch import Launch

RESOURCES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC))
MISSING: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG))
DENIED: Final = frozenset((errno.EACCES, errno.EPERM))

WORDS: Final[dict[SpawnFault, str]] = {
    "program": "the program was not found",
    "interpreter": "the program's interpreter cannot be run",
    "cwd": "the working directory cannot be used",
    "permission": "the program may not be executed",
    "format": "the program is not in an executable format",
    "arguments": "the arguments and the environment are too long",
    "limit": "a limit for the program cannot be set",
    "terminal": "no terminal is to be had here",
    "resources": "descriptors, processes or memory are used up",
    "other": "the program cannot be started",
}


def spawn_error(error: OSError, launch: Launch) -> SpawnError:
    """Return the typed error for what starting `launch` raised."""
    fault, subject = known(error) or diagnose(error.errno, launch)
    number = error.errno
    reason = os.strerror(number) if number else "unknown error"
    what = f"{WORDS[fault]} ({subject})" if fault == "limit" else WORDS[fault]
    return SpawnError(f"{what}: {reason}", errno=number, fault=fault, subject=subject)


def known(error: OSError) -> tuple[SpawnFault, str | None] | None:
    """Return what an error says by its own type."""
    match error:
        case Refused():
            return "limit", error.limit
        case NoTerminal():
            return "terminal", None
        case _:
            return None


def diagnose(number: int | None, launch: Launch) -> tuple[SpawnFault, str | None]:
    """Return what was missing and which path that is."""
    if number in RESOURCES:
        return "resources", None
    if number == errno.E2BIG:
        return "arguments", None
    if launch.cwd is not None and number in MISSING | DENIED and not enterable(launch.cwd):
        return "cwd", launch.cwd
    found = find_program(launch)
    if found is None:
        # An empty name gives EACCES: joined to a directory it is that directory.
        return ("program" if number in MISSING or not launch.argv[0] else "other"), launch.argv[0]
    return diagnose_program(number, found, launch)


def diagnose_program(number: int | None, found: str, launch: Launch) -> tuple[SpawnFault, str]:
    """Return the same for a program that exists."""
    if number == errno.ENOEXEC:
        return "format", found
    if number in DENIED and launch.child_limits is not None and launch.child_limits.user is not None:
        return "permission", found  # another user's right, which we cannot ask for
    # The system has no word of its own for an interpreter or loader that is missing, or may not be executed.
    if number in MISSING or (number in DENIED and executable(in_cwd(found, launch))):
        return "interpreter", interpreter(found, launch) or found
    return ("permission" if number in DENIED else "other"), found


def enterable(directory: str) -> bool:
    """Whether chdir(2) there would succeed."""
    return os.path.isdir(directory) and os.access(directory, os.X_OK, effective_ids=effective_ids())


def effective_ids() -> bool:
    """Whether access(2) can be asked for the effective user, who is the one that executes."""
    return os.access in os.supports_effective_ids


def executable(path: str) -> bool:
    """Whether `path` is a regular file that we may execute."""
    return os.path.isfile(path) and os.access(path, os.X_OK, effective_ids=effective_ids())


def in_cwd(path: str, launch: Launch) -> str:
    """Return a path as the child sees it after its chdir."""
    return os.path.join(launch.cwd or "", path)


def candidates(launch: Launch) -> list[str]:
    """Return the paths that are tried for the program: itself if it has a slash, else along the child's PATH."""
    program = launch.argv[0]
    if "/" in program:
        return [program]
    return [os.path.join(directory, program) for directory in os.get_exec_path(launch.env)]


def find_program(launch: Launch) -> str | None:
    """Return the first candidate that can be executed, else the first that exists, else None."""
    existing = [path for path in candidates(launch) if launch.argv[0] and os.path.exists(in_cwd(path, launch))]
    runnable = [path for path in existing if executable(in_cwd(path, launch))]
    return next(iter(runnable + existing), None)


def interpreter(program: str, launch: Launch) -> str | None:
    """Return the path after the program's `#!`, or None if there is none to read (execve(2), "Interpreter scripts")."""
    try:
        descriptor = os.open(in_cwd(program, launch), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        line = os.read(descriptor, 256).split(b"\n", 1)[0]
    except OSError:
        return None
    finally:
        os.close(descriptor)
    words = line[2:].split(maxsplit=1)
    return os.fsdecode(words[0]) if line.startswith(b"#!") and words else None
