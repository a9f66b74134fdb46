"""Reading a job's text inside the process that runs it, while it runs and ever after.

The same files are read as from anywhere else, and no bytes pass from the pump to a reader. What the process knows
better is how a stream stands, and when there is more: a follower waits for the next commit, not for a timer [E1].

As with files alone, the standing is asked before the file is looked at: what says that nothing will be added is older
than the length that is read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from .errors import StorageError, UnknownCapture
from .sansio.page import ABSENT, PENDING, Standing, page_of, settled, wanted
from .storage import NOTHING, Files, Piece, read_piece, reading_threads
from .tracking import Track

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from .course import Course
    from .pump import Pump
    from .sansio.cursor import Cursor
    from .sansio.page import Page, Wanted
    from .sansio.receipt import Receipt
    from .sansio.words import StreamName
    from .storage import Writers

WHOLE_TEXT_PAGE_BYTES: Final = 1024 * 1024
"""How much of a text that is read whole is read at once."""

_files: Final = Files()


async def read(course: Course, stream: StreamName, cursor: Cursor | None, max_bytes: int) -> Page:
    """Return the page at `cursor`; see `Job.read`."""
    request = wanted(course.capture_id, stream, cursor, max_bytes)
    with reading_threads.borrow() as threads:
        return await _page(threads, course, request, Track())


def follow(course: Course, stream: StreamName, cursor: Cursor | None, max_bytes: int) -> AsyncGenerator[Page]:
    """Yield pages until nothing follows; see `Job.follow`."""
    return _follow(course, wanted(course.capture_id, stream, cursor, max_bytes))


def routed(receipt: Receipt, course: Course) -> Receipt:
    """Return the receipt, with the route by which it reads its texts if they are in files [E6].

    The route holds a path, not the job.
    """
    capture, conversation = course.capture, course.services.conversation
    if capture is None or conversation is None or receipt.capture.state == "unavailable":
        return receipt
    return receipt.bind(_WholeText(conversation.directory, receipt, course.services.limits.stall_timeout))


class _WholeText:
    """Reads all of a stream's text, as far as its receipt says that it is there."""

    def __init__(self, directory: Path, receipt: Receipt, deadline: float) -> None:
        self._directory: Final = directory
        self._capture_id: Final = receipt.capture_id
        # Not the receipt: the two would keep each other alive until the next collection of cycles.
        self._standings: Final = {name: replace(settled(facts), ended=True) for name, facts in receipt.streams.items()}
        self._deadline: Final = deadline

    async def __call__(self, stream: StreamName) -> str:
        """Return the text."""
        parts: list[str] = []
        request = wanted(self._capture_id, stream, None, WHOLE_TEXT_PAGE_BYTES)
        track = Track()
        with reading_threads.borrow() as threads:
            while True:
                piece = await _piece(threads, self._directory, request, self._deadline)
                track.check(piece, self._standings[stream])
                page = page_of(request, piece.data, piece.size, self._standings[stream])
                parts.append(page.text)
                if page.eof:
                    return "".join(parts)
                request = request.after(page)


async def _follow(course: Course, request: Wanted) -> AsyncGenerator[Page]:
    progress = course.progress[request.cursor.stream]
    track = Track()
    with reading_threads.borrow() as threads:
        while True:
            seen = progress.count
            page = await _page(threads, course, request, track)
            if page.text or page.eof:
                yield page
            if page.eof:
                return
            request = request.after(page)
            if not page.text:
                await progress.beyond(seen)


async def _page(threads: Writers, course: Course, request: Wanted, track: Track) -> Page:
    stream = request.cursor.stream
    standing = _standing(course, stream)
    inline = _inline(course, stream)
    if inline is not None:
        return page_of(request, inline[request.offset : request.offset + request.count], len(inline), standing)
    piece = NOTHING
    conversation = course.services.conversation
    if course.capture is not None and conversation is not None and standing.state not in {"unavailable", "disabled"}:
        if standing is not ABSENT:
            look = partial(_piece, threads, conversation.directory, request, course.services.limits.stall_timeout)
            ledger = course.pumps[stream].stream.ledger
            piece = await course.desks[stream].piece(
                (request.offset, request.count),
                look,
                observed=ledger.observed,
                # A standing that says "ended" must not meet an older length: it would be a wrong end [E3].
                at_least=max(track.size, ledger.committed) if standing.ended else track.size,
                committed=ledger.committed,
            )
        track.check(piece, standing)
    return page_of(request, piece.data, piece.size, standing)


def _standing(course: Course, stream: StreamName) -> Standing:
    """Return how a stream stands now. A stream whose retention ended early has ended, though its child goes on."""
    if course.settled.done():
        return settled(course.settled.result().streams[stream])
    options = course.request.options
    if options.merge and stream == "stderr":
        return ABSENT
    if options.capture == "none":
        return Standing("disabled", ended=True)
    pump = course.pumps.get(stream)
    return PENDING if pump is None else _live_standing(course, pump)


def _live_standing(course: Course, pump: Pump) -> Standing:
    if course.capture is None and course.unavailable is not None:
        return Standing("unavailable", course.unavailable, ended=True)
    if pump.stream.retaining or pump.outbox.busy:
        return PENDING
    verdict = pump.stream.verdict()
    return Standing(verdict.state, verdict.reason, ended=True)


def _inline(course: Course, stream: StreamName) -> bytes | None:
    """Return the text that the receipt itself carries, which then has no file [A7]."""
    if not course.settled.done():
        return None
    facts = course.settled.result().streams[stream]
    if facts is None or facts.access != "inline":
        return None
    if facts.preview is None or facts.preview.state != "complete":
        raise StorageError("the receipt does not carry the whole text", reason="no-directory")
    return facts.preview.text.encode()


async def _piece(threads: Writers, directory: Path, request: Wanted, deadline: float) -> Piece:
    try:
        return await threads.run(
            f"reading {request.cursor.stream}", read_piece, _files, directory, *request.place, deadline=deadline
        )
    except UnknownCapture as error:
        # Its directory vanished under us [D1]; the job itself is known.
        raise StorageError(str(error), reason="no-directory") from None
