"""Where the last lines of a text begin, found from its end backwards: what lies before them is not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..captures import read_capture
from ..sansio.page import LONGEST_CHARACTER, PAGE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from ..sansio.cursor import Cursor

LINE_FEED: Final = b"\n"


async def start_of_last_lines(directory: Path, end: Cursor, count: int, *, step: int = PAGE_BYTES) -> Cursor:
    """Return where the last `count` lines of a kept text begin, of which only what is before `end` is looked at.

    A last line without a line feed is a line. Memory is bounded by `step` bytes, however long a line is.

    Raises: as `read_capture`.
    """
    if count == 0 or end.offset == 0:
        return end
    # The line feed that ends the last line begins none: the one that is looked for is `count` before it.
    wanted = count
    upper = end.offset
    last = True
    while upper > 0:
        lower = max(0, upper - step)
        # A page that begins inside a character is moved back by up to three bytes, and so is its end.
        size = upper - lower + LONGEST_CHARACTER
        page = await read_capture(directory, end.capture_id, end.stream, cursor=end.at(lower), max_bytes=size)
        data = page.text.encode()[lower - page.start.offset :][: upper - lower]
        if last and data.endswith(LINE_FEED):
            data = data[:-1]
        last = False
        found = data.count(LINE_FEED)
        if found >= wanted:
            at = len(data)
            for _ in range(wanted):
                at = data.rindex(LINE_FEED, 0, at)
            return end.at(lower + at + 1)
        wanted -= found
        upper = lower
    return end.at(0)
