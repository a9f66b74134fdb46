"""What everybody pays before the first command: `import supervisor`, and `spoolvisor --help`.

Each in a fresh interpreter, in turn, its modules compiled already. The base is an interpreter that imports what anybody
would need for the same: asyncio and pydantic. The bare interpreter is beside it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from .alone import ROOT
from .harness import Contender, Run, Settings, compare
from .report import Report

if TYPE_CHECKING:
    from pathlib import Path

BASE: Final = "import asyncio, pydantic"
COMMANDS: Final = {
    "(nothing)": ("-c", ""),
    BASE: ("-c", BASE),
    "import supervisor": ("-c", "import supervisor"),
    "import supervisor; supervisor.Supervisor": ("-c", "import supervisor; supervisor.Supervisor"),
    "spoolvisor --help": ("-m", "supervisor", "--help"),
}
STARTS: Final = 20
"""Interpreters a run: one alone varies by a third."""


def measure(settings: Settings) -> Report:
    """Return milliseconds a start."""
    starts = 3 if settings.quick else STARTS
    contenders = [Contender(name, partial(_run, command, starts)) for name, command in COMMANDS.items()]
    timings = compare(contenders, settings, lambda _contender, _run: None)
    base = timings[BASE]
    return Report(
        name="imports",
        title="Imports: a fresh interpreter to its end",
        columns=("", "median ms", "min-max", "relative to asyncio and pydantic"),
        rows=[
            (
                f"`{name}`",
                f"{timing.median / starts * 1000:.0f}",
                f"{min(timing.seconds) / starts * 1000:.0f}-{max(timing.seconds) / starts * 1000:.0f}",
                f"{timing.ratio(base):.2f}",
            )
            for name, timing in timings.items()
        ],
        facts={"rounds": str(settings.rounds), "starts a round": str(starts)},
        data={"seconds": {name: timing.seconds for name, timing in timings.items()}, "starts": starts},
    )


def _run(command: tuple[str, ...], starts: int, directory: Path) -> Run:
    began = time.perf_counter()
    for _ in range(starts):
        subprocess.run([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return Run(time.perf_counter() - began, directory)
