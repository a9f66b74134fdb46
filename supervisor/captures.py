"""Reading captures from their files alone: of this process or another, live, final, or left behind by a crash [E4].

Nothing here writes. What is read back is untrusted data, as it was when it came out of the child [E8].
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from .sansio.page import PAGE_BYTES, page_of, wanted
from .storage import Files, Watch, look, open_watch, reading_threads
from .tracking import Track

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from .sansio.cursor import Cursor
    from .sansio.page import Page, Wanted
    from .sansio.words import StreamName
    from .storage import Look, Writers

READ_SECONDS: Final = 5.0
"""How long one look at the files may take: `Limits.stall_timeout`'s default, which no reader has."""
RECHECK_SECONDS: Final = 0.5
"""How often a follower looks without being woken: an owner that died tells nobody, and not every system has inotify."""

_files: Final = Files()


async def read_capture(
    directory: str | os.PathLike[str],
    capture_id: str,
    stream: StreamName = "stdout",
    *,
    cursor: Cursor | None = None,
    max_bytes: int = PAGE_BYTES,
) -> Page:
    """Return the page at `cursor` (None: the beginning) of a capture of the conversation `directory`.

    It never waits for text: a page without any, whose `eof` is False, says that there is none yet. Without a receipt
    the state is `pending` while the owner lives, then `partial` / `supervisor-lost`.

    Raises:
        ValueError: an id, stream, cursor or size that cannot be; no file was touched.
        UnknownCapture: the conversation has no such capture.
        CursorError: the cursor is outside the retained range, which it carries.
        StorageError: the directory or a file is missing, unsafe, damaged or stuck.
    """
    request = wanted(capture_id, stream, cursor, max_bytes)
    with reading_threads.borrow() as threads:
        seen = await _look(threads, Path(directory), request)
    return page_of(request, seen.piece.data, seen.piece.size, seen.standing)


def follow_capture(
    directory: str | os.PathLike[str],
    capture_id: str,
    stream: StreamName = "stdout",
    *,
    cursor: Cursor | None = None,
    max_bytes: int = PAGE_BYTES,
) -> AsyncGenerator[Page]:
    """Yield the pages of a capture from `cursor` on, as its text is committed; the last one has `eof`.

    It ends when the receipt is there, or the owner is gone, and all was read. To leave it earlier, close it
    (`contextlib.aclosing`). Cancellation, also while it waits: nothing stays open.

    Raises:
        ValueError: at once; as `read_capture`.
        UnknownCapture, CursorError, StorageError: while it is iterated; as `read_capture`. A file that shrinks, is
            replaced or removed while it is followed is one of the last two.
    """
    return _follow(Path(directory).absolute(), wanted(capture_id, stream, cursor, max_bytes))


async def _follow(directory: Path, request: Wanted) -> AsyncGenerator[Page]:
    with reading_threads.borrow() as threads:
        watch = await _watch(threads, directory, request.cursor.capture_id)
        track = Track()
        try:
            while True:
                watch.drain()
                seen = await _look(threads, directory, request)
                track.check(seen.piece, seen.standing)
                page = page_of(request, seen.piece.data, seen.piece.size, seen.standing)
                if page.text or page.eof:
                    yield page
                if page.eof:
                    return
                request = request.after(page)
                if not page.text:
                    await watch.wait(RECHECK_SECONDS)
        finally:
            watch.close()


async def _watch(threads: Writers, directory: Path, capture_id: str) -> Watch:
    number = await threads.run(
        "watching the capture",
        open_watch,
        _files,
        directory,
        capture_id,
        deadline=READ_SECONDS,
        undo=lambda late: Watch(late).close(),
    )
    return Watch(number)


async def _look(threads: Writers, directory: Path, request: Wanted) -> Look:
    return await threads.run("reading the capture", look, _files, directory, *request.place, deadline=READ_SECONDS)
