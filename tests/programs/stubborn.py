"""Ignores SIGTERM, says so, and waits to be killed; with the argument `group` a forked member does the same."""

from __future__ import annotations

import os
import signal
import sys

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "group" in sys.argv:
    os.fork()
os.write(1, f"{os.getpid()}\n".encode())
while True:
    signal.pause()
