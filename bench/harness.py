"""What every comparison has in common: contenders in turn (A B A B ...), results that are checked, medians.

One run: an empty directory, `sync` so that the disk starts idle, the contender's own clock around what it does, the
check of its result, and the removal of its files, whose pages that are still dirty are dropped with them. Only the
contender's own clock counts. A whole round before the first is thrown away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ROUNDS: Final = 5
"""The least for a figure that is published: a median that two disturbed rounds do not move."""
MIB: Final = 1024 * 1024


class WrongResultError(Exception):
    """A contender was fast and wrong, so that its time means nothing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asked for, as every bench gets it."""

    scratch: Path
    """An empty directory on the file system that is measured; removed afterwards."""
    rounds: int = ROUNDS
    size: int | None = None
    """Bytes, for a bench that has a size; None for its own default."""
    quick: bool = False
    """To see that everything works, in seconds; the figures are not for publication."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a contender: wall seconds by its own clock, and the file that it left."""

    seconds: float
    file: Path


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing the same thing. `run` does it once, with everything it leaves inside the directory given."""

    name: str
    run: Callable[[Path], Run]


@dataclass(frozen=True, slots=True)
class Timings:
    """All counted rounds of one contender, in their order."""

    name: str
    seconds: list[float] = field(default_factory=list[float])

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return statistics.median(self.seconds)

    def ratio(self, base: Timings) -> float:
        """Return the median of the ratios within each round: what slows a whole round down cancels out."""
        return statistics.median(mine / its for mine, its in zip(self.seconds, base.seconds, strict=True))


def compare(
    contenders: Sequence[Contender], settings: Settings, check: Callable[[Contender, Run], None]
) -> dict[str, Timings]:
    """Return the timings by name. Raises: WrongResultError from `check`, and whatever a contender raises."""
    timings = {contender.name: Timings(contender.name) for contender in contenders}
    for number in range(settings.rounds + 1):
        for contender in contenders:
            seconds = _once(contender, settings.scratch / "run", check)
            if number:
                timings[contender.name].seconds.append(seconds)
            note(f"{f'round {number}' if number else 'warm-up'}: {contender.name}: {seconds:.3f} s")
    return timings


def check_file(file: Path, size: int, sha256: str) -> None:
    """Return if the file has this size and hash. Raises: WrongResultError if not."""
    if (found := file.stat().st_size) != size:
        raise WrongResultError(f"{file.name} has {found} bytes instead of {size}")
    with file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != sha256:
            raise WrongResultError(f"{file.name} has another hash than what was produced")


def check_room(directory: Path, size: int) -> None:
    """Return if a file of `size` bytes fits in. Raises: WrongResultError if not."""
    free = shutil.disk_usage(directory).free
    if free < size + 64 * MIB:
        raise WrongResultError(f"{size // MIB} MiB do not fit in {directory}: {free // MIB} MiB are free")


def note(text: str) -> None:
    """Tell the person who waits what goes on; on stderr, so that stdout holds the report alone."""
    print(text, file=sys.stderr, flush=True)


def _once(contender: Contender, directory: Path, check: Callable[[Contender, Run], None]) -> float:
    directory.mkdir(mode=0o700)
    try:
        os.sync()
        run = contender.run(directory)
        check(contender, run)
    finally:
        shutil.rmtree(directory)
    return run.seconds
