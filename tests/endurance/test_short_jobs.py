"""Many short jobs, one after another: what the process owns does not grow.

A few hundred of them; 20,000 with `CRASH_TESTS=full`, which takes about a minute and a half on each loop. A quarter of
them is started, with files, and told of; the rest is run in the foreground and leaves none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

HARNESS: Final = Path(__file__).parent / "harness" / "short_jobs.py"
FULL: Final = os.environ.get("CRASH_TESTS") == "full"
JOBS: Final = 20_000 if FULL else 500
MIB: Final = 1024 * 1024
GROWTH: Final = 8 * MIB
"""Of resident memory after the first tenth of 20,000 jobs: some 450 bytes a job. A job that stays has 20 KiB.

Seen were 3.2 MiB on asyncio's loop and 2.4 MiB on uvloop, the allocator's, for the objects did not become more."""
WARM_UP: Final = 32 * MIB
"""The same while the process is still warming up: 256 ended jobs are remembered."""
OBJECTS: Final = 2000
"""Objects that the collector knows: 256 jobs have 25,000, one has about a hundred."""

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="the harness looks at /proc"),
]


def run(loop: str, jobs: int, patch: str = "") -> dict[str, Any]:
    """Return what the harness measured."""
    code = f"import runpy, sys\nsys.path[:] = {sys.path!r}\n{patch}\ndel sys.argv[0]\n"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(HARNESS), loop, str(jobs), "mixed"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=880)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def grown(told: dict[str, Any]) -> dict[str, int]:
    """Return by how much the last tenth has more than the first one in which 256 jobs are remembered."""
    # 256 jobs with a pid: the sixth tenth of 500, and any of 20,000.
    first, last = told["seen"][5 if told["jobs"] < 2560 else 0], told["seen"][-1]
    return {name: last[name] - first[name] for name in first}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"] if FULL else ["uvloop"])
def test_nothing_grows_with_the_number_of_jobs(loop: str) -> None:
    """Neither memory nor descriptors, tasks, threads (but for idle writers of the pool) and children."""
    pytest.importorskip(loop)
    told = run(loop, JOBS)
    more = grown(told)
    assert (told["jobs"], told["wrong"]) == (JOBS, 0)
    assert more["resident"] < (GROWTH if FULL else WARM_UP), told
    assert more["objects"] < OBJECTS, told
    assert (more["descriptors"], more["tasks"]) == (0, 0)
    assert all((one["tasks"], one["children"]) == (1, 0) for one in told["seen"])
    assert max(one["threads"] for one in told["seen"]) <= 20  # a writer for each of 16 jobs at a time, and two
    assert told["after"]["threads"] == 1
    assert told["after"]["descriptors"] < told["seen"][0]["descriptors"]


@pytest.mark.skipif(not FULL, reason="the measure's own test: CRASH_TESTS=full")
def test_a_job_that_is_kept_is_seen() -> None:
    """A test that cannot fail is a defect."""
    patch = (
        "from supervisor import ending as m\nwas, kept = m.carry, []\nm.carry = lambda c: (kept.append(c), was(c))[1]"
    )
    assert grown(run("asyncio", 500, patch))["objects"] > 2 * OBJECTS
