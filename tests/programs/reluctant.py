"""Says that it is ready, and names each SIGTERM instead of ending by it."""

from __future__ import annotations

import os
import signal

signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"TERM\n"))
os.write(1, b"ready\n")
while True:
    signal.pause()
