"""The types of a receipt's fields: a fact that JSON cannot carry must not keep a receipt from being written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

LABEL_CHARACTERS: Final = 200
"""Contract A6."""


def _representable(value: object) -> object:
    """Escape lone surrogates, which argv and paths carry for bytes that are not UTF-8 (PEP 383) and JSON cannot."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _usable(value: object) -> object:
    """Turn a path that JSON cannot carry into None: an escaped one would name another file (contract E7)."""
    return value if _representable(value) == value else None


def _bounded(label: str) -> str:
    return label if len(label) <= LABEL_CHARACTERS else label[: LABEL_CHARACTERS - 1] + "…"


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, BeforeValidator(_representable)]
Path = Annotated[str | None, BeforeValidator(_usable)]
Label = Annotated[Text, AfterValidator(_bounded)]
"""Longer ones are cut, not refused: by the time that a receipt is built its command has run."""
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""Of any time zone on its way in, UTC from then on."""
