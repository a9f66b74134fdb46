"""Durations and sizes as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

import click

DURATION_UNITS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""In seconds. Only in this case: `M` is no minute."""
SIZE_UNITS: Final = {
    "": 1,
    "b": 1,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "tib": 1024**4,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
}
"""In lower case; either case is read. `K`, `M` and `G` alone are refused: programs disagree on what they mean."""

Callback = Callable[[click.Context, click.Parameter, str | None], float | None]

_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([A-Za-z]*)")


def seconds(text: str) -> float:
    """Return a duration in seconds. Raises: ValueError, with a message that goes after the text."""
    value = _quantity(text, DURATION_UNITS.get)
    if value is None:
        raise ValueError("is not a duration like 90, 90s, 1.5s, 500ms, 10m, 1h or inf")
    return value


def byte_count(text: str) -> float:
    """Return a size in whole bytes, or inf. Raises: ValueError, with a message that goes after the text."""
    value = _quantity(text, lambda unit: SIZE_UNITS.get(unit.lower()))
    if value is None:
        raise ValueError("is not a size like 1000000, 512KiB, 32MiB, 1GiB, 32MB or inf")
    return value if math.isinf(value) else math.floor(value)


def size_text(count: float) -> str:
    """Return a number of bytes in the largest unit that says it exactly, as `byte_count` reads it."""
    if math.isinf(count):
        return "inf"
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count >= SIZE_UNITS[unit.lower()] and count % SIZE_UNITS[unit.lower()] == 0:
            return f"{count / SIZE_UNITS[unit.lower()]:.0f}{unit}"
    return f"{count:.0f} bytes"


def short_size(count: int) -> str:
    """Return about how many bytes that is, in at most seven characters; `--json` has the exact figure."""
    if count < SIZE_UNITS["kib"]:
        return f"{count}B"
    unit = next(unit for unit in ("TiB", "GiB", "MiB", "KiB") if count >= SIZE_UNITS[unit.lower()])
    amount = count / SIZE_UNITS[unit.lower()]
    return f"{amount:.0f}{unit}" if amount >= 9.95 else f"{amount:.1f}{unit}"  # noqa: PLR2004 -- two digits say enough


def quantity(parse: Callable[[str], float], *, zero: bool = False) -> Callback:
    """Return the callback of an option whose text `parse` reads; `zero` says whether zero is allowed."""

    def read(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
        if text is None:
            return None
        try:
            value = parse(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r} {error}") from None
        if value == 0 and not zero:
            raise click.BadParameter(f"{text!r} is not above zero (inf for no limit)")
        return value

    return read


def _quantity(text: str, factor_of: Callable[[str], float | None]) -> float | None:
    text = text.strip()
    if text.lower() in {"inf", "infinity"}:
        return math.inf
    found = _QUANTITY.fullmatch(text)
    factor = None if found is None else factor_of(found[2])
    return None if found is None or factor is None else float(found[1]) * factor
