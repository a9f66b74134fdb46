"""Owns a live capture, and has a fork that lets its copy of the owner go and waits: `forking_host DIRECTORY`.

Says the pid of the fork once that has let go; then both wait for the end of stdin. Either may be killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from pathlib import Path

from supervisor import Limits
from supervisor.storage import Files, LocalStorage


async def main(directory: Path) -> None:
    """Own, and fork."""
    conversation = await LocalStorage().open(directory, limits=Limits(), durability="barrier")
    capture = await conversation.create_capture(f"20260101T000000000000Z-{0:032x}", ("stdout", "stderr"))
    await capture.spools["stdout"].write([b"begin\n"])
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a host that forks with threads gets this one
        child = os.fork()
    if child == 0:
        conversation.owner.release(Files())
        os.write(writing, b"released")
        os.read(0, 1)
        os._exit(0)
    os.read(reading, 100)
    print(child, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
