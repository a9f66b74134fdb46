"""Files and functions stay as small as the house style wants them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FOLDERS: Final = ("supervisor", "adapters", "tests", "bench")

LINES_PER_FILE: Final = 350
LINES_PER_FUNCTION: Final = 40
SHORT_FUNCTIONS: Final = 0.95
"""The share of functions that must keep to `LINES_PER_FUNCTION`: trio's 95 % is the house style's mark."""


def sources(*folders: str) -> dict[str, str]:
    """Return the text of each Python file under the folders, by its path from the root."""
    return {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def long_files(texts: dict[str, str]) -> dict[str, int]:
    """Return the lines of each file that has too many."""
    return {path: lines for path, text in texts.items() if (lines := len(text.splitlines())) > LINES_PER_FILE}


def function_lengths(texts: dict[str, str]) -> dict[str, int]:
    """Return the lines of each function from its `def` to its last, decorators aside, by `path:line name`."""
    return {
        f"{path}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_no_file_is_over_350_lines() -> None:
    """A longer file is split where a banner would stand."""
    texts = sources(*FOLDERS)
    assert texts
    assert long_files(texts) == {}


def test_95_of_100_functions_have_at_most_40_lines() -> None:
    """The few that are longer are named, longest first."""
    lengths = function_lengths(sources("supervisor"))
    long = {name: lines for name, lines in lengths.items() if lines > LINES_PER_FUNCTION}
    share = 1 - len(long) / len(lengths)
    assert share >= SHORT_FUNCTIONS, dict(sorted(long.items(), key=lambda item: -item[1]))


def test_the_measures_count_what_they_say() -> None:
    """A file of 351 lines is long and one of 350 is not; a nested function counts in both."""
    assert long_files({"a.py": "x\n" * 350, "b.py": "x\n" * 351}) == {"b.py": 351}
    source = "@decorator\ndef outer():\n    async def inner():\n        pass\n    return inner\n"
    assert function_lengths({"a.py": source}) == {"a.py:2 outer": 4, "a.py:3 inner": 2}
