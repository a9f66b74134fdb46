"""A program that sets limits on itself and becomes the command: the pid stays, and so does the argument list.

It runs only for a command with `ChildLimits`. Setting them from outside would race with the command's first
instructions, and Python's `preexec_fn` and `user` fork the whole host. What it is to do comes by a socket, whose number
is its one argument, so that neither the length of an argument list nor the command's environment has to fit it, too;
by the same socket it tells what failed. It imports nothing of ours: an interpreter without site-packages runs it.
"""

from __future__ import annotations

import errno
import marshal
import os
import resource
import sys

SIGNAL = __import__("_signal")
"""What `signal` is made of: that one builds enumerations, which takes as long as everything else here together."""

READY = b"+"
"""Every limit is set, and the next call is exec: the end of the socket without a further word says that it worked."""


def apply(step: tuple[object, ...]) -> None:
    """Do one of the things that are asked for. Raises: OSError, ValueError for what setrlimit(2) refuses."""
    match step:
        case ("cgroup", str(path)):
            write(path, b"0")
        case ("oom_score_adj", int(score)):
            write("/proc/self/oom_score_adj", b"%d" % score)
        case ("nice", int(niceness)):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
        case ("rlimit", int(number), int(soft), int(hard)):
            resource.setrlimit(number, (soft, hard))
        case ("umask", int(mask)):
            os.umask(mask)
        case ("groups", *groups):
            set_groups([group for group in groups if isinstance(group, int)])
        case ("group", int(group)):
            os.setresgid(group, group, group)
        case ("user", int(user)):
            os.setresuid(user, user, user)
        case _:
            raise OSError(errno.EINVAL, "unknown step")


def set_groups(groups: list[int]) -> None:
    """Have these supplementary groups, in any order. Only root may set them; who has them already need not."""
    try:
        os.setgroups(groups)
    except PermissionError:
        if set(groups) != set(os.getgroups()):
            raise


def write(path: str, text: bytes) -> None:
    """Write to a file of the kernel's."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


def become(paths: list[bytes], arguments: list[bytes], environment: dict[bytes, bytes]) -> int:
    """Run the first of `paths` that can be run, by the rules of execvp(3); return the error if none can."""
    failures: list[int] = []
    for path in paths:
        try:
            os.execve(path, arguments, environment)  # noqa: S606 - what it is for
        except OSError as error:
            failures.append(error.errno or errno.EIO)
        except MemoryError:
            failures.append(errno.ENOMEM)
    told = [number for number in failures if number not in {errno.ENOENT, errno.ENOTDIR}] or failures[-1:]
    return told[0] if told else errno.ENOENT


def main(channel: int) -> None:
    """Take the orders, carry them out, and become the command; return only if that failed, which is told by then."""
    os.set_inheritable(channel, False)  # noqa: FBT003 - its signature
    data = b""
    while part := os.read(channel, 65536):
        data += part
    steps, paths, arguments, environment = marshal.loads(data)  # noqa: S302 - from the process that started this one
    out_of_memory = [b"%d %b" % (errno.ENOMEM, name.encode()) for name, _ in steps]
    for number, (name, step) in enumerate(steps):
        try:
            apply(step)
        except OSError as error:
            os.write(channel, b"%d %b" % (error.errno or errno.EIO, name.encode()))
            return
        except ValueError:  # what the resource module makes of EPERM
            os.write(channel, b"%d %b" % (errno.EPERM, name.encode()))
            return
        except MemoryError:
            os.write(channel, out_of_memory[number])
            return
    os.write(channel, READY)
    # What Python ignores for itself stays ignored in what it becomes; subprocess sets the same two back.
    for signal_number in (SIGNAL.SIGPIPE, SIGNAL.SIGXFSZ):
        SIGNAL.signal(signal_number, SIGNAL.SIG_DFL)
    os.write(channel, b"%d " % become(paths, arguments, environment))


def run() -> None:
    """Do `main` for the descriptor that is the last argument; never return."""
    try:
        main(int(sys.argv[-1]))
    finally:
        os._exit(127)  # nothing of an interpreter's end may be seen in the command's output
