"""Four lines of processes, each of which starts the next one in a session of its own and ends, for as long as they may.

Prints a line once all four are under way. Each process lives for a few milliseconds, or as many as the argument says.
"""

from __future__ import annotations

import os
import sys
import time

seconds = float(sys.argv[1]) / 1000
for _ in range(4):
    if os.fork() == 0:
        break
else:
    os.write(1, b"under way\n")
    time.sleep(1000)
until = time.monotonic() + 60  # in case that nobody ends it
while time.monotonic() < until:
    os.setsid() if os.getsid(0) != os.getpid() else None
    time.sleep(seconds)
    if os.fork():
        os._exit(0)
