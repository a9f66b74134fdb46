"""One allowance, shared by many processes of which half are killed [D5, I7]."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Tried

KIB = 1024
PROCESSES, JOBS = 8, 8


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="the harness forks and looks at /proc")
def test_i7_a_crowd_stays_within_its_allowance_and_the_next_start_reconciles_to_the_byte(
    tmp_path: Path, ask_program: Callable[..., Any], tried: Tried
) -> None:
    """Eight processes with eight jobs each, four of them killed: the sixty-fourth part of what D5 is about.

    The real size is `harness/crowd.py DIRECTORY 8 8 8388608 134217728`.
    """
    limit = 2048 * KIB
    directory = tmp_path / "conversation"
    directory.mkdir(mode=0o700)
    came = ask_program("crowd.py", directory, PROCESSES, JOBS, 128 * KIB, limit)
    assert came["killed"] == [0, 2, 4, 6]
    assert came["most"] <= limit
    assert came["looks"] > 3
    assert came["receipts"] == JOBS * (PROCESSES - len(came["killed"]))
    assert came["wrong"] == []
    assert came["used"][0] == came["used"][1] <= limit
    assert came["reserved"] == [0, 0]
    assert came["last"] == ["partial", "conversation-limit"]
    assert came["full"] == [limit, limit]
    assert set(came["recovered"]) <= {"supervisor-lost"}
    tried(processes_sharing_an_allowance=PROCESSES)
