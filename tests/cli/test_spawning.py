"""Commands that cannot start: 126 or 127, a receipt that says why, and nothing left behind [F6]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import CommandLine


def missing(place: Path) -> str:
    """Return a path at which there is nothing."""
    return str(place / "missing")


def not_executable(place: Path) -> str:
    """Return a file without the right to execute."""
    path = place / "plain"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o644)
    return str(path)


def bad_interpreter(place: Path) -> str:
    """Return a script whose interpreter is not there."""
    path = place / "script"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    return str(path)


def bad_format(place: Path) -> str:
    """Return an executable file that no kernel runs."""
    path = place / "noise"
    path.write_bytes(b"\x7fNOT-ELF")
    path.chmod(0o755)
    return str(path)


def a_directory(place: Path) -> str:
    """Return a directory."""
    path = place / "directory"
    path.mkdir()
    return str(path)


def below_a_file(place: Path) -> str:
    """Return a path that leads through a file."""
    return not_executable(place) + "/program"


def empty(_: Path) -> str:
    """Return the empty name."""
    return ""


CASES = [
    (missing, 127),
    (bad_interpreter, 127),
    (empty, 127),
    (not_executable, 126),
    (bad_format, 126),
    (a_directory, 126),
    (below_a_file, 127),
]


@pytest.mark.parametrize(("make", "code"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_the_code_and_receipt_say_why(spoolvisor: CommandLine, make: Callable[[Path], str], code: int) -> None:
    """The receipt is settled, `not-started`; no capture stays."""
    done = spoolvisor("run", "--json", "--quiet", "--", make(spoolvisor.place))
    assert done.code == code
    assert (done.receipt["process"]["state"], done.receipt["process"]["code"]) == ("not-started", None)
    assert done.receipt["process"]["error"]
    assert spoolvisor.captures() == []
    (line,) = done.errors
    assert line.startswith("spoolvisor: cannot run ")


def test_a_person_reads_it_in_the_rendered_receipt(spoolvisor: CommandLine) -> None:
    """Once, and not a second time as a message."""
    done = spoolvisor("run", "--", "no-such-program-at-all")
    assert (done.code, done.out) == (127, "")
    assert done.errors[0].endswith("no-such-program-at-all: not started")
    assert done.errors[1].startswith("error: the program was not found")
    assert not [line for line in done.errors if line.startswith("spoolvisor: ")]


def test_without_descriptors_nothing_starts_and_nothing_stays(spoolvisor: CommandLine) -> None:
    """EMFILE at the spawn: enough descriptors for a loop and a conversation, too few for a child's pipes."""
    script = 'ulimit -n 22; exec "$@"'
    done = spoolvisor.finish(spoolvisor.start_by(("sh", "-c", script, "sh"), "run", "--json", "--quiet", "--", "true"))
    assert done.code == 126
    assert done.receipt["process"]["state"] == "not-started"
    assert "Too many open files" in done.err
    assert spoolvisor.captures() == []


def test_a_missing_program_does_not_show_a_secret_in_its_name(spoolvisor: CommandLine) -> None:
    """The name of what could not be run is an error text, and passes the redactor [C8]."""
    done = spoolvisor(
        "run", "--quiet", "--secret", "PIN", "--", "/nowhere/correct-horse", variables={"PIN": "correct-horse"}
    )
    assert done.code == 127
    assert "[REDACTED:PIN]" in done.err
    assert "correct-horse" not in done.err
