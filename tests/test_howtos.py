"""Every example under docs/ runs as it stands, and prints what the document says.

On both loops with `CRASH_TESTS=full`, as CI runs them, and else on one of the two in turn.

A fenced block is one of four kinds. `python NAME.py` is a file of that name. `python` alone is a whole test file if it
has tests, else a program that must end without an error. `console` is what a person sees: lines that begin with `$ `
are commands (`> ` continues one), all others are their output, in which `…` stands for anything, and a line of `…`
alone for any lines. The files of a document are in one directory, and its commands run there in one bash, in their
order. Other blocks are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

import supervisor

ROOT: Final = Path(__file__).parent.parent
GUIDES: Final = sorted(path for path in ROOT.glob("docs/**/*.md") if "```python" in path.read_text("utf-8"))
BLOCK: Final = re.compile(r"^```(python|console)(?:[ ]+(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK: Final = "\x1e"
"""What separates the commands' outputs: RS, which no example prints."""
BETWEEN: Final = f"{{ code=$?; printf '{MARK}\\n'; (exit $code); }}\n"
"""The separator as a command that keeps `$?` for the next one."""
SECONDS: Final = 100.0
"""For all commands of a document: below the limit of the test around them, so that what they printed is shown."""
TEST: Final = re.compile(r"^(?:async )?def test_", re.MULTILINE)
LOOPS: Final = ("asyncio", "uvloop")
FULL: Final = os.environ.get("CRASH_TESTS") == "full"
USE_UVLOOP: Final = "import asyncio, uvloop\nasyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n"
"""A sitecustomize: `asyncio.run` then makes that loop, in a program that does not know of it."""
PYTEST: Final = (
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-c",
    str(ROOT / "pyproject.toml"),
    "--numprocesses=0",
    "--basetemp=temporary",
)


@dataclass
class Guide:
    """What a document wants to be run."""

    files: dict[str, str] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)
    """Each with the output that is shown."""


def parsed(text: str) -> Guide:
    """Return the examples of a document. Raises: ValueError for a name that is used twice, or output of no command."""
    guide = Guide()
    for language, name, body in BLOCK.findall(text):
        if language == "console":
            guide.commands += session(body)
        elif not name:
            (guide.tests if TEST.search(body) else guide.programs).append(body)
        elif name in guide.files:
            raise ValueError(f"{name} is shown twice")
        else:
            guide.files[name] = body
    return guide


def session(body: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with its output."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif not found:
            raise ValueError("output before the first command")
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + line[2:], "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def matches(shown: str, printed: str) -> bool:
    """Return whether a command printed what is shown."""
    lines = (
        r"(?:.*\n)*" if line == "…\n" else re.escape(line).replace("…", ".*")
        for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch("".join(lines), printed) is not None


def environment(home: Path, loop: str) -> dict[str, str]:
    """Return one in which `python` and `spoolvisor` are the ones under test, on that loop."""
    programs = home / "bin"
    programs.mkdir()
    for name, arguments in (("python", "-W error"), ("spoolvisor", "-m supervisor")):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(0o755)
    if loop == "uvloop":
        (home / "sitecustomize.py").write_text(USE_UVLOOP)
    if not entry_points(group="pytest11", name="spoolvisor"):  # the checkout, where no wheel was installed
        metadata = home / "spoolvisor_checkout-0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: spoolvisor-checkout\nVersion: 0\n")
        (metadata / "entry_points.txt").write_text("[pytest11]\nspoolvisor = supervisor.testing.plugin\n")
    inherited = {name: value for name, value in os.environ.items() if name not in {"SPOOLVISOR_DIR", "XDG_STATE_HOME"}}
    return inherited | {
        "HOME": str(home),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": f"{home}:{Path(supervisor.__file__).parent.parent}",
        "PYTHONUNBUFFERED": "1",
        "TZ": "UTC",
    }


def play(guide: Guide, home: Path, loop: str) -> list[str]:
    """Run a document's examples in a fresh `home`; return what went otherwise than shown."""
    variables = environment(home, loop)
    work = home / "work"
    work.mkdir()
    for name, body in guide.files.items():
        (work / name).write_text(body, "utf-8")
    wrong = []
    for program in guide.programs:
        printed, code = run([sys.executable, "-W", "error", "-c", program], work, variables)
        if code:
            wrong.append(f"ended with {code}:\n{program}\n{printed}")
    for number, tests in enumerate(guide.tests):
        (work / f"test_{number}.py").write_text(tests, "utf-8")
    if guide.tests:
        printed, code = run([sys.executable, *PYTEST, "."], work, variables)
        if code:
            wrong.append(f"tests ended with {code}:\n{printed}")
    script = "".join(f"{BETWEEN}{command}" for command, _ in guide.commands)
    printed, _ = run(["bash", "-c", script], work, variables)
    outputs = printed.split(f"{MARK}\n")[1:]
    for (command, shown), output in zip(guide.commands, outputs, strict=True):
        if not matches(shown, output):
            wrong.append(f"$ {command}shown:\n{shown}printed:\n{output}")
    return wrong


def run(command: list[str], work: Path, variables: dict[str, str]) -> tuple[str, int]:
    """Return what a command printed on both descriptors, and its code."""
    done = subprocess.run(
        command,
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return done.stdout, done.returncode


@pytest.mark.parametrize(
    ("document", "loop"),
    [
        pytest.param(path, loop, id=f"{path.relative_to(ROOT)}-{loop}")
        for number, path in enumerate(GUIDES)
        for loop in (LOOPS if FULL else LOOPS[number % 2 :][:1])
    ],
)
def test_a_guide_shows_what_happens(document: Path, loop: str, tmp_path: Path) -> None:
    """All files and commands of the document, in a directory of their own."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    guide = parsed(document.read_text("utf-8"))
    assert guide.programs or guide.tests or guide.commands
    assert play(guide, tmp_path, loop) == []


@pytest.mark.parametrize("document", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_shown_file_is_used(document: Path) -> None:
    """A file that no command and no other file names would be an example that nothing runs."""
    guide = parsed(document.read_text("utf-8"))
    commands = "".join(command for command, _ in guide.commands)
    imports = "".join(guide.files.values())
    for name in guide.files:
        assert name in commands or f"import {Path(name).stem}" in imports or f"from {Path(name).stem} " in imports, name


def test_an_example_that_is_not_true_is_found(tmp_path: Path) -> None:
    """One wrong line of output, a program and a test that fail, and nothing else."""
    text = (
        "```python hello.py\nprint('hello')\n```\n```python\nraise SystemExit(3)\n```\n"
        "```python\ndef test_good():\n    pass\n```\n```python\ndef test_bad():\n    assert False\n```\n"
        "```console\n$ python hello.py\nhello\n$ python hello.py; false\nbye\n$ echo $?\n1\n```\n"
    )
    wrong = play(parsed(text), tmp_path, "asyncio")
    assert len(wrong) == 3
    assert wrong[0].startswith("ended with 3:")
    assert "1 failed, 1 passed" in wrong[1]
    assert wrong[2] == "$ python hello.py; false\nshown:\nbye\nprinted:\nhello\n"


@pytest.mark.parametrize("loop", LOOPS)
def test_examples_run_on_the_loop_that_is_meant(loop: str, tmp_path: Path) -> None:
    """A program that does not name one, and a test file."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    ask = "import asyncio\nasync def main():\n    return type(asyncio.get_running_loop()).__module__\n"
    text = (
        f"```python which.py\n{ask}print(asyncio.run(main()))\n```\n"
        f"```python\nimport pytest\n{ask}"
        f"@pytest.mark.asyncio\nasync def test_loop():\n    assert (await main()).startswith('{loop}')\n```\n"
        f"```console\n$ python which.py\n{loop}…\n```\n"
    )
    assert play(parsed(text), tmp_path, loop) == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a…c\n", "a b c\n", True),
        ("a…c\n", "a b\nc\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("", "a\n", False),
    ],
)
def test_only_an_ellipsis_stands_for_more(shown: str, printed: str, *, same: bool) -> None:
    """In a line it stays in that line."""
    assert matches(shown, printed) is same


def test_a_name_shown_twice_is_refused() -> None:
    """Else the first of them would not be the one that is run."""
    with pytest.raises(ValueError, match=r"a\.py is shown twice"):
        parsed("```python a.py\n```\n```python a.py\n```\n")
