"""What a bench gives back, and its three forms: for a terminal, for `bench/README.md`, for a program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Report:
    """One bench's outcome. `columns` and `rows` are for people; `data` is everything, unrounded."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    facts: Mapping[str, str]
    """What was measured, beside what `machine.facts` says of where."""
    data: Mapping[str, object]


def as_text(machine: Mapping[str, str], reports: Sequence[Report]) -> str:
    """Return aligned columns, the first to the left, the others, which are figures, to the right."""
    parts = ["\n".join(f"{name}: {value}" for name, value in machine.items())]
    for report in reports:
        lines = [report.title, *(f"{name}: {value}" for name, value in report.facts.items()), ""]
        table = [report.columns, *report.rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(report.columns))]
        for first, *others in table:
            figures = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([f"{first:<{widths[0]}}", *figures]))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def as_markdown(machine: Mapping[str, str], reports: Sequence[Report]) -> str:
    """Return what is pasted into `bench/README.md`: per bench a heading, where and what in one paragraph, the table."""
    parts: list[str] = []
    for report in reports:
        where = "; ".join(f"{name} {value}" for name, value in {**machine, **report.facts}.items())
        lines = [f"### {report.title}", "", f"{where}.", "", _markdown_row(report.columns)]
        lines.append(_markdown_row(("---", *("---:" for _ in report.columns[1:]))))
        lines += map(_markdown_row, report.rows)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def as_json(machine: Mapping[str, str], reports: Sequence[Report]) -> str:
    """Return everything, unrounded."""
    benches = {report.name: {"facts": dict(report.facts), **report.data} for report in reports}
    return json.dumps({"machine": dict(machine), "benches": benches}, indent=2)


def _markdown_row(cells: tuple[str, ...]) -> str:
    # A bar ends a cell even inside a code span (GitHub Flavored Markdown 4.10).
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
