"""The harness finds what it is for: each step of the recipe that is left out breaks the invariant it is there for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from conftest import Disks, Tried

MUTANTS: Final = {
    "data-not-synced": ("life", "power-loss", {"I1", "I2"}),
    "names-not-synced": ("life", "power-loss", {"I1", "I2"}),
    "receipt-not-synced": ("life", "power-loss", {"I2"}),
    "receipt-first": ("life", "power-loss", {"I1", "I2"}),
    "published-not-synced": ("life", "power-loss", {"I2"}),
    "above-not-synced": ("life", "power-loss", {"I1", "I2"}),
    "marker-not-synced": ("life", "power-loss", {"I2"}),
    "replacing": ("planted-name", "EIO", {"I2"}),
    "owner-unlocked": ("two-processes", "kill-before", {"I5"}),
    "live-name-left": ("finish-by-links", "kill-before", {"I9"}),
    "open-to-others": ("start", "kill-after", {"I9"}),
    "secrets-kept": ("feed", "kill-before", {"I6"}),
    "faults-swallowed": ("start", "EIO", {"I8"}),
    "short-writes-believed": ("feed", "short", {"I1"}),
}
"""The scenario in which each is hunted, the fault that shows it, and what it breaks."""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the harness forks and looks at /proc"),
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_recipe_with_one_step_left_out_is_caught(disks: Disks, mutant: str, tried: Tried) -> None:
    """What is found first breaks one of the invariants that the step is there for."""
    wanted = [f"{name}={scenario}={kind}" for name, (scenario, kind, _) in MUTANTS.items()]
    came = disks.ask("memory" if "memory" in disks.places else "disk", "mutants", *wanted)
    broken = {invariant for invariant, _ in came[mutant]}
    assert broken & MUTANTS[mutant][2], came[mutant]
    tried(mutants_caught=1)


def test_the_whole_recipe_passes_where_its_mutants_are_caught(disks: Disks) -> None:
    """In the scenarios that no sweep plays; a planted file stays, and no receipt names it as the text."""
    came = disks.ask("memory" if "memory" in disks.places else "disk", "sweep", "EIO", "life", "planted-name")
    assert came["life"]["found"] == []
    assert came["planted-name"]["found"] == []
