"""`recover`: what a killed supervisor left is finished, and nothing else is touched."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine


def test_what_a_killed_run_left_is_finished_once(spoolvisor: CommandLine) -> None:
    """Its text stays readable to the last committed byte; a live capture is left alone [D6]."""
    live = spoolvisor.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert live.stdout.readline() == b"ready\n"
    run = spoolvisor.start("run", "--label", "lost", "--", "sh", "-c", "echo $$; exec sleep 1000")
    pid = int(run.stdout.readline())
    left = spoolvisor.captures()[1]
    logs = spoolvisor.start("logs", "-f", "--stream", "stdout", left.name)
    assert int(logs.stdout.readline()) == pid  # it is committed
    run.kill()
    run.wait()
    assert spoolvisor.finish(logs).code == 0  # the death of its writer is a text's end
    os.kill(pid, signal.SIGKILL)
    done = spoolvisor("recover")
    assert (done.code, done.err) == (0, "")
    _, line = done.out.splitlines()
    assert line.split()[2:6] == ["unknown", "-", "partial", "(supervisor-lost)"]
    assert line.endswith("  lost")
    assert json.loads((left / "receipt.json").read_text())["capture"]["reason"] == "supervisor-lost"
    assert (left / "stdout.log").read_text() == f"{pid}\n"
    again = spoolvisor("recover", "--json")
    assert (again.code, again.out, again.err) == (0, "", "")
    live.send_signal(signal.SIGINT)
    assert spoolvisor.finish(live).code == 130
