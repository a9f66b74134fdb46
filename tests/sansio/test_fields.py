"""The types of a receipt's fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import BaseModel, ValidationError

from supervisor.sansio.fields import Count, Label, Moment, Path, Text


class Sample(BaseModel):
    """One field of each type."""

    count: Count = 0
    text: Text = ""
    path: Path = None
    label: Label = ""
    moment: Moment = datetime(2026, 1, 1, tzinfo=UTC)


def test_text_that_is_not_utf_8_is_escaped() -> None:
    """An argument of other bytes must not keep the receipt from being written."""
    sample = Sample(text="caf\udce9 ü", label="\ud800")
    assert sample.text == "caf\\udce9 ü"
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


def test_a_path_that_is_not_utf_8_is_left_out() -> None:
    """An escaped path would be the path of another file (E7)."""
    assert Sample(path="/caf\udce9").path is None
    assert Sample(path="/café").path == "/café"
    assert Sample(path=None).path is None


def test_a_label_is_cut_to_its_bound_visibly() -> None:
    """200 characters stay; of more, 199 and an ellipsis (A6)."""
    assert Sample(label="x" * 200).label == "x" * 200
    assert Sample(label="x" * 201).label == "x" * 199 + "…"


def test_moments_become_utc_and_end_in_z() -> None:
    """RFC 3339, whatever zone they came in."""
    east = datetime(2026, 1, 2, 5, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))
    assert '"moment":"2026-01-02T03:04:05.000006Z"' in Sample(moment=east).model_dump_json()


@pytest.mark.parametrize(
    "fields",
    [{"count": -1}, {"text": 3}, {"path": 3}, {"label": None}, {"moment": datetime(2026, 1, 1)}],  # noqa: DTZ001
)
def test_wrong_values_are_refused(fields: dict[str, object]) -> None:
    """A negative count, another type, and a time without a zone are no facts."""
    with pytest.raises(ValidationError):
        Sample.model_validate(fields)
