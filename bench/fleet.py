"""A fleet of commands that live at the same time, each printing 100 lines: is every receipt right, what does one cost?

All of them live when memory and descriptors are counted; then they are let go. Ours keeps, sanitises, syncs each text
and publishes a receipt. The peers are `asyncio.create_subprocess_exec` without capture (output to `/dev/null`) and with
`communicate()`, which keeps the texts in memory. What came is checked after the clock has stopped.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import statistics
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor import PIPE, Limits, Receipt, Supervisor

from . import alone, machine
from .harness import MIB, Settings, WrongResultError, note
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Right = Callable[[], bool]
    """Whether what came is what was printed."""
    End = Callable[[], Awaitable[Right]]
    """Lets a child go and waits for it."""

SIZES: Final = (10, 100, 1000)
QUICK_SIZES: Final = (10, 50)
LINES: Final = 100
COMMAND: Final = ("sh", "-c", f"seq 1 {LINES}; read _ || :")
TEXT: Final = "".join(f"{number + 1}\n" for number in range(LINES)).encode()
PEER: Final = "to /dev/null"
CONTENDERS: Final = {
    PEER: ("devnull", "asyncio"),
    "communicate()": ("communicate", "asyncio"),
    "ours, asyncio": ("ours", "asyncio"),
    "ours, uvloop": ("ours", "uvloop"),
}


def measure(settings: Settings) -> Report:
    """Return the cost of a job. Raises: WrongResultError if one receipt is not complete and right."""
    found: dict[int, dict[str, list[dict[str, float]]]] = {}
    for number in range(settings.rounds + 1):
        for size in QUICK_SIZES if settings.quick else SIZES:
            for name, (kind, loop) in CONTENDERS.items():
                if loop == "uvloop" and machine.uvloop_version() is None:
                    continue
                order = {"kind": kind, "loop": loop, "jobs": size}
                figures = alone.run_in(settings.scratch / "run", "bench.fleet", order)
                if number:
                    found.setdefault(size, {}).setdefault(name, []).append(figures)
                note(f"{f'round {number}' if number else 'warm-up'}: {size}: {name}: {figures}")
    return Report(
        name="fleet",
        title="Fleet: commands that live at the same time",
        columns=("", "wall s", "min-max", "wall relative to /dev/null", "KiB a job", "descriptors a job"),
        rows=[_row(size, name, runs) for size, runs in found.items() for name in runs],
        facts={"rounds": str(settings.rounds), "lines a job": str(LINES)},
        data={"figures": {str(size): runs for size, runs in found.items()}},
    )


def _row(size: int, name: str, runs: dict[str, list[dict[str, float]]]) -> tuple[str, ...]:
    walls = [run["wall"] for run in runs[name]]
    ratio = statistics.median(mine["wall"] / its["wall"] for mine, its in zip(runs[name], runs[PEER], strict=True))
    return (
        f"{size} {name}",
        f"{statistics.median(walls):.2f}",
        f"{min(walls):.2f}-{max(walls):.2f}",
        f"{ratio:.2f}",
        f"{statistics.median(run['memory'] for run in runs[name]) / 1024:.0f}",
        f"{statistics.median(run['descriptors'] for run in runs[name]):.1f}",
    )


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _figures(order: dict[str, Any]) -> dict[str, float]:
    if order["kind"] != "ours":
        return await _costs(order["jobs"], _peer(captured=order["kind"] == "communicate"))
    limits = Limits(conversation_bytes=order["jobs"] * MIB)
    async with Supervisor(order["directory"], limits=limits) as supervisor:
        (await supervisor.run(["true"])).check()
        return await _costs(order["jobs"], _ours(supervisor))


async def _costs(jobs: int, start: Callable[[], Awaitable[End]]) -> dict[str, float]:
    memory, descriptors = _resident(), _descriptors()
    began = time.perf_counter()
    ends = await asyncio.gather(*(start() for _ in range(jobs)))
    grown, opened = _resident() - memory, _descriptors() - descriptors
    right = await asyncio.gather(*(end() for end in ends))
    wall = time.perf_counter() - began
    if wrong := [is_right for is_right in right if not is_right()]:
        raise WrongResultError(f"of {jobs} results {len(wrong)} are not what was printed, such as {wrong[0]!r}")
    return {"wall": wall, "memory": grown / jobs, "descriptors": opened / jobs}


def _ours(supervisor: Supervisor) -> Callable[[], Awaitable[End]]:
    async def start() -> End:
        job = await supervisor.start(COMMAND, stdin=PIPE)

        async def end() -> Right:
            await job.write_eof()
            return partial(_is_right, (await job.wait()).check())

        return end

    return start


def _is_right(receipt: Receipt) -> bool:
    stream = receipt.streams["stdout"]
    return (
        receipt.capture.state == "complete"
        and stream is not None
        and stream.lines == LINES
        and stream.sha256 == hashlib.sha256(TEXT).hexdigest()
        and stream.path is not None
        and Path(stream.path).read_bytes() == TEXT
    )


def _peer(*, captured: bool) -> Callable[[], Awaitable[End]]:
    pipe = asyncio.subprocess.PIPE
    out = pipe if captured else asyncio.subprocess.DEVNULL

    async def start() -> End:
        process = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=out, stderr=out)

        async def end() -> Right:
            text, _ = await process.communicate()
            return lambda: process.returncode == 0 and (text == TEXT or not captured)

        return end

    return start


if __name__ == "__main__":
    alone.answer(_figures)
