"""Many short jobs in one supervisor after another: `short_jobs.py LOOP JOBS [KIND]`; prints as JSON what grew.

KIND is `started` (each job has its files, and is told of and acknowledged), `foreground` (a small success leaves
none), `mixed` (every fourth is started), or `fake` (as started, without a process). The captures are removed now and
then, as their owner would. Figures are taken at the end of each tenth: of what this process owns, all that it needs for
warming up (the allocator's pools, imports, 256 remembered jobs) is there after 256 jobs with a pid.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import math
import os
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor import Limits, Supervisor, remove_captures
from supervisor.testing import FakeChildren

if TYPE_CHECKING:
    from supervisor import Receipt

AT_A_TIME: Final = 16
BATCH: Final = 200
"""Jobs after which the captures are removed."""


def resident() -> int:
    """Return our resident memory in bytes (proc_pid_statm(5)); unlike the peak it can fall again."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def zombies() -> int:
    """Return how many children we have, zombies among them: none may be left between two batches."""
    return sum(len((task / "children").read_text().split()) for task in Path("/proc/self/task").iterdir())


def figures() -> dict[str, int]:
    """Return what we own now."""
    gc.collect()
    return {
        "resident": resident(),
        "objects": len(gc.get_objects()),
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "children": zombies(),
        "traced": tracemalloc.get_traced_memory()[0],
    }


class Jobs:
    """Runs them."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind: Final = kind
        self.directory: Final = directory
        self.children: Final = FakeChildren()
        self.wrong = 0

    def supervisor(self) -> Supervisor:
        """Return a supervisor of the conversation."""
        options: dict[str, Any] = {"spawn": self.children.spawn} if self.kind == "fake" else {}
        return Supervisor(self.directory, durability="none", limits=Limits(conversation_bytes=math.inf), **options)

    async def batch(self, supervisor: Supervisor, count: int) -> None:
        """Run so many jobs, some at a time, and remove what they left."""
        queue = iter(range(count))
        await asyncio.gather(*(self._some(supervisor, queue) for _ in range(AT_A_TIME)))
        await remove_captures(
            self.directory, [path.name for path in (self.directory / "tool-outputs/captures").glob("*")]
        )
        self.children.started.clear()

    async def _some(self, supervisor: Supervisor, queue: Any) -> None:  # noqa: ANN401 - an iterator
        for number in queue:
            receipt = await self._one(supervisor, number)
            process = receipt.process
            right = process is not None and (process.state, process.code) == ("exited", 0)
            if not right or receipt.capture.state != "complete":
                self.wrong += 1

    async def _one(self, supervisor: Supervisor, number: int) -> Receipt:
        command = ["true"]
        if self.kind == "foreground" or (self.kind == "mixed" and number % 4):
            return await supervisor.run(command)
        if self.kind == "fake":
            self.children.expect(script=_say)
        job = await supervisor.start(command)
        receipt = await job.wait()
        await job.acknowledge()
        return receipt


async def _say(child: Any) -> None:  # noqa: ANN401 - a fake child
    await child.feed(b"a line\n")
    child.exit(0)


async def main(count: int, kind: str) -> dict[str, Any]:
    """Return what was measured."""
    began = time.monotonic()
    seen: list[dict[str, int]] = []
    with tempfile.TemporaryDirectory() as directory:
        jobs = Jobs(kind, Path(directory))
        tenth = max(1, count // 10)
        async with jobs.supervisor() as supervisor:
            for _ in range(10):
                for start in range(0, tenth, BATCH):
                    await jobs.batch(supervisor, min(BATCH, tenth - start))
                seen.append(figures())
        after = figures()
    took = time.monotonic() - began
    return {
        "kind": kind,
        "jobs": 10 * tenth,
        "seconds": round(took, 1),
        "wrong": jobs.wrong,
        "seen": seen,
        "after": after,
    }


if __name__ == "__main__":
    if "--trace" in sys.argv:
        sys.argv.remove("--trace")
        tracemalloc.start()
    runner: Any = importlib.import_module(sys.argv[1])
    print(json.dumps(runner.run(main(int(sys.argv[2]), sys.argv[3]))))  # noqa: T201 - a program
