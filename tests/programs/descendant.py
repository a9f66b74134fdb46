"""Forks a descendant, which announces itself by its pid, and exits with 3 while that goes on.

Arguments: `daemon` to leave the session first, `closed` to close its output after the announcement. The descendant
writes a line at each SIGUSR1 and ends by any other signal.
"""

from __future__ import annotations

import os
import signal
import sys

options = sys.argv[1:]
ready, announce = os.pipe()
if os.fork() == 0:
    os.close(ready)
    if "daemon" in options:
        os.setsid()
    signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"late\n"))
    os.write(1, f"{os.getpid()}\n".encode())
    if "closed" in options:
        os.close(1)
        os.close(2)
    os.close(announce)
    while True:
        signal.pause()
os.close(announce)
os.read(ready, 1)  # the end of file says that the descendant is ready
os._exit(3)
