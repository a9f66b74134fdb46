"""By how much the peak of our resident memory grows while a child writes gigabytes: it should not depend on how many.

The peak before the start is that of an interpreter with everything imported and the directory open. What a search
engine is built of is in the growth. Nothing is limited but for `retained 32 MiB`, which is what a user has by default.
"""

from __future__ import annotations

import statistics
from typing import Final

from . import ours
from .harness import MIB, Settings, check_room, note
from .producer import make_producer, text_of
from .report import Report
from .throughput import loops

GIB: Final = 1024 * MIB
SIZES: Final = (GIB, 4 * GIB, 16 * GIB)
KEPT_WHOLE: Final = 4 * GIB
"""Up to here all is kept and checked; of more only the default is, since a disk may not have the room."""


def measure(settings: Settings) -> Report:
    """Return the table. Raises: WrongResultError."""
    sizes = (settings.size,) if settings.size else tuple(size // 64 for size in SIZES) if settings.quick else SIZES
    rounds = min(settings.rounds, 3)  # memory varies less than time does
    rows: list[tuple[str, ...]] = []
    data: dict[str, list[int]] = {}
    for size in sizes:
        producer = make_producer(settings.scratch, size)
        whole = size <= KEPT_WHOLE
        if whole:
            check_room(settings.scratch, size)
        text = text_of(producer) if whole else None
        for loop in loops():
            order = ours.Order(producer.argv, loop, "none", limited=not whole)
            name = f"{size / GIB:g} GiB, {loop}{'' if whole else ', retained 32 MiB'}"
            data[name] = []
            for _ in range(rounds):
                outcome = ours.run_in(settings.scratch / "run", order, text)
                data[name].append(outcome.growth)
                note(f"{name}: {outcome.growth / MIB:.1f} MiB")
            rows.append((name, f"{statistics.median(data[name]) / MIB:.1f}", f"{max(data[name]) / MIB:.1f}"))
    return Report(
        name="memory",
        title="Memory: growth of our peak while a child writes",
        columns=("", "median MiB", "most MiB"),
        rows=rows,
        facts={**ours.engine_facts(), "rounds": str(rounds)},
        data={"growth": data},
    )
