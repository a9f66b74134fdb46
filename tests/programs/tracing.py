"""Traces two children of its own, one of which it leaves stopped by the trace; says `ready` and waits for a signal."""

from __future__ import annotations

import ctypes
import os
import signal

PTRACE_TRACEME = 0
PTRACE_CONT = 7
libc = ctypes.CDLL(None, use_errno=True)


def traced() -> int:
    """Return the pid of a child that is traced and stopped."""
    pid = os.fork()
    if pid == 0:
        if libc.ptrace(PTRACE_TRACEME, 0, None, None) != 0:
            os._exit(1)
        os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            signal.pause()
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise OSError("ptrace is refused here")
    return pid


traced()
libc.ptrace(PTRACE_CONT, traced(), None, None)
os.write(1, b"ready\n")
while True:
    signal.pause()
