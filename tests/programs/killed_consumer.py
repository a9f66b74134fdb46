"""A consumer of three completions that has acknowledged one and claimed another; it names them, and is to be killed.

Arguments: the module whose `run` is the loop's, the conversation's directory.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys

from supervisor import Supervisor


async def main() -> None:
    """Claim two of three."""
    async with Supervisor(sys.argv[2]) as supervisor:
        jobs = [await supervisor.start(["true"]) for _ in range(3)]
        await supervisor.join()
        completions = supervisor.completions()
        first, second = await anext(completions), await anext(completions)
        await first.acknowledge()
        told = [first.receipt.capture_id, second.receipt.capture_id]
        told += [job.capture_id for job in jobs if job.capture_id not in told]
        print(json.dumps(told), flush=True)
        await asyncio.Event().wait()


importlib.import_module(sys.argv[1]).run(main())
