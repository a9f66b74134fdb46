"""What the documents show works, and what they point to is there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import supervisor

ROOT: Final = Path(__file__).parent.parent
README: Final = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def environment() -> dict[str, str]:
    """Return an environment in which the package under test is found, wherever it was imported from."""
    return os.environ | {"PYTHONPATH": str(Path(supervisor.__file__).parent.parent)}


def broken_links(document: Path) -> list[str]:
    """Return the relative targets of a document's links that do not exist beside it."""
    targets = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)[^)]*\)", document.read_text("utf-8"))
    return [target for target in targets if not (document.parent / target).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_resolve(document: Path) -> None:
    """A document points at no file that is not there."""
    assert broken_links(document) == []


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    """Only a missing relative target is one: not a heading, not another site."""
    document = tmp_path / "a.md"
    document.write_text("[a](a.md) [b](a.md#top) [c](#top) [d](https://example.org/) [e](missing.md#x)")
    assert broken_links(document) == ["missing.md"]


def test_the_library_example_prints_what_it_says(tmp_path: Path) -> None:
    """The README's example runs as it stands, and its comments are true."""
    (example,) = blocks(README, "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"print\(.*# prints (.*)$", example, re.MULTILINE)
    assert promised
    assert done.stdout.splitlines()[: len(promised)] == promised


def test_the_command_line_example_gives_the_childs_output_and_code(tmp_path: Path) -> None:
    """The README's first command, with the program in place of the one that it installs."""
    shown = next(block for block in blocks(README, "sh") if "spoolvisor run" in block)
    arguments = shlex.split(shown.rpartition("bin/spoolvisor")[2])
    done = subprocess.run(
        [sys.executable, "-m", "supervisor", *arguments],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (3, "hello\n"), done.stderr


def test_the_setup_commands_name_extras_and_programs_that_exist() -> None:
    """The extra and the script in the README's commands are those of the project file."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    shown = "".join(blocks(README, "sh"))
    assert re.findall(r"\.\[(\w+)\]", shown) == ["test"]
    assert re.search(r"^test = \[", project, re.MULTILINE)
    assert re.search(r'^spoolvisor = "supervisor\.cli:main"$', project, re.MULTILINE)
    assert shutil.which("sh")
