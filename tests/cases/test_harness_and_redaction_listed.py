"""Each listed report of these two areas has a test of its id, and each such test has a listed report."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
AREAS: Final = {"agent-harness": "harness", "redaction": "redaction"}
"""The area of the reports, and the folder of their tests."""
FIELDS: Final = {"id", "area", "source", "symptom", "input", "expected"}
_NAME: Final = re.compile(r"test_(bug|red)_(\d+)_\w+")
_NEXT_SOURCE: Final = re.compile(r";|,| \(")


def listed(area: str) -> list[dict[str, str]]:
    """Return the reports of an area that were chosen."""
    return [json.loads(line) for line in (HERE / f"reports-{area}.jsonl").read_text("utf-8").splitlines()]


def docstrings(folder: str) -> list[tuple[str, str]]:
    """Return (report's id, docstring in one line) of each test in a folder; the id is "" for a name without one."""
    found: list[tuple[str, str]] = []
    for path in sorted((HERE / folder).glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                name = _NAME.fullmatch(node.name)
                number = f"{name[1].upper()}-{name[2]}" if name else ""
                found.append((number, " ".join((ast.get_docstring(node) or "").split())))
    return found


@pytest.mark.parametrize("area", AREAS)
def test_reports_and_tests_are_the_same_set(area: str) -> None:
    """None is listed twice or untested, and no test is of a report that a reader could not look up."""
    reports = listed(area)
    ids = [report["id"] for report in reports]
    assert all(set(report) == FIELDS and report["area"] == area for report in reports)
    assert len(ids) == len(set(ids))
    assert set(ids) == {number for number, _ in docstrings(AREAS[area])}


@pytest.mark.parametrize("area", AREAS)
def test_each_test_names_its_report_and_its_source(area: str) -> None:
    """By id and at least the first of the sources; the list has all of them."""
    sources = {report["id"]: _NEXT_SOURCE.split(report["source"])[0] for report in listed(area)}
    tests = docstrings(AREAS[area])
    assert tests
    assert [number for number, text in tests if not text.startswith(f"{number} ({sources[number]}")] == []
