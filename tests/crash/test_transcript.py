"""A host's own transcript: each call struck, and the states of the disk after a power loss at any moment [seed 003].

A part of the kinds and states is tried here, all of them with `CRASH_TESTS=full`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Tried

FULL: Final = os.environ.get("CRASH_TESTS") == "full"
KINDS: Final = "kill-before,kill-after,kill-within,EIO,ENOSPC,EDQUOT,short" if FULL else "kill-within,EIO"
MOST: Final = 16 if FULL else 2
"""States that are looked at for one moment."""

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the harness forks and looks at /proc"),
]


def test_a_transcript_that_is_killed_or_fails_keeps_its_promises(
    ask_program: Callable[..., Any], tmp_path: Path, tried: Tried
) -> None:
    """At each call: what was acknowledged is there, rewrites are old or new, no turn that failed is completed."""
    came = ask_program("transcripts.py", tmp_path, "sweep", KINDS)
    assert came["broken"] == []
    assert came["calls"] > 50
    tried(calls_of_a_transcript_struck=came["runs"])


def test_a_transcript_after_a_power_loss_keeps_its_promises(
    ask_program: Callable[..., Any], tmp_path: Path, tried: Tried
) -> None:
    """Undisturbed, and after each of its syncs has failed."""
    came = ask_program("transcripts.py", tmp_path, "states", MOST)
    assert came["broken"] == []
    assert came["syncs"] > 20
    tried(states_of_a_transcript=came["states"])
