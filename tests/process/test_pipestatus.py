"""The file that a shell reports through: its way, its size, and where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor.process import PipeReport
from supervisor.process.pipestatus import VARIABLE
from supervisor.sansio.pipestatus import REPORT_BYTES, codes

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def report() -> Iterator[PipeReport]:
    """A report of a shell with two variables."""
    made = PipeReport({"PATH": os.environ["PATH"], "GIVEN": "1"})
    yield made
    made.close()
    made.close()


def test_a_shell_reports_through_it(report: PipeReport) -> None:
    """Once; a shell that it starts has neither the variable nor a descriptor."""
    inner = 'for fd in /proc/$$/fd/*; do readlink "$fd"; done; env; false | true'
    done = subprocess.run(
        ["bash", "-c", f"bash -c '{inner}'; true | (exit 7)"],
        env=report.environment,
        check=False,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 7
    assert codes(report.read(), 7) == (0, 7)
    assert b"memfd" not in done.stdout
    assert VARIABLE.encode() not in done.stdout
    assert b"GIVEN=1" in done.stdout


def test_only_the_shell_that_was_started_reports(report: PipeReport) -> None:
    """A shell that got the variable in another way, here as a grandchild, forgets it and no more."""
    script = "import os, subprocess; subprocess.run(['bash', '-c', 'env; false'])"
    done = subprocess.run([sys.executable, "-c", script], env=report.environment, check=True, stdout=subprocess.PIPE)
    assert VARIABLE.encode() not in done.stdout
    assert codes(report.read(), 1) is None


def test_nobody_can_make_it_longer_or_shorter(report: PipeReport) -> None:
    """Whoever opens it writes over what is there, and no further."""
    path = report.environment[VARIABLE]
    with Path(path).open("r+b", buffering=0) as file:
        file.seek(REPORT_BYTES - 1)
        with pytest.raises(PermissionError):
            file.write(b"xx")
        with pytest.raises(PermissionError):
            file.truncate(0)


def test_where_there_is_no_way_nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of another process's; the entries of a process that changed its user; a system without memfds."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", os.getppid)
        with pytest.raises(OSError, match=r".+"):
            PipeReport({})
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(OSError, match="closed"):
            PipeReport({})
    with monkeypatch.context() as patch:
        patch.delattr(os, "memfd_create")
        with pytest.raises(OSError, match="memfd"):
            PipeReport({})
