"""Where a reader is: a value, not a registration (contract E1), and the id of the capture that it is in.

A cursor counts bytes of the committed representation. Nobody keeps it but its reader, so parsing trusts nothing in it;
whether its range is still retained is for whoever reads the file to say (`CursorError`, E3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Final, Self, get_args

from .characters import cut, first_border
from .words import StreamName

if TYPE_CHECKING:
    from datetime import datetime

CAPTURE_ID: Final = re.compile(r"[0-9]{8}T[0-9]{12}Z-[0-9a-f]{32}", re.ASCII)
"""Match it in full. UTC to the microsecond, then 128 random bits: sorted as text it is sorted by time, and it is safe
as the name of a directory."""
_RANDOM_BYTES: Final = 16
_STREAMS: Final[tuple[StreamName, ...]] = get_args(StreamName)
_DIGITS: Final = 18
"""What fits a file offset, an off_t of 64 bits. Without a bound, a number could take minutes to parse."""
_CURSOR: Final = re.compile(
    rf"(?P<capture>{CAPTURE_ID.pattern}):(?P<stream>{'|'.join(_STREAMS)})"
    rf":(?P<generation>0|[1-9][0-9]{{0,{_DIGITS - 1}}}):(?P<offset>0|[1-9][0-9]{{0,{_DIGITS - 1}}})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """`<capture id>:<stream>:<generation>:<offset>` by `str()`.

    Raises:
        ValueError: a part is not what it must be; the message does not repeat it.
    """

    capture_id: str
    stream: StreamName
    generation: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        if _CURSOR.fullmatch(str(self)) is None:
            raise ValueError("not a cursor: <capture id>:stdout|stderr:<generation>:<offset>")

    def __str__(self) -> str:
        return f"{self.capture_id}:{self.stream}:{self.generation}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cursor that `str()` made this text of. Raises: ValueError for anything else."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise ValueError("not a cursor: <capture id>:stdout|stderr:<generation>:<offset>")
        stream: StreamName = "stdout" if match["stream"] == "stdout" else "stderr"
        return cls(match["capture"], stream, int(match["generation"]), int(match["offset"]))

    def at(self, offset: int) -> Self:
        """Return a cursor at another offset of the same stream. Raises: ValueError if it is negative or too large."""
        return replace(self, offset=offset)


def new_capture_id(now: datetime, random: bytes) -> str:
    """Return a capture id of this moment and these 16 random bytes.

    Raises:
        ValueError: `now` has no time zone, or there are more or fewer random bytes.
    """
    if now.tzinfo is None or len(random) != _RANDOM_BYTES:
        raise ValueError("a capture id is made of an aware time and 16 random bytes")
    utc = now.astimezone(UTC)
    # Not strftime: its %Y of a year below 1000 has no leading zeros on Linux.
    date = f"{utc.year:04}{utc.month:02}{utc.day:02}"
    return f"{date}T{utc.hour:02}{utc.minute:02}{utc.second:02}{utc.microsecond:06}Z-{random.hex()}"


def is_capture_id(text: str) -> bool:
    """Return whether the text is a capture id, and thereby safe as the name of a directory."""
    return CAPTURE_ID.fullmatch(text) is not None


def align_back(data: bytes, at: int) -> int:
    """Return the border of a character at or before `at`.

    Give it three bytes before the wanted position, where there are that many: a character has at most four.
    """
    return cut(data, at)


def trim_to_characters(data: bytes, *, at_start: bool) -> tuple[int, int]:
    """Return `(skip, keep)` such that `data[skip:keep]` is whole characters, at most 3 bytes shorter at each end.

    `at_start` says that the data begins at a border. An empty range means that the data is part of one character: more
    has to be read, and at the end of a final file there is none (a limit or a crash cut it there).
    """
    skip = 0 if at_start else first_border(data)
    # Not below `skip`: that is a border, and a piece without one counts as whole.
    return skip, cut(data, len(data))
