"""A host that adopts orphans runs one command to its end, and prints what became of it and what it adopted.

Arguments: `leave`, `end` or `cancel`, then the command; its first line of output is waited for before a cancel.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from supervisor import Supervisor
from supervisor.process import adopt_orphans, proc

how, command = sys.argv[1], sys.argv[2:]


async def main() -> None:
    """Run it."""
    adopted = adopt_orphans()
    async with Supervisor() as supervisor:
        options = {"on_exit": "end"} if how == "end" else {}
        job = await supervisor.start(command, kill_after=0.2, drain_timeout=0.1, window_bytes=1024, **options)
        if how == "cancel":
            async for _ in job.live("stdout"):
                break
            await job.terminate()
        receipt = await job.wait()
    facts = receipt.process
    report = {
        "adopted": adopted,
        "survivors": facts.survivors,
        "confirmed": facts.kill_confirmed,
        "limitations": receipt.limitations,
        "left": {pid: found.state for pid in proc.children(os.getpid()) or () if (found := proc.process(pid))},
        "stdout": receipt.stdout,
    }
    print(json.dumps(report))


asyncio.run(main())
