"""The crash tests' program: prints as JSON what came of what it was asked to try.

Arguments: an empty directory on the disk in question, then one of
    sweep KINDS SCENARIO...     each call of each scenario, struck by each of the kinds, which are parted by commas
    states SCENARIO...          each state of the disk after a power loss at any moment of each scenario
    mutants MUTANT=SCENARIO=KIND...     which invariants each mutant breaks; KIND is "power-loss" or a kind of fault
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from states import hunt_states, states
from sweep import hunt, spread, sweep

if TYPE_CHECKING:
    from sweep import Task


def mutants(place: Path, wanted: list[str]) -> dict[str, Any]:
    """Return what each mutant breaks, by mutant."""
    tasks: list[Task] = []
    for mutant, name, kind in (text.split("=") for text in wanted):
        if kind == "power-loss":
            tasks.append(partial(hunt_mutant, hunt_states, mutant, name))
        else:
            tasks.append(partial(hunt_mutant, partial(hunt, kind=kind), mutant, name))
    return dict(spread(tasks, place))


def hunt_mutant(by: Any, mutant: str, name: str, place: Path) -> tuple[str, Any]:  # noqa: ANN401 - one of two functions
    """Return the mutant and what it breaks."""
    return mutant, by(place, mutant, name)


def main(place: Path, action: str, wanted: list[str]) -> dict[str, Any]:
    """Do what is asked for."""
    os.umask(0)
    if action == "sweep":
        return sweep(place, wanted[0].split(","), wanted[1:])
    return states(place, wanted) if action == "states" else mutants(place, wanted)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])))  # noqa: T201 - a program
