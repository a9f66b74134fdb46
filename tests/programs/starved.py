"""Runs commands while fewer and fewer descriptors are left, then one with all of them; tells what came of it.

Arguments: the module whose `run` is the loop's, the conversation's directory. Output: JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from supervisor import SpawnError, Supervisor


def descriptors() -> int:
    """Return how many are open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def attempt(supervisor: Supervisor, left: int) -> list[Any] | None:
    """Run a command with so many descriptors left; return the error's facts, or None if it ran."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + left, hard))
    try:
        await supervisor.run(["true"])
    except SpawnError as error:
        receipt = error.receipt
        return [error.fault, error.errno, receipt.process.state if receipt and receipt.process else None]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return None


async def main() -> None:
    """Give out one descriptor more each time, until the command runs."""
    async with Supervisor(sys.argv[2]) as supervisor:
        await supervisor.run(["true"])  # what is opened once and kept is open now
        await asyncio.sleep(0)
        before = descriptors()
        errors: list[list[Any]] = []
        while (error := await attempt(supervisor, len(errors))) is not None:
            errors.append(error)
        receipt = await supervisor.run(["echo", "still here"])
        await asyncio.sleep(0)
        leaked = descriptors() - before
    print(json.dumps({"errors": errors, "leaked": leaked, "after": receipt.stdout}))


importlib.import_module(sys.argv[1]).run(main())
