"""The states that a disk may be in after the power went, at any moment and in any order of writing (`states.py`).

Two scenarios stand for the others; those too with `CRASH_TESTS=full`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from conftest import Disks, Tried

FULL: Final = os.environ.get("CRASH_TESTS") == "full"
SCENARIOS: Final = ("life", "completions", *(("finish-by-links", "recovery") if FULL else ()))

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the harness forks and looks at /proc"),
]


def violations(disks: Disks, *invariants: str) -> list[str]:
    """Return what breaks an invariant in any state."""
    came = disks.ask("memory" if "memory" in disks.places else "disk", "states", *SCENARIOS)
    return [f"{name}: {text}" for name in SCENARIOS for found, text in came[name]["found"] if found in invariants]


def test_every_moment_of_each_scenario_was_looked_at(disks: Disks, tried: Tried) -> None:
    """And once more for each of its syncs, which failed."""
    violations(disks)
    came = disks.ask("memory" if "memory" in disks.places else "disk", "states", *SCENARIOS)
    assert all(came[name]["states"] > 50 and came[name]["syncs"] > 8 for name in SCENARIOS), came
    states, syncs = (sum(came[name][what] for name in SCENARIOS) for what in ("states", "syncs"))
    tried(states_after_a_power_loss=states, syncs_that_failed_before_one=syncs)


def test_i1_after_a_power_loss_complete_is_complete(disks: Disks) -> None:
    """[I1] Whatever was not synced: a receipt that says so stands before exactly what it says."""
    assert violations(disks, "I1") == []


def test_i2_i8_after_a_power_loss_what_was_acknowledged_is_there(disks: Disks) -> None:
    """[I2, I8] Receipts, claims and acknowledgements, also where a sync had failed and was tried again."""
    assert violations(disks, "I2", "I8") == []


def test_i3_after_a_power_loss_leftovers_are_never_promoted(disks: Disks) -> None:
    """[I3] Torn receipts and launch records included."""
    assert violations(disks, "I3") == []


def test_i4_after_a_power_loss_recovery_is_idempotent_and_never_raises(disks: Disks) -> None:
    """[I4] In each state."""
    assert violations(disks, "I4") == []
