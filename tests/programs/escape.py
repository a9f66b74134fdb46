"""Starts a descendant that sheds what ties it to its command and announces itself by its pid; then ends with 3.

Arguments, in any order: `session` to leave the session, `orphan` to lose the parent, `clean` to clear the environment,
`closed` to close its output after the announcement, `stubborn` to ignore SIGTERM, `stopped` to stop itself; with `stay`
the command itself waits for a signal.
"""

from __future__ import annotations

import os
import signal
import sys

options = sys.argv[1:]


def settle(announce: int) -> None:
    """Announce the descendant and wait for a signal."""
    if "stubborn" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, f"{os.getpid()}\n".encode())
    if "closed" in options:
        os.close(1)
        os.close(2)
    os.close(announce)
    if "stopped" in options:
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        signal.pause()


if options[0] == "settle":
    settle(int(options[1]))
ready, announcement = os.pipe()
if os.fork() == 0:
    os.close(ready)
    if "session" in options:
        os.setsid()
    if "orphan" in options and os.fork():
        os._exit(0)
    if "clean" in options:
        os.set_inheritable(announcement, True)  # noqa: FBT003
        again = [sys.executable, "-S", "-E", __file__, "settle", str(announcement), *options]
        os.execve(sys.executable, again, {})
    settle(announcement)
os.close(announcement)
os.read(ready, 1)  # the end of file says that the descendant is ready
if "orphan" in options:
    os.wait()
if "stay" in options:
    signal.pause()
os._exit(3)
