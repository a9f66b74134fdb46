"""Disks that are really full, really lose their power and really stop: for root, and skipped without."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Tried

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="tmpfs, loop devices and fsfreeze are Linux's"),
]


@pytest.fixture
def real_disk(mount: Callable[..., Any], tmp_path: Path, ask_program: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs the program of real disks, where what it needs is there."""
    with mount(tmp_path / "probe", "-t", "tmpfs", "spoolvisor-crash"):
        place = tmp_path / "place"
        place.mkdir()

    def run(action: str) -> Any:  # noqa: ANN401 - JSON
        if action != "full" and not (shutil.which("mkfs.ext4") and shutil.which("fsfreeze")):
            pytest.skip("mkfs.ext4 and fsfreeze are not installed")
        if action != "full" and not os.path.exists("/dev/loop-control"):  # noqa: PTH110 - no file of ours
            pytest.skip("there are no loop devices here")
        return ask_program("real.py", action, place)

    return run


def test_i1_i3_i7_i9_i10_on_a_tmpfs_of_any_size(real_disk: Callable[..., Any], tried: Tried) -> None:
    """Of bytes and of inodes: the command ends with its code, and what is kept is what the receipt says."""
    came = real_disk("full")
    assert came["found"] == []
    assert set(came["states"].values()) == {"no-space", "complete"}
    tried(full_disks=came["rooms"])


def test_i1_i2_i3_i4_after_real_power_losses_of_an_ext4(real_disk: Callable[..., Any], tried: Tried) -> None:
    """The file system is shut down without its log before every third call (all: `CRASH_TESTS=full`)."""
    came = real_disk("every-power-loss" if os.environ.get("CRASH_TESTS") == "full" else "power-loss")
    assert came["found"] == []
    assert came["points"] > 15
    tried(real_power_losses=came["points"])


def test_i10_a_frozen_disk_holds_up_neither_child_nor_interpreter(real_disk: Callable[..., Any], tried: Tried) -> None:
    """[D8] The receipt comes while the disk is frozen, and knows what it cannot know; then leftovers are leftovers."""
    came = real_disk("freeze")
    receipt = came["receipt"]
    assert receipt["process"]["code"] == 7
    assert receipt["capture"] == {"state": "failed", "reason": "writer-stuck"}
    # Known only if what hangs is the reservation and not the text itself.
    assert receipt["streams"]["stdout"]["retained"]["end"] in {None, len("begin\n")}
    assert receipt["streams"]["stdout"]["lines"] == 20001
    assert came["ended"]
    assert came["code"] == 0
    assert came["begins"]
    assert came["found"] == []
    tried(frozen_disks=1)
