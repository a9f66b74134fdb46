"""Many processes with many jobs in one conversation that has not room for all of it; half of them are killed.

Arguments: the conversation, processes, jobs of each, bytes of each job, the conversation's limit.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examine import CAPTURES, RETAINED, listing
from sweep import forked

from supervisor import Limits, Receipt, Supervisor, recover
from supervisor.testing import FakeChildren

if TYPE_CHECKING:
    from supervisor.testing import FakeChild

LINE = b"sixteen letters\n"


async def fill(directory: Path, jobs: int, size: int, limit: int) -> list[Receipt]:
    """Let jobs write so much each, all at once, and return their receipts."""
    children = FakeChildren()

    async def script(child: FakeChild) -> None:
        for _ in range(size // (len(LINE) * 1024)):
            await child.feed(LINE * 1024)
        child.exit(0)

    limits = Limits(conversation_bytes=limit, job_bytes=float("inf"), stall_timeout=60)
    async with Supervisor(directory, limits=limits, spawn=children.spawn, durability="none") as supervisor:
        for _ in range(jobs):
            children.expect(script=script)
        started = [await supervisor.start(["tool"]) for _ in range(jobs)]
        return [await job.wait() for job in started]


def work(directory: Path, number: int, jobs: int, size: int, limit: int) -> None:
    """Fill, and write down the receipts."""
    signal.alarm(0)
    receipts = asyncio.run(fill(directory, jobs, size, limit))
    Path(f"{directory}.{number}").write_text(json.dumps([receipt.to_json().decode() for receipt in receipts]))


def sizes(directory: Path) -> dict[str, int]:
    """Return the size of each retained file, by its path from the conversation."""
    found: dict[str, int] = {}
    for path in (directory / CAPTURES).glob("*/*"):
        try:
            if path.name.endswith(RETAINED):
                found[str(path.relative_to(directory)).removesuffix(".live").removesuffix(".log")] = path.stat().st_size
        except FileNotFoundError:  # renamed meanwhile: it is seen at the next look
            continue
    return found


def crowd(directory: Path, processes: int, jobs: int, size: int, limit: int) -> dict[str, Any]:
    """Let them loose, kill every other one when half of the allowance is used, and return what was seen."""
    errors = [Path(f"{directory}.errors.{number}") for number in range(processes)]
    pids = [forked(partial(work, directory, number, jobs, size, limit), errors[number]) for number in range(processes)]
    alive, killed, most, looks, statuses = dict(enumerate(pids)), [], 0, 0, {}
    while alive:
        total = sum(sizes(directory).values())
        most, looks = max(most, total), looks + 1
        if not killed and total >= limit // 2:
            killed = list(range(0, processes, 2))
            for number in killed:
                os.kill(pids[number], signal.SIGKILL)
        for number, pid in tuple(alive.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                statuses[number] = os.waitstatus_to_exitcode(status)
                del alive[number]
    broken = [path.read_text() for path in errors if path.exists()]
    assert not broken, broken[0]
    return {"most": most, "looks": looks, "killed": killed, "statuses": statuses} | after(directory, processes, limit)


def after(directory: Path, processes: int, limit: int) -> dict[str, Any]:
    """Return what is found afterwards, and what the next one who starts gets of it."""
    there = sizes(directory)
    wrong: list[str] = []
    told = [Path(f"{directory}.{number}") for number in range(processes)]
    receipts = [Receipt.parse(text.encode()) for path in told if path.exists() for text in json.loads(path.read_text())]
    for receipt in receipts:
        for name, facts in receipt.streams.items():
            place = f"{CAPTURES}/{receipt.capture_id}/{name}"
            if facts is not None and facts.retained.end != there.get(place, 0):
                wrong.append(f"{place}: {facts.retained.end}, {there.get(place)}")
    _, figures = listing(directory)
    assert figures is not None
    (last,) = asyncio.run(fill(directory, 1, 2 * limit, limit))
    recovered = asyncio.run(recover(directory))
    _, full = listing(directory)
    assert full is not None
    return {
        "receipts": len(receipts),
        "wrong": wrong,
        "used": [figures.used, sum(there.values())],
        "reserved": [figures.reserved, full.reserved],
        "last": [last.capture.state, last.capture.reason],
        "full": [full.used, sum(sizes(directory).values())],
        "recovered": [receipt.capture.reason for receipt in recovered],
    }


if __name__ == "__main__":
    print(json.dumps(crowd(Path(sys.argv[1]), *map(int, sys.argv[2:]))))  # noqa: T201 - a program
