"""How long a line is on its way: from the child's write to the follower that awaits it.

The child writes one line each few milliseconds, with the moment of the write in it (CLOCK_MONOTONIC, which all
processes share); each follower takes the moment at which it has the line. Everything is done to the line that is done
to any: it is decoded, searched, written to the file, and read from there. Beside a bulk job: another child of the same
supervisor writes as fast as it is read, for the whole time. What a hundred followers cost is the wall time of a bulk
job of their own with and without them.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor import Limits, Supervisor

from . import alone
from .alone import run_in
from .harness import MIB, Settings, WrongResultError, note
from .ours import SECRETS
from .producer import make_producer
from .report import Report
from .throughput import loops

if TYPE_CHECKING:
    from supervisor import Job

LINES: Final = 500
QUICK_LINES: Final = 50
PACE: Final = 0.005
"""Seconds between two lines."""
BULK_BYTES: Final = 256 * MIB
QUICK_BULK_BYTES: Final = 16 * MIB
CROWD: Final = 100
CLOCK: Final = (
    "import sys, time\n"
    "for _ in range(int(sys.argv[1])):\n"
    "    time.sleep(float(sys.argv[2]))\n"
    "    sys.stdout.write(f'{time.monotonic_ns()}\\n'); sys.stdout.flush()\n"
)
CASES: Final = ((1, False), (CROWD, False), (1, True), (CROWD, True))
"""How many followers, and whether a bulk job runs beside them."""


def measure(settings: Settings) -> Report:
    """Return the table. Raises: WrongResultError."""
    lines = QUICK_LINES if settings.quick else LINES
    bulk = settings.size or (QUICK_BULK_BYTES if settings.quick else BULK_BYTES)
    producer = make_producer(settings.scratch, bulk)
    data: dict[str, dict[str, list[float]]] = {}
    for number in range(settings.rounds + 1):
        for loop in loops():
            order = {"loop": loop, "lines": lines, "bulk": producer.argv}
            found = run_in(settings.scratch / "run", "bench.latency", order)
            for name, value in found.items() if number else ():
                case, _, figure = name.partition("|")
                data.setdefault(f"{case}, {loop}", {}).setdefault(figure, []).append(value)
            note(f"{f'round {number}' if number else 'warm-up'}: {loop}: {len(found)} figures")
    rows = [_row(name, {key: statistics.median(values) for key, values in kept.items()}) for name, kept in data.items()]
    return Report(
        name="latency",
        title="Latency: from the child's write to the follower that awaits it",
        columns=("", "p50 ms", "p99 ms", "most ms", "wall s", "wall relative to no follower"),
        rows=rows,
        facts={"lines": str(lines), "pace": f"{PACE * 1000:g} ms", "rounds": str(settings.rounds)},
        data={"cases": data},
    )


def _row(name: str, medians: dict[str, float]) -> tuple[str, ...]:
    times = tuple(f"{medians[key] * 1000:.2f}" if key in medians else "" for key in ("p50", "p99", "most"))
    wall = f"{medians['wall']:.2f}" if "wall" in medians else ""
    return (name, *times, wall, f"{medians['ratio']:.2f}" if "ratio" in medians else "")


async def _delays(job: Job, lines: int) -> list[float]:
    """Follow the job and return the delay of each line, in seconds."""
    delays: list[float] = []
    async for page in job.follow("stdout"):
        now = time.monotonic_ns()
        delays += [(now - int(line)) / 1e9 for line in page.text.split()]
    if len(delays) != lines:
        raise WrongResultError(f"a follower saw {len(delays)} lines instead of {lines}")
    return delays


async def _case(supervisor: Supervisor, lines: int, followers: int, bulk: list[str] | None) -> dict[str, float]:
    beside = None if bulk is None else await supervisor.start(bulk)
    job = await supervisor.start([sys.executable, "-c", CLOCK, str(lines), str(PACE)])
    seen = await asyncio.gather(*(_delays(job, lines) for _ in range(followers)))
    delays = sorted(itertools.chain.from_iterable(seen))
    (await job.wait()).check()
    if beside is not None:
        if beside.done:
            raise WrongResultError("the bulk job ended before the lines did")
        await beside.terminate()
    return {"p50": delays[len(delays) // 2], "p99": delays[len(delays) * 99 // 100], "most": delays[-1]}


async def _wall(supervisor: Supervisor, bulk: list[str], followers: int) -> float:
    async def drain(job: Job) -> None:
        async for _ in job.follow("stdout"):
            pass

    began = time.perf_counter()
    job = await supervisor.start(bulk)
    crowd = [asyncio.ensure_future(drain(job)) for _ in range(followers)]
    (await job.wait()).check()
    seconds = time.perf_counter() - began
    await asyncio.gather(*crowd)
    return seconds


async def _all(directory: Path, lines: int, bulk: list[str]) -> dict[str, dict[str, float]]:
    limits = Limits(job_bytes=2 * BULK_BYTES, conversation_bytes=math.inf)
    found: dict[str, dict[str, float]] = {}
    async with Supervisor(directory, limits=limits, secrets=SECRETS, durability="none") as supervisor:
        endless = [bulk[0], str(10**15), *bulk[2:]]
        for followers, beside in CASES:
            name = f"{followers} following, {'beside a bulk job' if beside else 'idle'}"
            found[name] = await _case(supervisor, lines, followers, endless if beside else None)
        alone = await _wall(supervisor, bulk, 0)
        crowd = await _wall(supervisor, bulk, CROWD)
        found["bulk job alone"] = {"wall": alone, "ratio": 1.0}
        found[f"bulk job, {CROWD} following"] = {"wall": crowd, "ratio": crowd / alone}
    return found


async def _figures(order: dict[str, Any]) -> dict[str, float]:
    found = await _all(Path(order["directory"]), order["lines"], order["bulk"])
    return {f"{case}|{figure}": value for case, figures in found.items() for figure, value in figures.items()}


if __name__ == "__main__":
    alone.answer(_figures)
