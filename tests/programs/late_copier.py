"""Says `ready`, and copies stdin to stdout only after SIGUSR1."""

from __future__ import annotations

import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.write(1, b"ready\n")
signal.sigwait({signal.SIGUSR1})
while data := os.read(0, 1 << 20):
    while data:
        data = data[os.write(1, data) :]
