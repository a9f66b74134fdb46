"""Closes stdout and stderr, then waits for the end of stdin and exits with 7."""

from __future__ import annotations

import os
import sys

print("closing", flush=True)
os.close(1)
os.close(2)
while os.read(0, 65536):
    pass
sys.stdout = sys.stderr = None
os._exit(7)
