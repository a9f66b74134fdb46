"""Writes the first half of a variable's value, waits for a line on stdin, and writes the second half.

Argument: the variable. The halves exist only in here: not in the arguments, not as variables of their own.
"""

from __future__ import annotations

import os
import sys

value = os.environ[sys.argv[1]].encode()
half = len(value) // 2
os.write(1, b"value: " + value[:half])
sys.stdin.readline()
os.write(1, value[half:] + b"\n")
os.write(1, value[: half + 4])
sys.exit(1)
