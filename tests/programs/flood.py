"""Writes as many numbered lines as asked, 8 bytes each, then opens the FIFO it was given: all is out."""

from __future__ import annotations

import os
import sys

count, fifo = int(sys.argv[1]), sys.argv[2]
data = memoryview(b"".join(b"%07d\n" % number for number in range(count)))
while data:
    data = data[os.write(1, data) :]
os.close(os.open(fifo, os.O_WRONLY))
