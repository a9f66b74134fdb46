"""Receipts as lines of a table, for people; a program reads the receipts themselves."""

from __future__ import annotations

import shlex
import signal
from datetime import datetime
from typing import TYPE_CHECKING, Final

from .messages import escaped
from .quantities import short_size

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from ..sansio.receipt import Receipt
    from ..sansio.words import StreamName

HEAD: Final = ("ID", "STARTED", "PROCESS", "CODE", "CAPTURE", "STDOUT", "STDERR", "LABEL")
RIGHT: Final = frozenset({"CODE", "STDOUT", "STDERR"})
SHORTEST_ID: Final = len("20260131T235959")
"""An id begins with its time: to the second, it is short and tells something."""
LEAST_LABEL: Final = 16
"""Characters that a label keeps in a terminal too narrow for the rest."""
UNKNOWN: Final = "?"
NONE: Final = "-"


def table(receipts: Sequence[Receipt], *, width: int | None = None, now: datetime | None = None) -> list[str]:
    """Return the lines, a head first, in the order given; none for no receipts. Labels are cut to fit `width`."""
    if not receipts:
        return []
    length = prefix_length([receipt.capture_id for receipt in receipts])
    today = (now or datetime.now().astimezone()).date()
    rows = [HEAD, *(_row(receipt, length, today) for receipt in receipts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = None if width is None else max(LEAST_LABEL, width - sum(widths[:-1]) - 2 * (len(HEAD) - 1))
    return [_line(row, widths, room) for row in rows]


def prefix_length(ids: Sequence[str]) -> int:
    """Return how many characters tell all these ids apart, `SHORTEST_ID` at least."""
    longest = max(map(len, ids), default=SHORTEST_ID)
    told_apart = (length for length in range(SHORTEST_ID, longest) if len({each[:length] for each in ids}) == len(ids))
    return next(told_apart, longest)


def _row(receipt: Receipt, length: int, today: date) -> tuple[str, ...]:
    process, capture = receipt.process, receipt.capture
    return (
        receipt.capture_id[:length],
        _moment(receipt.started_at, today),
        NONE if process is None else process.state,
        _code(receipt),
        capture.state if capture.reason is None else f"{capture.state} ({capture.reason})",
        _size(receipt, "stdout"),
        _size(receipt, "stderr"),
        escaped(receipt.label or shlex.join(receipt.command or ())),
    )


def _line(row: tuple[str, ...], widths: list[int], room: int | None) -> str:
    *cells, label = row
    aligned = [
        cell.rjust(width) if name in RIGHT else cell.ljust(width)
        for name, cell, width in zip(HEAD, cells, widths, strict=False)
    ]
    short = label if room is None or len(label) <= room else label[: room - 1] + "…"
    return "  ".join([*aligned, short]).rstrip()


def _moment(moment: datetime | None, today: date) -> str:
    if moment is None:
        return UNKNOWN
    local = moment.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def _code(receipt: Receipt) -> str:
    process = receipt.process
    if process is not None and process.signal is not None:
        try:
            return signal.Signals(process.signal).name
        except ValueError:  # a real-time signal, or one of another platform
            return f"SIG{process.signal}"
    return NONE if process is None or process.code is None else str(process.code)


def _size(receipt: Receipt, stream: StreamName) -> str:
    facts = receipt.streams.get(stream)
    if facts is None:
        return NONE
    return UNKNOWN if facts.retained.end is None else short_size(facts.retained.end)
