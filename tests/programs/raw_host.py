"""A supervisor with a job that keeps a raw copy; it waits to be killed.

Argument: the conversation's directory. Output: the child's pid.
"""

from __future__ import annotations

import asyncio
import sys

from supervisor import Supervisor


async def main() -> None:
    """Start the child and announce it."""
    async with Supervisor(sys.argv[1]) as supervisor:
        job = await supervisor.start(r"printf 'raw\0\033[m'; exec sleep 60", shell=True, keep="raw")
        print(job.pid, flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
