"""Kept text on its way to our own descriptors, page by page, at the pace of who reads them."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..captures import follow_capture, read_capture
from ..sansio.cursor import Cursor
from .codes import OWN_FAULT
from .looking import receipt_of
from .messages import complain
from .screen import Screen, write_all
from .tail import start_of_last_lines

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from ..sansio.page import Page
    from ..sansio.words import StreamName

PAGE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be printed of a capture."""

    streams: tuple[StreamName, ...]
    """One goes to stdout, two each to its own descriptor."""
    after: Cursor | None
    lines: int | None
    follow: bool
    show_cursor: bool


async def print_text(directory: Path, capture_id: str, wanted: Wanted) -> int:
    """Print what is wanted and return the exit code: 0 also for readers that have seen enough.

    Cancellation: the cursor, if it is wanted, is said all the same, so that the next call can go on there.

    Raises:
        CursorError, UnknownCapture, StorageError: as `read_capture`; what came before is printed.
    """
    printer = Printer(directory, capture_id, wanted)
    try:
        await printer.print()
        await printer.say_cursor()
    except asyncio.CancelledError:
        printer.say_cursor_at_once()
        raise
    except BrokenPipeError:
        return 0
    except OSError as error:
        complain(f"the text cannot be written any more: {error.strerror}")
        return OWN_FAULT
    finally:
        printer.close()
    return 0


class Printer:
    """Prints the streams of one capture."""

    def __init__(self, directory: Path, capture_id: str, wanted: Wanted) -> None:
        self._directory: Final = directory
        self._capture_id: Final = capture_id
        self._wanted: Final = wanted
        self._out: Final = Screen(1)
        # One terminal or pipe under both numbers is one screen, so that the cursor begins on a fresh line.
        self._err: Final = self._out if os.path.sameopenfile(1, 2) else Screen(2)
        self._reached: Cursor | None = wanted.after
        """Where the text that was printed last ends."""

    async def print(self) -> None:
        """Return when all is printed. Raises: OSError for a descriptor that takes no more."""
        out, *more = self._wanted.streams
        if not self._wanted.follow:
            await self._print(out, self._out)
            for stream in more:
                await self._print(stream, self._err)
            return
        screens = (self._out, self._err)
        tasks = [
            asyncio.ensure_future(self._print(stream, screen))
            for stream, screen in zip(self._wanted.streams, screens, strict=False)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def say_cursor(self) -> None:
        """Print where the text ends, if that is wanted. Raises: OSError."""
        if line := self._cursor_line():
            await self._err.write_lines(line)
            if self._err.error is not None:
                raise self._err.error

    def say_cursor_at_once(self) -> None:
        """Print the cursor without the loop, which is about to end."""
        with suppress(OSError):  # nobody is left to tell
            write_all(2, self._cursor_line())

    def close(self) -> None:
        """Release the threads that are not stuck."""
        for screen in {self._out, self._err}:
            screen.close()

    def _cursor_line(self) -> bytes:
        return f"-- cursor: {self._reached}\n".encode() if self._wanted.show_cursor and self._reached else b""

    async def _print(self, stream: StreamName, screen: Screen) -> None:
        async with aclosing(self._pages(stream, await self._start(stream))) as pages:
            async for page in pages:
                await screen.write(page.text.encode())
                if screen.error is not None:
                    raise screen.error
                self._reached = page.cursor

    async def _start(self, stream: StreamName) -> Cursor | None:
        if self._wanted.lines is None:
            return self._wanted.after
        receipt = await receipt_of(self._directory, self._capture_id)
        facts = receipt.streams.get(stream)
        end = 0 if facts is None else facts.retained.end if facts.retained.end is not None else facts.committed or 0
        beginning = Cursor(self._capture_id, stream)
        return await start_of_last_lines(self._directory, beginning.at(end), self._wanted.lines)

    async def _pages(self, stream: StreamName, cursor: Cursor | None) -> AsyncGenerator[Page]:
        if self._wanted.follow:
            following = follow_capture(self._directory, self._capture_id, stream, cursor=cursor, max_bytes=PAGE_BYTES)
            async with aclosing(following) as pages:
                async for page in pages:
                    yield page
            return
        while True:
            page = await read_capture(self._directory, self._capture_id, stream, cursor=cursor, max_bytes=PAGE_BYTES)
            yield page
            if page.eof or not page.text:
                return
            cursor = page.cursor
