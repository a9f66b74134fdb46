"""The check of tests/conftest.py fails for each kind of thing that a test can leave behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent

PLANTED: Final = '''
from __future__ import annotations
import asyncio, os, subprocess, sys, tempfile, threading
import pytest

KEPT = []
SLEEP = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]

def test_clean_leaves_nothing():
    with tempfile.TemporaryFile(), subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as child:
        child.kill()

@pytest.mark.asyncio
async def test_clean_awaits_its_task():
    await asyncio.create_task(asyncio.sleep(0))

def test_leaves_children():
    child = subprocess.Popen(SLEEP, stdout=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    KEPT.append(child)

def test_leaves_descendants():
    """A grandchild in a session of its own, whose parent is gone: in no list of children."""
    subprocess.run(["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 &"], check=True)

def test_leaves_descriptors():
    KEPT.append(open(os.devnull))

def test_leaves_threads():
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def test_leaves_temporary_files():
    os.close(tempfile.mkstemp()[0])

@pytest.mark.asyncio
async def test_leaves_tasks():
    KEPT.append(asyncio.create_task(asyncio.sleep(3600)))

def teardown_module():
    KEPT[0].kill()
    KEPT[0].wait()
'''


def planted_run(directory: Path) -> str:
    """Run the planted tests under a copy of our conftest, in a session of their own; return what pytest printed."""
    tests = directory / "planted"
    tests.mkdir()
    patient = (TESTS / "conftest.py").read_text()
    hasty = patient.replace("CLEARANCE: Final = 2.0", "CLEARANCE: Final = 0.2")
    assert hasty != patient
    (tests / "conftest.py").write_text(hasty)
    (tests / "test_planted.py").write_text(PLANTED)
    (tests / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--basetemp", directory / "base"]
    environment = os.environ | {"COLUMNS": "500"}  # pytest cuts its summary to the terminal's width
    done = subprocess.run(
        [*command, tests], cwd=tests, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    for pid in re.findall(r"left behind: .*'descendants': \{(\d+)\}", done.stdout):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    return done.stdout


def test_each_kind_of_leftover_fails_its_test_and_a_clean_test_passes(tmp_path: Path) -> None:
    """Child, orphaned grandchild, descriptor, thread, temporary file and task are each reported under their name."""
    printed = planted_run(tmp_path)
    errors = dict(re.findall(r"^ERROR \S*::test_leaves_(\w+)\S* - .*?left behind: (.*)$", printed, re.MULTILINE))
    assert set(errors) == {"children", "descendants", "descriptors", "threads", "temporary_files", "tasks"}, printed
    for kind in ("children", "descendants", "descriptors", "threads"):
        assert f"'{kind}'" in errors[kind]
    assert "'temporary files'" in errors["temporary_files"]
    assert "test_clean" not in "".join(line for line in printed.splitlines() if line.startswith("ERROR"))
