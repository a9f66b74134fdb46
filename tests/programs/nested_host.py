"""A supervisor that is itself a supervised command: runs a sleeper, prints its pid and waits. Argument: its loop."""

from __future__ import annotations

import importlib
import sys

from supervisor import Supervisor


async def main() -> None:
    """Wait for a job that does not end."""
    async with Supervisor() as supervisor:
        job = await supervisor.start(["sleep", "1000"])
        print(job.pid, flush=True)
        await job.wait()


importlib.import_module(sys.argv[1]).run(main())
