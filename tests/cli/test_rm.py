"""`rm`: what was named, all of it or nothing, and never what lives [D1]."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine


def test_a_live_capture_keeps_the_others_named_with_it(spoolvisor: CommandLine) -> None:
    """Exit 2 and one line; once it has ended, both are removed, named twice or not."""
    spoolvisor("run", "-q", "--", "seq", "3")
    live = spoolvisor.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert live.stdout.readline() == b"ready\n"
    captures = spoolvisor.captures()
    ids = [capture.name for capture in captures]
    done = spoolvisor("rm", *ids)
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert ids[1] in done.err
    done = spoolvisor("rm", ids[0], "x")
    assert (done.code, len(done.errors)) == (2, 1)
    assert spoolvisor.captures() == captures
    live.send_signal(signal.SIGINT)
    assert spoolvisor.finish(live).code == 130
    done = spoolvisor("rm", *ids, ids[0])
    assert (done.code, done.out, done.errors) == (0, "", ["spoolvisor: removed 2 captures, 12B of text"])
    assert spoolvisor.captures() == []


def test_quiet_says_nothing(spoolvisor: CommandLine) -> None:
    """The beginning of an id is enough."""
    spoolvisor("run", "-q", "--", "true")
    done = spoolvisor("rm", "-q", spoolvisor.captures()[0].name[:-1])
    assert (done.code, done.out, done.err) == (0, "", "")
    assert spoolvisor.captures() == []
