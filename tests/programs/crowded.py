"""Three commands run while nothing more can be started for want of descriptors or of processes; tells what came of all.

Arguments: the module whose `run` is the loop's, EMFILE or EAGAIN, the conversation's directory or nothing. Prints JSON.
For EAGAIN it becomes a user of its own first: root is under no limit of processes, and others share their number.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import sys
from typing import Any

from supervisor import PIPE, SpawnError, Supervisor

JOBS = 3
LIMITS = {"EMFILE": resource.RLIMIT_NOFILE, "EAGAIN": resource.RLIMIT_NPROC}


def used(kind: str) -> int:
    """Return how much of it is in use: the lowest free descriptor, or our thread and the children."""
    if kind == "EAGAIN":
        return 1 + JOBS  # a thread that is just ending only makes it scarcer
    lowest = os.dup(0)
    os.close(lowest)
    return lowest


async def attempt(supervisor: Supervisor, kind: str, left: int) -> list[Any] | None:
    """Run a command with so much left; return the error's facts, or None if it ran."""
    before = resource.getrlimit(LIMITS[kind])
    resource.setrlimit(LIMITS[kind], (used(kind) + left, before[1]))
    try:
        await supervisor.run(["true"])
    except SpawnError as error:
        receipt = error.receipt
        return [error.fault, error.errno, receipt.process.state if receipt and receipt.process else None]
    finally:
        resource.setrlimit(LIMITS[kind], before)
    return None


async def main() -> None:
    """Starve it step by step until a command runs, and then let the others end."""
    kind = sys.argv[2]
    async with Supervisor(*sys.argv[3:]) as supervisor:
        await supervisor.run(["true"])  # what is opened once and kept is open now
        jobs = [await supervisor.start(["cat"], stdin=PIPE) for _ in range(JOBS)]
        errors: list[list[Any]] = []
        while (error := await attempt(supervisor, kind, len(errors))) is not None:
            errors.append(error)
        texts: list[str] = []
        for number, job in enumerate(jobs):
            await job.write(f"{number} lives\n".encode())
            await job.write_eof()
            texts.append((await job.wait()).check().stdout)
        states = [job.receipt.capture.state for job in jobs]
        await supervisor.join()
    print(json.dumps({"errors": errors, "texts": texts, "states": states}))


loop = importlib.import_module(sys.argv[1])
if sys.argv[2] == "EAGAIN":
    asyncio.new_event_loop().close()
    os.chdir("/")
    os.setgroups([])
    os.setgid(60_000 + os.getpid() % 5000)
    os.setuid(60_000 + os.getpid() % 5000)
loop.run(main())
