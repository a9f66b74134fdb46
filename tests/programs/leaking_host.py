"""A supervisor whose child writes half a secret; it says so once the half was read, and waits to be killed.

Arguments: the module whose `run` is the loop's, the conversation's directory, the variable, then the child's command.
Output: the child's pid.
"""

from __future__ import annotations

import asyncio
import importlib
import sys

from supervisor import PIPE, Supervisor


async def main() -> None:
    """Start the child and announce it when its first half is in our memory and what came before it on disk."""
    async with Supervisor(sys.argv[2]) as supervisor:
        job = await supervisor.start(sys.argv[3:], stdin=PIPE, window_bytes=1024)
        async for shown in job.live("stdout"):
            assert shown.text == b"value: "
            break
        while not ((facts := job.receipt.streams["stdout"]) and facts.held and facts.committed):  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0)
        print(job.pid, flush=True)
        await asyncio.Event().wait()


importlib.import_module(sys.argv[1]).run(main())
