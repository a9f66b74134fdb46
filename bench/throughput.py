"""How fast a large output gets into a file: lines of 80 bytes from a child that no reader keeps up with.

Ours decodes, strips, searches for three known values, hashes, previews and writes; the peers only write. `tee` is the
measure, since it is what people use to keep an output and see it too. A barrier means that the bytes are on the
disk, so its peer is `tee` followed by `sync` of the file.
"""

from __future__ import annotations

import functools
import shlex
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import machine, ours
from .harness import MIB, Contender, Run, Settings, WrongResultError, check_file, check_room, compare
from .producer import Producer, digest_of, make_producer
from .report import Report

if TYPE_CHECKING:
    from .harness import Timings

SIZE: Final = 1024 * MIB
QUICK_SIZE: Final = 32 * MIB
BASE: Final = "cmd | tee file >/dev/null"
PEERS: Final = {
    "cmd > file": "exec {} > file",
    "cmd | cat > file": "{} | cat > file",
    BASE: "{} | tee file > /dev/null",
    "cmd | tee file >/dev/null; sync file": "{} | tee file > /dev/null; sync file",
}
"""By name, as `sh` gets them, with the command for the braces."""


def measure(settings: Settings) -> Report:
    """Return the table. Raises: WrongResultError."""
    size = settings.size or (QUICK_SIZE if settings.quick else SIZE)
    check_room(settings.scratch, size)
    producer = make_producer(settings.scratch, size)
    sha256 = digest_of(producer)

    def check(_: Contender, run: Run) -> None:
        check_file(run.file, producer.size, sha256)

    timings = compare(contenders(producer, sha256), settings, check)
    base = timings[BASE]
    return Report(
        name="throughput",
        title=f"Throughput: {producer.size / MIB:.0f} MiB of 80-byte lines into a file",
        columns=("", "median s", "min-max s", "MB/s", "wall relative to tee"),
        rows=[_row(timing, base, producer.size) for timing in timings.values()],
        facts={"producer": producer.kind, **ours.engine_facts(), "rounds": str(settings.rounds)},
        data={
            "bytes": producer.size,
            "sha256": sha256,
            "rows": [
                {"name": row.name, "seconds": row.seconds, "median": row.median, "ratio_to_tee": row.ratio(base)}
                for row in timings.values()
            ],
        },
    )


def contenders(producer: Producer, sha256: str) -> list[Contender]:
    """Return the peers and ours, in the order in which each round runs them."""
    peers = [Contender(name, functools.partial(_run_peer, producer, script)) for name, script in PEERS.items()]
    loops = ours.LOOPS if machine.uvloop_version() else ours.LOOPS[:1]
    orders = [ours.Order(producer.argv, loop, durability) for durability in ours.DURABILITIES for loop in loops]
    mine = [
        Contender(
            f"ours, {order.loop}, durability {order.durability}", functools.partial(_run_ours, order, producer, sha256)
        )
        for order in orders
    ]
    return [*peers, *mine]


def _run_peer(producer: Producer, script: str, directory: Path) -> Run:
    command = ["sh", "-c", script.format(shlex.join(producer.argv))]
    began = time.perf_counter()
    subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, check=True)
    return Run(time.perf_counter() - began, directory / "file")


def _run_ours(order: ours.Order, producer: Producer, sha256: str, directory: Path) -> Run:
    outcome = ours.run(order, directory)
    if (outcome.size, outcome.sha256) != (producer.size, sha256):
        raise WrongResultError(f"the receipt speaks of {outcome.size} bytes, sha256 {outcome.sha256}")
    return Run(outcome.seconds, Path(outcome.path))


def _row(timings: Timings, base: Timings, size: int) -> tuple[str, ...]:
    name = timings.name if timings.name.startswith("ours") else f"`{timings.name}`"
    return (
        name,
        f"{timings.median:.2f}",
        f"{min(timings.seconds):.2f}-{max(timings.seconds):.2f}",
        f"{size / timings.median / 1e6:.0f}",
        f"{timings.ratio(base):.2f}",
    )
