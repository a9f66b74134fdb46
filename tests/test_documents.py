"""What the documents show works, and what they point to is there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, get_args

import pytest
from pydantic import BaseModel

import supervisor
from supervisor.cli.entry import COMMANDS
from supervisor.request import Options, OptionsDict
from supervisor.sansio import receipt, words
from supervisor.sansio.lifecycle import EndReason

ROOT: Final = Path(__file__).parent.parent
README: Final = (ROOT / "README.md").read_text("utf-8")
REFERENCE: Final = (ROOT / "docs" / "reference.md").read_text("utf-8")
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
        env=environment() | {"SPOOLVISOR_DIR": str(tmp_path / "kept")},
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


def described(text: str) -> set[str]:
    """Return the words in code spans of table rows: `Job.wait()` is `Job` and `wait`."""
    rows = (line for line in text.splitlines() if line.startswith("| "))
    return {word for row in rows for span in re.findall(r"`([^`]+)`", row) for word in re.findall(r"[\w-]+", span)}


def section(heading: str) -> str:
    """Return the text of one section of the reference."""
    return REFERENCE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def defaults(text: str) -> dict[str, str]:
    """Return the second column of a table by the first."""
    return dict(re.findall(r"^\| `(\w+)` \| \"?([^|\"]+?)\"? \|", text, re.MULTILINE))


def number_or_word(text: str) -> float | str:
    """Return the number that a text is, else the text."""
    return float(text) if text[0].isdigit() else text


def test_the_reference_has_every_public_name() -> None:
    """Those that are exported, and what their objects offer to a caller."""
    held = (supervisor.Supervisor, supervisor.Job, supervisor.Receipt, supervisor.Cursor, supervisor.Page)
    offered = {name for cls in (*held, supervisor.Completion) for name in vars(cls) if not name.startswith("_")}
    internal = {"shut_down", *vars(BaseModel), *(name for name in offered if name.startswith("model_"))}
    assert offered - internal
    named = described(REFERENCE) | {"SupervisorError"}  # the root of the table's errors stands above it
    assert {*supervisor.__all__, *offered} - internal - named == set()
    assert "`SupervisorError`" in REFERENCE


def test_the_reference_has_every_field_and_word() -> None:
    """Of the receipt and its parts, of the closed vocabularies, and of the command line."""
    models = [value for value in vars(receipt).values() if isinstance(value, type) and issubclass(value, BaseModel)]
    fields = {field.alias or name for model in models for name, field in model.model_fields.items()}
    vocabularies = (words.ProcessState, words.ProcessReason, words.CaptureState, words.CaptureReason, words.Access)
    closed = {word for words_of in (*vocabularies, words.Representation, EndReason) for word in get_args(words_of)}
    assert {*fields, *closed, *COMMANDS} - described(REFERENCE) == set()


def test_the_reference_has_the_true_defaults() -> None:
    """Of each limit, and of each option of a command."""
    limits = {name: number_or_word(str(value)) for name, value in supervisor.Limits().model_dump().items()}
    assert {name: number_or_word(text) for name, text in defaults(section("Limits")).items()} == limits
    options = Options()
    named = OptionsDict.__annotations__
    assert defaults(section("Options of a command")) == {name: str(getattr(options, name)) for name in named}


def test_each_limitation_of_the_reference_exists() -> None:
    """The word is in the source, as it stands."""
    table = section("Words").rpartition("| limitation | |")[2]
    source = "".join(path.read_text("utf-8") for path in (ROOT / "supervisor").rglob("*.py"))
    named = re.findall(r"`([a-z-]+)`", "".join(line for line in table.splitlines() if line.startswith("| `")))
    assert named
    assert [word for word in named if f'"{word}"' not in source] == []
