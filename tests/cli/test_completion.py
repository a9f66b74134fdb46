"""Shells complete commands and ids, and never get an error instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine


def completed(spoolvisor: CommandLine, *words: str, shell: str = "bash") -> str:
    """Return what a shell is told for the last word, as click's own scripts ask for it."""
    variables = {
        "_SPOOLVISOR_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(("spoolvisor", *words)),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    done = spoolvisor(variables=variables)
    assert (done.code, done.err) == (0, "")
    return done.out.strip()


def test_ids_are_completed_with_what_they_were(spoolvisor: CommandLine) -> None:
    """Those of the given directory that begin so; shells that show more are told the command too."""
    other = spoolvisor.place / "other"
    spoolvisor("run", "-q", "--dir", str(other), "--label", "a label", "--", "sh", "-c", "exit 3")
    (capture,) = spoolvisor.captures(other)
    assert completed(spoolvisor, "logs", "-f", "--dir", str(other), capture.name[:9]) == f"plain,{capture.name}"
    assert "a label: exited 3" in completed(spoolvisor, "rm", "--dir", str(other), "20", shell="fish")
    assert completed(spoolvisor, "show", "--dir", str(other), "x") == ""


@pytest.mark.parametrize("directory", ["missing", "file"])
def test_a_directory_that_cannot_be_read_completes_nothing(spoolvisor: CommandLine, directory: str) -> None:
    """A person in the middle of a line needs no message."""
    (spoolvisor.place / "file").write_text("")
    assert completed(spoolvisor, "wait", "--dir", directory, "2") == ""


def test_commands_are_completed_and_help_says_how(spoolvisor: CommandLine) -> None:
    """What help shows is what a shell evaluates."""
    assert completed(spoolvisor, "re") == "plain,recover"
    assert 'eval "$(_SPOOLVISOR_COMPLETE=bash_source spoolvisor)"' in spoolvisor("--help").out
    script = spoolvisor(variables={"_SPOOLVISOR_COMPLETE": "zsh_source"})
    assert (script.code, script.err) == (0, "")
    assert "_SPOOLVISOR_COMPLETE=zsh_complete spoolvisor" in script.out
