"""Each report that is listed has a test of its id, and each such test a report that is listed."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
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


@pytest.mark.parametrize("area", ["supervisors", "storage"])
def test_each_listed_report_has_its_test_and_the_other_way_round(area: str) -> None:
    """The list says what was reported and what is expected; the test says the same id and source."""
    lines = (HERE / f"reports-{area}.jsonl").read_text("utf-8").splitlines()
    reports = {report["id"].upper(): report for report in map(json.loads, lines)}
    tests = docstrings_of(area)
    assert len(reports) == len(lines) >= 16
    assert reports.keys() == tests.keys()
    for identity, report in reports.items():
        assert report.keys() == FIELDS
        assert report["area"] == area
        assert tests[identity].startswith(f"{identity} ("), identity
        # The first of several sources, without what it says beside the address.
        assert report["source"].split()[0] in tests[identity], identity
