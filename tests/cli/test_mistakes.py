"""A user's mistake: one line on stderr, exit 2, and nothing was started or made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

MISTAKES = {
    "no command of ours": ((), "missing command"),
    "an unknown command of ours": (("rum", "--", "true"), "'rum'"),
    "an unknown option": (("run", "--jsno", "--", "true"), "--jsno"),
    "no command": (("run",), "missing argument"),
    "no command after options": (("run", "--quiet", "--"), "missing argument"),
    "a limit of zero": (("run", "--time-limit", "0", "--", "true"), "--time-limit"),
    "a limit of zero with a unit": (("run", "--idle-limit", "0ms", "--", "true"), "--idle-limit"),
    "a negative limit": (("run", "--time-limit=-1", "--", "true"), "is not a duration"),
    "a limit that is no number": (("run", "--time-limit", "nan", "--", "true"), "is not a duration"),
    "an unknown unit of time": (("run", "--time-limit", "10x", "--", "true"), "is not a duration"),
    "a negative kill-after": (("run", "--kill-after=-1s", "--", "true"), "--kill-after"),
    "a drain-timeout that is no number": (("run", "--drain-timeout", "NaN", "--", "true"), "--drain-timeout"),
    "a size of zero": (("run", "--job-bytes", "0", "--", "true"), "--job-bytes"),
    "a size of less than a byte": (("run", "--job-bytes", "0.5", "--", "true"), "is not above zero"),
    "a negative size": (("run", "--conversation-bytes=-1", "--", "true"), "is not a size"),
    "a size that is no number": (("run", "--conversation-bytes", "nan", "--", "true"), "is not a size"),
    "an ambiguous unit of size": (("run", "--job-bytes", "32M", "--", "true"), "is not a size"),
    "a durability that does not exist": (("run", "--durability", "fsync", "--", "true"), "--durability"),
    "a shell without a script": (("run", "--shell", ""), "the shell command is empty"),
    "a shell with two arguments": (("run", "--shell", "--", "echo", "hi"), "exactly one argument"),
    "an empty directory": (("run", "--dir", "", "--", "true"), "--dir"),
    "a value with a line feed": (("run", "--time-limit", "1\nforged: line", "--", "true"), "is not a duration"),
}


@pytest.mark.parametrize(("arguments", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_line(spoolvisor: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    """Exit 2, the line names what was wrong, and not even the directory was made."""
    done = spoolvisor(*arguments)
    assert (done.code, done.out) == (2, "")
    (line,) = done.errors
    assert line.startswith("spoolvisor: ")
    assert said in line
    assert list(spoolvisor.place.iterdir()) == []


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("run", "--help")], ids=" ".join)
def test_help_that_cannot_be_written_is_told_in_one_line(spoolvisor: CommandLine, arguments: tuple[str, ...]) -> None:
    """A full disk under `--help > file` is no defect of ours to be traced, and no success."""
    with Path("/dev/full").open("wb") as full:
        done = spoolvisor(*arguments, stdout=full)
    assert done.code == 125
    assert done.errors == ["spoolvisor: stdout takes no more: No space left on device"]


def test_a_secret_that_is_not_set_is_a_mistake(spoolvisor: CommandLine) -> None:
    """What was given is not repeated: people mix up a variable and its value, and logs are read by others."""
    for given in ("hunter2hunter2", "NAME=hunter2hunter2"):
        done = spoolvisor("run", "--secret", given, "--", "true")
        assert (done.code, len(done.errors)) == (2, 1)
        assert "--secret names no environment variable that is set" in done.err
        assert "hunter2" not in done.err


def test_the_secret_that_is_not_set_is_told_by_its_place(spoolvisor: CommandLine) -> None:
    """Of several, the wrong one can be found."""
    done = spoolvisor("run", "--secret", "HOME", "--secret", "NOT_THERE", "--", "true")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "--secret number 2" in done.err


def test_a_mistake_does_not_show_a_known_secret(spoolvisor: CommandLine) -> None:
    """Error texts pass the same redactor as output [C8]."""
    done = spoolvisor("run", "--time-limit", "tok-3141592653", "true", variables={"API_TOKEN": "tok-3141592653"})
    assert done.code == 2
    assert "[REDACTED:API_TOKEN]" in done.err
    assert "3141592653" not in done.err


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("run", "--help"), ("run", "-h")])
def test_help_goes_to_stdout(spoolvisor: CommandLine, arguments: tuple[str, ...]) -> None:
    """It shows examples, and nothing is made."""
    done = spoolvisor(*arguments)
    assert (done.code, done.err) == (0, "")
    assert "Examples:" in done.out
    assert "\n    spoolvisor run -- make test\n" in done.out, "an example is a line of its own"
    assert list(spoolvisor.place.iterdir()) == []


def test_help_names_every_option_and_the_true_defaults(spoolvisor: CommandLine) -> None:
    """The defaults of sizes are those of the library's limits."""
    out = spoolvisor("run", "--help").out
    first = ("--dir", "--json", "--quiet", "--time-limit", "--idle-limit", "--kill-after", "--drain-timeout")
    second = ("--label", "--shell", "--secret", "--job-bytes", "--conversation-bytes", "--durability")
    assert [name for name in (*first, *second) if f"{name} " not in out] == []
    assert "[32MiB]" in out
    assert "[128MiB]" in out


def test_version(spoolvisor: CommandLine) -> None:
    """One line: the program and its version."""
    done = spoolvisor("--version")
    assert (done.code, done.err) == (0, "")
    assert done.out.split()[0] == "spoolvisor"
    assert len(done.out.split()) > 1


def test_help_imports_no_loop_that_only_a_job_needs() -> None:
    """The entry and the list of commands stay cheap."""
    import subprocess  # noqa: PLC0415 - the one test that looks inside
    import sys  # noqa: PLC0415 - as above

    program = (
        "import sys\nfrom supervisor.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print('uvloop' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "False"
