"""Other outputs than lines in large writes: chatty, one line, coloured, CJK; each beside `tee`.

A chatty child makes a system call for each of its lines, so the pipe's wake-ups cost more than the bytes. Colours are
stripped, so that what is kept is compared with the output without them. CJK is decoded and searched in UTF-8.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from . import ours
from .harness import MIB, Contender, Run, Settings, check_file, check_room, compare
from .producer import Shape, make_producer, text_of
from .report import Report
from .throughput import BASE, SHELL, loops, run_shell

if TYPE_CHECKING:
    from pathlib import Path

    from .harness import Timings
    from .producer import Text

SIZES: Final[dict[Shape, int]] = {
    "chatty": 400_000_000,
    "single": 1024 * MIB,
    "coloured": 256 * MIB,
    "cjk": 512 * MIB,
}
"""Bytes. The chatty one is 5 million writes of 80."""
QUICK: Final = 32


def measure(settings: Settings) -> Report:
    """Return the table. Raises: WrongResultError."""
    rows: list[tuple[str, ...]] = []
    data: dict[str, object] = {}
    for shape, size in SIZES.items():
        wanted = settings.size or (size // QUICK if settings.quick else size)
        check_room(settings.scratch, wanted)
        timings, processors = _compare(settings, shape, wanted)
        base = timings[BASE]
        rows += [_row(shape, timing, base, processors.get(timing.name, [])) for timing in timings.values()]
        data[shape] = {
            name: {"seconds": timing.seconds, "processor_seconds": processors.get(name)}
            for name, timing in timings.items()
        }
    return Report(
        name="shapes",
        title="Shapes: other outputs, redaction on, no digest, no barrier",
        columns=("", "median s", "min-max s", "wall relative to tee", "our CPU s"),
        rows=rows,
        facts={**ours.engine_facts(), "rounds": str(settings.rounds)},
        data=data,
    )


def _compare(settings: Settings, shape: Shape, size: int) -> tuple[dict[str, Timings], dict[str, list[float]]]:
    producer = make_producer(settings.scratch, size, shape)
    written, kept = text_of(producer), text_of(producer, stripped=shape == "coloured")
    processors: dict[str, list[float]] = {}

    def check(contender: Contender, run: Run) -> None:
        text = kept if contender.name.startswith("ours") else written
        check_file(run.file, text.size, text.sha256)

    contenders = [Contender(BASE, partial(run_shell, producer, SHELL[BASE]))]
    for loop in loops():
        name = f"ours, {loop}"
        order = ours.Order(producer.argv, loop, "none", digest=False)
        contenders.append(Contender(name, partial(_run_ours, order, kept, processors.setdefault(name, []))))
    timings = compare(contenders, settings, check)
    return timings, {name: seconds[1:] for name, seconds in processors.items()}  # without the warm-up


def _run_ours(order: ours.Order, text: Text, processors: list[float], directory: Path) -> Run:
    outcome = ours.checked(order, text, directory)
    processors.append(outcome.processor_seconds)
    return Run(outcome.seconds, outcome.file)


def _row(shape: Shape, timings: Timings, base: Timings, processors: list[float]) -> tuple[str, ...]:
    name = timings.name if timings.name.startswith("ours") else f"`{timings.name}`"
    ordered = sorted(processors)
    return (
        f"{shape}: {name}",
        f"{timings.median:.2f}",
        f"{min(timings.seconds):.2f}-{max(timings.seconds):.2f}",
        f"{timings.ratio(base):.2f}",
        f"{ordered[len(ordered) // 2]:.2f}" if ordered else "",
    )
