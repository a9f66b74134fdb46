"""Writes as many bytes as asked in one go, straight before its exit with 4."""

from __future__ import annotations

import os
import sys

data = memoryview(b"x" * int(sys.argv[1]))
while data:
    data = data[os.write(1, data) :]
os._exit(4)
