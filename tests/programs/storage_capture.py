"""Stores one capture: `publish DIRECTORY UMASK UID`, or `hold DIRECTORY`.

`hold` says the name of its owner's file when its capture is there, and then waits to be killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from supervisor.limits import Limits
from supervisor.storage import LocalStorage


async def publish(directory: Path) -> None:
    """Store a little of both streams and publish a receipt."""
    conversation = await LocalStorage().open(directory, limits=Limits(), durability="barrier")
    capture = await conversation.create_capture("one", ("stdout", "stderr"))
    await capture.record_launch(b"{}")
    for name, spool in capture.spools.items():
        await spool.write([name.encode()])
    sealed = await capture.seal()
    assert sealed.error is None, sealed
    outcome = await capture.publish(b"{}")
    assert outcome.durable, outcome
    await conversation.close()


async def hold(directory: Path) -> None:
    """Store a little, announce it, and wait for the end of stdin, which never comes."""
    conversation = await LocalStorage().open(directory, limits=Limits(), durability="barrier")
    capture = await conversation.create_capture("one", ("stdout", "stderr"))
    await capture.record_launch(b"{}")
    await capture.spools["stdout"].write([b"before the crash\n"])
    print(conversation.owner.name, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "publish":
        os.umask(int(sys.argv[3], 8))
        if (user := int(sys.argv[4])) != os.geteuid():
            # After the imports: the interpreter's own files may be closed to that user.
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        asyncio.run(publish(Path(sys.argv[2])))
    else:
        asyncio.run(hold(Path(sys.argv[2])))
