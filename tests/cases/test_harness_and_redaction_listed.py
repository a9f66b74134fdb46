"""Each report of these two areas is tested under its id or answered in the docs, and no test is of an unknown one."""

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
COUNTS: Final = {"agent-harness": 87, "redaction": 33}
"""How many reports were collected; all of them are listed."""
ANSWERS: Final = HERE.parents[1] / "docs" / "field-reports.md"
FIELDS: Final = {"id", "area", "source", "symptom", "input", "expected"}
_ANSWER: Final = re.compile(r"^\| ([A-Z]+\d*-\d+) \((?P<source>[^)]+)\) \|", re.MULTILINE)
_NAME: Final = re.compile(r"test_(bug|red)_(\d+)_\w+")
_NEXT_SOURCE: Final = re.compile(r";|,| \(")


def listed(area: str) -> list[dict[str, str]]:
    """Return the reports of an area."""
    return lines(HERE / f"reports-{area}.jsonl")


def lines(path: Path) -> list[dict[str, str]]:
    """Return the reports in a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def answered() -> set[str]:
    """Return the ids that have a row in the docs."""
    return {found[1] for found in _ANSWER.finditer(ANSWERS.read_text("utf-8"))}


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
def test_each_report_is_tested_or_answered(area: str) -> None:
    """None is listed twice or left out, and no test is of a report that a reader could not look up."""
    reports = listed(area)
    ids = [report["id"] for report in reports]
    assert all(set(report) == FIELDS and report["area"] == area for report in reports)
    assert len(ids) == len(set(ids)) == COUNTS[area]
    tested = {number for number, _ in docstrings(AREAS[area])}
    assert tested <= set(ids)
    assert set(ids) - tested - answered() == set()


def test_the_answers_are_to_reports_of_their_sources() -> None:
    """An answer names a listed report, and the first of its sources."""
    sources = {
        report["id"].upper(): report["source"] for path in HERE.glob("reports-*.jsonl") for report in lines(path)
    }
    answers = {found[1]: found["source"] for found in _ANSWER.finditer(ANSWERS.read_text("utf-8"))}
    assert answers
    assert [number for number, source in answers.items() if source not in sources.get(number, "")] == []


@pytest.mark.parametrize("area", AREAS)
def test_each_test_names_its_report_and_its_source(area: str) -> None:
    """By id and at least the first of the sources; the list has all of them."""
    sources = {report["id"]: _NEXT_SOURCE.split(report["source"])[0] for report in listed(area)}
    tests = docstrings(AREAS[area])
    assert tests
    assert [number for number, text in tests if not text.startswith(f"{number} ({sources[number]}")] == []
