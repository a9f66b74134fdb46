"""How many commands a second are started, awaited and accounted for, when they do next to nothing: `true`.

One at a time, and 64 at once. The peer is bare `asyncio.create_subprocess_exec` with `communicate()`. Ours is `start`
and `wait`, with a directory: a capture, its launch record, two files, the look at the tree, and a published receipt.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor import Supervisor

from . import alone
from .harness import Settings, WrongResultError, note
from .report import Report
from .throughput import loops

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOBS: Final = 512
QUICK_JOBS: Final = 64
AT_ONCE: Final = (1, 64)
PEER: Final = "create_subprocess_exec + communicate()"
KINDS: Final = {PEER: "peer", "ours, no barrier": "none", "ours, barrier": "barrier"}


def measure(settings: Settings) -> Report:
    """Return commands a second. Raises: WrongResultError."""
    jobs = QUICK_JOBS if settings.quick else JOBS
    rates: dict[str, list[float]] = {}
    bases: dict[str, str] = {}
    for number in range(settings.rounds + 1):
        for at_once in AT_ONCE:
            base = f"{at_once} at once: {PEER}, asyncio"
            for kind_name, kind in KINDS.items():
                for loop in loops():
                    name = f"{at_once} at once: {kind_name}, {loop}"
                    bases[name] = base
                    order = {"kind": kind, "loop": loop, "jobs": jobs, "at_once": at_once}
                    rate = alone.run_in(settings.scratch / "run", "bench.start", order)["rate"]
                    if number:
                        rates.setdefault(name, []).append(rate)
                    note(f"{f'round {number}' if number else 'warm-up'}: {name}: {rate:.0f}/s")
    return Report(
        name="start",
        title="Start: launch-to-receipt of `true`",
        columns=("", "median/s", "min-max", "rate relative to the peer on asyncio"),
        rows=[_row(name, found, rates[bases[name]]) for name, found in rates.items()],
        facts={"rounds": str(settings.rounds), "commands a round": str(jobs)},
        data={"rates": rates},
    )


def _row(name: str, rates: list[float], base: list[float]) -> tuple[str, ...]:
    ratio = statistics.median(mine / its for mine, its in zip(rates, base, strict=True))
    return (name, f"{statistics.median(rates):.0f}", f"{min(rates):.0f}-{max(rates):.0f}", f"{ratio:.2f}")


async def _figures(order: dict[str, Any]) -> dict[str, float]:
    if order["kind"] == "peer":
        return {"rate": await _rate(order, _bare)}
    async with Supervisor(Path(order["directory"]), durability=order["kind"]) as supervisor:

        async def one() -> None:
            receipt = (await (await supervisor.start(["true"])).wait()).check()
            if receipt.capture.state != "complete":
                raise WrongResultError(f"a capture is {receipt.capture}")

        return {"rate": await _rate(order, one)}


async def _bare() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("true", stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    await process.communicate()
    if process.returncode:
        raise WrongResultError(f"true returned {process.returncode}")


async def _rate(order: dict[str, Any], one: Callable[[], Awaitable[None]]) -> float:
    """Return the jobs a second of as many tasks as are to be at work at once."""
    await one()
    left = iter(range(order["jobs"]))

    async def work() -> None:
        for _ in left:
            await one()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(order["at_once"])))
    return float(order["jobs"]) / (time.perf_counter() - began)


if __name__ == "__main__":
    alone.answer(_figures)
