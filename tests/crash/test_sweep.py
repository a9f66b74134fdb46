"""Every call that changes the disk, in every life, killed before, after and within it, failing and stopping short.

After one call is before the next, but for what is told between the two, and a fault that is put above the disk is the
same on any: so one kind of kill and one fault, on the tests' own disk, stand for all. All of it, on each disk:
`CRASH_TESTS=full`, which takes some minutes.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from conftest import Disks, Tried

FAULTS: Final = ("EIO", "ENOSPC", "EDQUOT", "short")
FULL: Final = os.environ.get("CRASH_TESTS") == "full"
KINDS: Final = ("kill-before", "kill-after", "kill-within", *FAULTS) if FULL else ("kill-after", "EIO")
SCENARIOS: Final = (
    "start",
    "feed",
    "quota",
    "cancel",
    "drain-timeout",
    "finish",
    "finish-by-links",
    "two-processes",
    "recovery",
    "removal",
    "completions",
)

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the harness forks and looks at /proc"),
    pytest.mark.parametrize("disk", ["memory", "disk"]),
]


def violations(disks: Disks, disk: str, invariant: str) -> list[str]:
    """Return what breaks an invariant anywhere."""
    if disk not in disks.places:
        pytest.skip("there is no tmpfs here, and only root can mount one")
    if not FULL and disk == "memory":
        pytest.skip("one disk stands for both: CRASH_TESTS=full")
    came = disks.ask(disk, "sweep", ",".join(KINDS), *SCENARIOS)
    return [f"{name}: {text}" for name in SCENARIOS for found, text in came[name]["found"] if found == invariant]


def test_each_scenario_was_struck_at_each_of_its_calls(disks: Disks, disk: str, tried: Tried) -> None:
    """By every kind; those that are only for writes were at some, and none is left out in silence."""
    violations(disks, disk, "I1")
    came = disks.ask(disk, "sweep", ",".join(KINDS), *SCENARIOS)
    for name in SCENARIOS:
        struck = came[name]["kinds"]
        assert came[name]["points"] == struck[KINDS[0]] > 5
        assert name in {"removal", "two-processes"} or all(struck.values()), (name, struck)
    runs = {kind: sum(came[name]["kinds"][kind] for name in SCENARIOS) for kind in KINDS}
    points = sum(came[name]["points"] for name in SCENARIOS)
    kills = sum(runs[kind] for kind in KINDS if kind.startswith("kill"))
    tried(calls_struck=points, kills=kills, faults=sum(runs.values()) - kills)


def test_i1_complete_is_exactly_the_committed_representation(disks: Disks, disk: str) -> None:
    """[I1] Size and digest, and no more or less than what was written; a partial one has its boundary."""
    assert violations(disks, disk, "I1") == []


def test_i2_what_was_acknowledged_survives(disks: Disks, disk: str) -> None:
    """[I2] Receipts, removals and acknowledgements; what was handed over is offered again, and nothing twice."""
    assert violations(disks, disk, "I2") == []


def test_i3_leftovers_are_listed_as_partial_and_never_promoted(disks: Disks, disk: str) -> None:
    """[I3] With the text that they hold, before recovery and after it."""
    assert violations(disks, disk, "I3") == []


def test_i4_recovery_is_idempotent_and_never_raises(disks: Disks, disk: str) -> None:
    """[I4] Also where it was killed itself."""
    assert violations(disks, disk, "I4") == []


def test_i5_captures_of_live_owners_are_untouched(disks: Disks, disk: str) -> None:
    """[I5] While another process dies and recovery runs, and they are complete in the end."""
    assert violations(disks, disk, "I5") == []


def test_i6_no_secret_nor_half_of_it_is_anywhere(disks: Disks, disk: str) -> None:
    """[I6] In no file, temporary ones included."""
    assert violations(disks, disk, "I6") == []


def test_i7_used_and_reserved_stay_within_the_allowance_and_the_dead_release(disks: Disks, disk: str) -> None:
    """[I7] To the byte."""
    assert violations(disks, disk, "I7") == []


def test_i8_a_failed_sync_is_never_an_acknowledged_complete(disks: Disks, disk: str) -> None:
    """[I8] Of data, names, receipt and the directories above."""
    assert violations(disks, disk, "I8") == []


def test_i9_every_entry_is_private_and_has_one_link(disks: Disks, disk: str) -> None:
    """[I9] Two links only between the two halves of a rename that has no call of its own."""
    assert violations(disks, disk, "I9") == []


def test_i10_the_child_and_its_host_end_normally(disks: Disks, disk: str) -> None:
    """[I10] Under any fault the command has its exit code, and nothing is raised but what is typed."""
    assert violations(disks, disk, "I10") == []
