"""`export`: copies of what was named, all of it or nothing, with nothing of this machine in them [E9, E10]."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CommandLine


def test_what_was_exported_is_a_directory_of_captures(spoolvisor: CommandLine) -> None:
    """Named by the beginnings of their ids, twice or not; read back by the commands that read the others."""
    spoolvisor("run", "-q", "--", "seq", "3")
    spoolvisor("run", "-q", "--label", "marigold", "--", "sh", "-c", "echo oops >&2; exit 3")
    ids = [capture.name for capture in spoolvisor.captures()]
    done = spoolvisor("export", ids[0], ids[1][:-1], ids[0], "out/there")
    assert (done.code, done.out, done.errors) == (0, "", ["spoolvisor: copied 2 captures, 11B of text"])
    out = spoolvisor.place / "out" / "there"
    assert [capture.name for capture in spoolvisor.captures(out)] == ids
    assert "marigold" not in b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file()).decode()
    assert spoolvisor("logs", "--dir", str(out), ids[1]).err == "oops\n"
    shown = spoolvisor("show", "--json", "--dir", str(out), ids[1]).receipt
    assert (shown["command"], shown["label"], shown["process"]["code"]) == (None, None, 3)
    assert shown["streams"]["stderr"]["path"] == str(out / shown["streams"]["stderr"]["reference"])


def test_a_live_capture_keeps_the_others_named_with_it(spoolvisor: CommandLine) -> None:
    """Exit 2, one line and no directory; the same for an id that is unknown, and a destination inside."""
    spoolvisor("run", "-q", "--", "seq", "3")
    live = spoolvisor.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert live.stdout is not None
    assert live.stdout.readline() == b"ready\n"
    first, second = (capture.name for capture in spoolvisor.captures())
    for given in ((first, second, "out"), (first, "x", "out"), (first, str(spoolvisor.kept / "out"))):
        done = spoolvisor("export", *given)
        assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert not (spoolvisor.place / "out").exists()
    assert not (spoolvisor.kept / "out").exists()
    live.send_signal(signal.SIGINT)
    spoolvisor.finish(live)


def test_a_text_that_is_missing_is_told(spoolvisor: CommandLine) -> None:
    """The receipt of the copy says so, and the line; `-q` says nothing."""
    spoolvisor("run", "-q", "--", "seq", "3")
    (capture,) = spoolvisor.captures()
    (capture / "stdout.log").unlink()
    done = spoolvisor("export", capture.name, "out")
    assert (done.code, done.errors) == (0, ["spoolvisor: copied 1 capture, 0B of text; 1 text could not be had"])
    assert spoolvisor("export", "-q", capture.name, "other").err == ""
    done = spoolvisor("export", "--json", capture.name, "third")
    assert json.loads(done.out)["streams"]["stdout"]["access"] == "unavailable"
    assert done.err == ""
