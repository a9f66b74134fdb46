"""Prints the pid of a daemon that it double-forks, and exits with 0 while that holds its output and does nothing."""

from __future__ import annotations

import os
import signal

ready, announce = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(1, f"{os.getpid()}\n".encode())
    os.close(ready)
    os.close(announce)
    while True:
        signal.pause()
os.close(announce)
os.read(ready, 1)  # the end of file says that the daemon is ready
os.wait()
