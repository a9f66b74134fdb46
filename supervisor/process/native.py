"""Default signals for a child of a host whose own are not (contract F7).

Ignored signals and the blocked mask outlive an exec. A host that was started by `nohup`, in the background of a
script (SIGINT and SIGQUIT ignored) or that ignores SIGCHLD hands that on, and its children cannot be interrupted
(field report H5-057). `subprocess` restores three signals at most, and no mask. The ways around:

- `preexec_fn` forces a fork of the whole host and runs Python between fork and exec, which may deadlock;
- setting the host's dispositions to default for the moment of the spawn takes its protection away meanwhile;
- emptying the mask of the spawning thread lets a signal that the host blocks everywhere, to fetch it with sigwait(3),
  be delivered there and kill the host;
- posix_spawn(3) sets both in the child alone. `os.posix_spawn` cannot change the directory nor close descriptors and
  holds the GIL, so the C function is called: through ctypes, which releases it.

So hosts with ordinary signals go through `subprocess`, the others through here. Where the C library lacks a needed
function (glibc before 2.34, musl), the child inherits, and its `limitations` say so.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from . import faults, terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .launch import Launch

# <spawn.h>, GNU C library
SETSIGDEF: Final = 0x04
SETSIGMASK: Final = 0x08
SETSID: Final = 0x80
OBJECT_BYTES: Final = 1024
"""Room for any of the library's opaque objects: the largest, posix_spawnattr_t, has 336 bytes."""

FUNCTIONS: Final = (
    "gnu_get_libc_version",
    "posix_spawn_file_actions_addclosefrom_np",
    "posix_spawn_file_actions_addchdir_np",
)
"""The newest of those needed; the first tells the library whose constants these are."""

KEPT: Final = 3
"""The number under which a child has the one descriptor more that it may be given."""

INHERITABLE: Final = frozenset(signal.valid_signals()) - {signal.SIGPIPE, signal.SIGXFSZ}
"""All but what Python itself ignores and `restore_signals` sets back."""


def signal_oddities() -> tuple[str, ...]:
    """Return which of "ignored-signals" and "blocked-signals" a plain child of the calling thread would inherit."""
    oddities: list[str] = []
    if any(signal.getsignal(number) is signal.SIG_IGN for number in INHERITABLE):
        oddities.append("ignored-signals")
    if signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        oddities.append("blocked-signals")
    return tuple(oddities)


@functools.cache
def library() -> Any:  # noqa: ANN401 - ctypes has no type for a function that is looked up
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def available() -> bool:
    """Whether `spawn` works here."""
    return all(hasattr(library(), name) for name in FUNCTIONS)


def check(number: int) -> None:
    """Raise OSError for a function of the posix_spawn family, which return their error number."""
    if number:
        raise OSError(number, os.strerror(number))


def spawn(launch: Launch, theirs: Mapping[int, int], kept: int | None = None) -> int:
    """Start `launch` in a new session with default signals and no descriptors but `theirs` as 0, 1, 2; return its pid.

    `kept`, if there is one, is the child's descriptor `KEPT`.

    Raises OSError, with nothing started. A program in no known format is ENOEXEC: nothing is given to a shell.
    """
    libc = library()
    with ExitStack() as stack:
        actions = ctypes.create_string_buffer(OBJECT_BYTES)
        check(libc.posix_spawn_file_actions_init(actions))
        stack.callback(libc.posix_spawn_file_actions_destroy, actions)
        for fd in (0, 1, 2):
            # Away from 0 to 2, which a host without standard streams has free and which are overwritten one by one.
            copy = fcntl.fcntl(theirs.get(fd, theirs[1]), fcntl.F_DUPFD_CLOEXEC, 3)
            stack.callback(os.close, copy)
            check(libc.posix_spawn_file_actions_adddup2(actions, copy, fd))
        if launch.pty is not None:
            # Without O_NOCTTY, by a session leader that has none: this makes it the controlling terminal.
            name = terminal.controlling_name(theirs[1])
            check(libc.posix_spawn_file_actions_addopen(actions, 0, name, os.O_RDWR, 0))
        if kept is not None:
            check(libc.posix_spawn_file_actions_adddup2(actions, kept, KEPT))
        check(libc.posix_spawn_file_actions_addclosefrom_np(actions, KEPT if kept is None else KEPT + 1))
        if launch.cwd is not None:
            check(libc.posix_spawn_file_actions_addchdir_np(actions, os.fsencode(launch.cwd)))
        attributes = ctypes.create_string_buffer(OBJECT_BYTES)
        check(libc.posix_spawnattr_init(attributes))
        stack.callback(libc.posix_spawnattr_destroy, attributes)
        every = ctypes.create_string_buffer(b"\xff" * OBJECT_BYTES, OBJECT_BYTES)
        none = ctypes.create_string_buffer(OBJECT_BYTES)
        check(libc.posix_spawnattr_setsigdefault(attributes, every))
        check(libc.posix_spawnattr_setsigmask(attributes, none))
        check(libc.posix_spawnattr_setflags(attributes, ctypes.c_short(SETSIGDEF | SETSIGMASK | SETSID)))
        return first_that_starts(launch, actions, attributes)


def first_that_starts(
    launch: Launch, actions: ctypes.Array[ctypes.c_char], attributes: ctypes.Array[ctypes.c_char]
) -> int:
    """Try the candidates in order, by the rules of execvp(3) and of `subprocess`; return the pid of the first."""
    arguments = c_strings([os.fsencode(argument) for argument in launch.argv])
    environment = c_strings([os.fsencode(f"{name}={value}") for name, value in launch.environment().items()])
    pid = ctypes.c_int()
    failures: list[int] = []
    for path in faults.candidates(launch):
        number = library().posix_spawn(
            ctypes.byref(pid), os.fsencode(path), actions, attributes, arguments, environment
        )
        if number == 0:
            return pid.value
        failures.append(number)
    told = [number for number in failures if number not in {errno.ENOENT, errno.ENOTDIR}] or failures[-1:]
    number = told[0] if told else errno.ENOENT
    raise OSError(number, os.strerror(number))


def c_strings(texts: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    """Return `char *[]` with the closing NULL."""
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
