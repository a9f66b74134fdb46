"""What a chaos run will do, decided by its seed alone: the same seed and round give the same plan.

What comes of it depends on the machine's timing as well, which no seed repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from shapes import SHAPES, VARIABLE, Shape

from supervisor import Limits

KIB: Final = 1024
ENOUGH: Final = 1.2
"""Seconds of a round within which everything that is planned begins."""
ACTIONS: Final = ("terminate", "kill", "stop", "signal", "cancel", "cancel-terminate", "add-secret")
FAULTS: Final = ("full", "quota", "short", "slow", "hold", "sync-text", "sync-receipt", "sync-directory")


@dataclass(frozen=True)
class Act:
    """Something that is done at a moment of a round or job."""

    at: float
    name: str
    value: float = 0


@dataclass(frozen=True)
class JobPlan:
    """One job and what is done to it."""

    number: int
    shape: Shape
    foreground: bool
    delay: float
    """Seconds from the beginning of the round."""
    options: dict[str, Any]
    acts: tuple[Act, ...]
    readers: tuple[Act, ...]
    """Followers (`value`: for how long, 0: to the end), here and in other processes, and readers of single pages."""


@dataclass(frozen=True)
class RoundPlan:
    """One supervisor's life."""

    number: int
    jobs: tuple[JobPlan, ...]
    faults: tuple[Act, ...]
    limits: Limits
    durability: str
    closes_at: float | None
    """When the supervisor is left, whatever still runs; None: when no job is live."""
    consumers: tuple[Act, ...]
    """Who takes completions; `value`: when each is cancelled, 0: never."""
    directory: bool
    """Whether there is one."""


def plan(seed: int, number: int) -> RoundPlan:
    """Return what a round does."""
    dice = Random(f"{seed}:{number}")
    closes_at = round(dice.uniform(0.05, ENOUGH), 3) if dice.random() < 0.3 else None
    faults = tuple(
        Act(_moment(dice), dice.choice(FAULTS), dice.choice([1, 700, 60_000]))
        for _ in range(dice.choice([0, 0, 1, 1, 2]))
    )
    consumers = tuple(
        Act(_moment(dice), "consume", round(dice.uniform(0.05, 2), 3) if dice.random() < 0.6 else 0)
        for _ in range(dice.randrange(4))
    )
    return RoundPlan(
        number=number,
        jobs=tuple(_job(dice, index) for index in range(dice.choice([1, 4, 10, 16]))),
        faults=faults,
        limits=_limits(dice),
        durability=dice.choice(["barrier", "barrier", "none"]),
        closes_at=closes_at,
        consumers=consumers,
        directory=dice.random() < 0.95,
    )


def _moment(dice: Random) -> float:
    return dice.choice([0.0, round(dice.uniform(0, 0.1), 4), round(dice.uniform(0, ENOUGH), 4)])


def _limits(dice: Random) -> Limits:
    return Limits(
        job_bytes=dice.choice([4 * KIB, 200 * KIB, 32 * KIB * KIB]),
        stderr_reserve_bytes=dice.choice([0, 2 * KIB, KIB * KIB]),
        conversation_bytes=dice.choice([300 * KIB, 128 * KIB * KIB, 128 * KIB * KIB]),
        queue_bytes=dice.choice([64 * KIB, 4 * KIB * KIB]),
        stall_timeout=dice.choice([0.1, 5.0, 5.0]),
        max_jobs=dice.choice([None, None, None, 3]),
    )


def _job(dice: Random, number: int) -> JobPlan:
    shape = dice.choice(SHAPES)(dice)
    foreground = dice.random() < 0.3 and shape.name != "writer"  # nobody could end its stdin
    options: dict[str, Any] = {
        "kill_after": dice.choice([0, 0.05, 0.4]),
        "drain_timeout": dice.choice([0, 0.05, 0.4]),
        "env_policy": "inherit",
        "env": {"CHAOS_API_TOKEN": VARIABLE},
        **shape.options,
    }
    chances: tuple[tuple[float, dict[str, Any]], ...] = (
        (0.15, {"time_limit": round(dice.uniform(0.05, 1), 3)}),
        (0.15, {"idle_limit": round(dice.uniform(0.05, 1), 3)}),
        (0.1, {"merge": True}),
        (0.05, {"capture": "none"}),
        (0.08, {"keep": "raw"}),
        (0.25, {"on_exit": "end"}),
    )
    for chance, option in chances:
        if dice.random() < chance and not ("keep" in option and options.get("capture") == "none"):
            options |= option
    acts = [Act(_moment(dice), dice.choice(ACTIONS), dice.random()) for _ in range(dice.choice([0, 0, 1, 1, 2, 3]))]
    readers = tuple(
        Act(
            _moment(dice),
            dice.choices(["follow", "read", "outside"], [14, 5, 1])[0],
            dice.choice([0, 0, round(dice.random(), 3)]),
        )
        for _ in range(dice.choice([0, 0, 1, 3]))
    )
    return JobPlan(number, shape, foreground, _moment(dice), options, tuple(sorted(acts, key=_at)), readers)


def _at(act: Act) -> float:
    return act.at
