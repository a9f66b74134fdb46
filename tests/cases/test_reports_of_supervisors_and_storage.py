"""Each report of these two areas is tested under its id or answered in the docs, and no test is of an unknown one."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
COUNTS: Final = {"supervisors": 45, "storage": 54}
"""How many reports were collected; all of them are listed."""
ANSWERS: Final = HERE.parents[1] / "docs" / "field-reports.md"
FIELDS: Final = {"id", "area", "source", "symptom", "input", "expected"}


def docstrings_of(area: str) -> dict[str, str]:
    """Return the docstrings of an area's tests by the id in their names: `test_h5_001_...` is of H5-001."""
    found: dict[str, str] = {}
    for path in sorted((HERE / area).glob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                _, series, number, *_ = node.name.split("_")
                identity = f"{series}-{number}".upper()
                assert identity not in found, f"{identity} has two tests"
                found[identity] = ast.get_docstring(node) or ""
    return found


@pytest.mark.parametrize("area", COUNTS)
def test_each_report_is_tested_or_answered(area: str) -> None:
    """The list says what was reported and what is expected; test and answer say the same id and source."""
    lines = (HERE / f"reports-{area}.jsonl").read_text("utf-8").splitlines()
    reports = {report["id"].upper(): report for report in map(json.loads, lines)}
    tests = docstrings_of(area)
    answers = ANSWERS.read_text("utf-8")
    assert len(reports) == len(lines) == COUNTS[area]
    assert tests.keys() <= reports.keys()
    for identity, report in reports.items():
        assert report.keys() == FIELDS
        assert report["area"] == area
        source = report["source"].split()[0]
        assert identity in tests or f"\n| {identity} ({source}" in answers, identity
        if identity not in tests:
            continue
        assert tests[identity].startswith(f"{identity} ("), identity
        # The first of several sources, without what it says beside the address.
        assert source in tests[identity], identity
