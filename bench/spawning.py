"""For how long a loop stands still while it starts processes: of a large host, and a thousand at once.

Beside the starts a task asks for its turn again and again, and the longest time between two turns is what counts: so
long nobody else of the program is served. The peer is `asyncio.create_subprocess_exec` and `wait`, without any output.
Ours is `Supervisor.run`, with pipes, sanitising, the look at the tree and the receipt; all of that is in the pause.
"""

from __future__ import annotations

import asyncio
import mmap
import statistics
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from supervisor import Supervisor

from . import alone, machine
from .harness import WrongResultError, note
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .harness import Settings

GIB: Final = 1 << 30
LARGE_GIB: Final = 4
IN_A_ROW: Final = 20
AT_ONCE: Final = 1000
QUICK_AT_ONCE: Final = 50
WARM: Final = 3
PEER: Final = "asyncio.create_subprocess_exec"
CONTENDERS: Final = {
    PEER: ("peer", "asyncio"),
    "ours, asyncio": ("ours", "asyncio"),
    "ours, uvloop": ("ours", "uvloop"),
}


def measure(settings: Settings) -> Report:
    """Return pauses. Raises: WrongResultError."""
    large = 0 if settings.quick else LARGE_GIB
    at_once = QUICK_AT_ONCE if settings.quick else AT_ONCE
    works = {
        f"{IN_A_ROW} in a row, host of {large} GiB": {"gib": large, "row": IN_A_ROW, "at_once": 1},
        f"{at_once} at once": {"gib": 0, "row": 1, "at_once": at_once},
    }
    found: dict[str, dict[str, list[dict[str, float]]]] = {work: {} for work in works}
    for number in range(settings.rounds + 1):
        for work, order in works.items():
            for name, (kind, loop) in CONTENDERS.items():
                if loop == "uvloop" and machine.uvloop_version() is None:
                    continue
                figures = alone.run("bench.spawning", {**order, "kind": kind, "loop": loop}, settings.scratch)
                if number:
                    found[work].setdefault(name, []).append(figures)
                note(f"{f'round {number}' if number else 'warm-up'}: {work}: {name}: {figures}")
    return Report(
        name="spawning",
        title="Spawning: how long the loop stands still",
        columns=("", "longest pause ms", "min-max", "relative to asyncio", "wall s"),
        rows=[_row(work, name, runs) for work, runs in found.items() for name in runs],
        facts={"rounds": str(settings.rounds)},
        data={"figures": found},
    )


def _row(work: str, name: str, runs: dict[str, list[dict[str, float]]]) -> tuple[str, ...]:
    pauses = [run["pause"] * 1000 for run in runs[name]]
    ratio = statistics.median(mine["pause"] / its["pause"] for mine, its in zip(runs[name], runs[PEER], strict=True))
    wall = statistics.median(run["wall"] for run in runs[name])
    return (
        f"{name}, {work}",
        f"{statistics.median(pauses):.1f}",
        f"{min(pauses):.1f}-{max(pauses):.1f}",
        f"{ratio:.2f}",
        f"{wall:.2f}",
    )


async def _peer() -> None:
    devnull = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec("true", stdin=devnull, stdout=devnull, stderr=devnull)
    if await process.wait():
        raise WrongResultError("true failed")


async def _figures(order: dict[str, Any]) -> dict[str, float]:
    size = int(order["gib"] * GIB)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) if size else nullcontext() as memory:
        if memory is not None:
            for start in range(0, size, mmap.PAGESIZE):
                memory[start] = 1
        if order["kind"] == "peer":
            return await _pauses(_peer, order)
        async with Supervisor() as supervisor:

            async def ours() -> None:
                (await supervisor.run(["true"])).check()

            return await _pauses(ours, order)


async def _pauses(one: Callable[[], Awaitable[None]], order: dict[str, Any]) -> dict[str, float]:
    longest = 0.0
    stopped = False

    async def watch() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not stopped:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    for _ in range(WARM):
        await one()
    watcher = asyncio.ensure_future(watch())
    await asyncio.sleep(0)
    began = time.perf_counter()
    for _ in range(order["row"]):
        await asyncio.gather(*(one() for _ in range(order["at_once"])))
    wall = time.perf_counter() - began
    stopped = True
    await watcher
    return {"pause": longest, "wall": wall}


if __name__ == "__main__":
    alone.answer(_figures)
