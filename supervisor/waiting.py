"""Waiting until a command is ready: for what it prints, for a port that it opens, for a file that it makes.

All three end in one of four ways: it came; it cannot come any more (`NeverReady`, at once); the time is over
(`TimeoutError`); the waiter was cancelled, which the job does not notice [F5]. Waits that others have built and their
users were hurt by: one that goes on for a command that has ended (testcontainers-python#681), one that finds what an
earlier run has printed (field report H5-070), one that reads so many lines and no more (pytest-xprocess#3).

Output is looked at through the readers of `Job.follow`, so it is that of this run, cursors agree, and a wait costs the
child no more than a follower does. A port and a file can only be asked for again and again.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import struct
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from . import following
from .clock import done_within
from .errors import NeverReady
from .limits import not_negative
from .sansio.page import PAGE_BYTES
from .sansio.searching import check_pattern, search_for
from .storage import reading_threads

if TYPE_CHECKING:
    import re
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

    from .course import Course
    from .sansio.cursor import Cursor
    from .sansio.page import Page
    from .sansio.searching import Match
    from .sansio.words import StreamName

T = TypeVar("T")

POLL_SECONDS: Final = 0.05
"""Between two looks for a port or a file: no person notices it, and twenty connects or stats a second cost nothing."""
CONNECT_SECONDS: Final = 1.0
"""How long one connection may take to be accepted: a packet that is lost is sent again after one second (RFC 6298)."""
SLICE_CHARACTERS: Final = 16 * 1024
"""What is searched between two turns of the loop: four windows of a pattern that is slow."""
LARGEST_PORT: Final = 65535
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: close by a reset, which leaves no TIME_WAIT at that port."""


async def wait_for(
    course: Course, pattern: str | re.Pattern[str], stream: StreamName, cursor: Cursor | None, seconds: float | None
) -> Match:
    """Return the first match; see `Job.wait_for`."""
    _check_seconds(seconds)
    check_pattern(pattern)
    pages = following.follow(course, stream, cursor, PAGE_BYTES)
    return await _within(course, seconds, _first_match(course, pages, pattern))


async def wait_for_port(course: Course, port: int, host: str, seconds: float | None) -> None:
    """Return when a connection was accepted; see `Job.wait_for_port`."""
    _check_seconds(seconds)
    _check_address(host, port)
    await _within(course, seconds, _poll(course, partial(accepts, host, port)))


async def wait_for_file(course: Course, path: str | os.PathLike[str], seconds: float | None) -> None:
    """Return when there is something at `path`; see `Job.wait_for_file`."""
    _check_seconds(seconds)
    await _within(course, seconds, _wait_for_file(course, _checked_path(course, path)))


async def accepts(host: str, port: int, *, local: tuple[str, int] | None = None) -> bool:
    """Return whether somebody accepts a connection there, which is closed at once; `local` is where it comes from.

    One that goes to itself is none: connecting to a port of the ephemeral range again and again ends up there when
    nobody listens (the simultaneous open of RFC 9293, 3.5), and would keep the port from whom it is waited for.
    """
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            transport, knock = await asyncio.get_running_loop().create_connection(_Knock, host, port, local_addr=local)
    except OSError:  # refused, unreachable, unknown by now, or it took too long
        return False
    itself = transport.get_extra_info("sockname") == transport.get_extra_info("peername")
    if itself:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    transport.abort()
    await knock.gone
    return not itself


class _Knock(asyncio.Protocol):
    """A connection that was only to be accepted."""

    def __init__(self) -> None:
        self.gone: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        """Done when its socket is closed."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- whatever ended it
        """See `asyncio.Protocol`."""
        if not self.gone.done():
            self.gone.set_result(None)


async def _first_match(course: Course, pages: AsyncGenerator[Page], pattern: str | re.Pattern[str]) -> Match:
    search = None
    async with aclosing(pages):
        async for page in pages:
            search = search or search_for(pattern, page.start)
            for begin in range(0, len(page.text), SLICE_CHARACTERS):
                found = search.feed(page.text[begin : begin + SLICE_CHARACTERS])
                if found is not None:
                    return found
                await asyncio.sleep(0)
            # Where the text was cut, nobody knows how its last line went on.
            if page.eof and page.state == "complete" and (found := search.finish()) is not None:
                return found
            if page.eof:
                raise _no_match(course, page)
    raise AssertionError("following ends with a page that says so")


def _no_match(course: Course, page: Page) -> NeverReady:
    ended = course.settled.done()
    what = "the job has ended" if ended else "no more of its output is kept"
    why = page.state if page.reason is None else f"{page.state}, {page.reason}"
    return NeverReady(
        f"{what} without a match in {page.cursor.stream} ({why})", ended=ended, state=page.state, reason=page.reason
    )


async def _wait_for_file(course: Course, path: Path) -> None:
    with reading_threads.borrow() as threads:
        deadline = course.services.limits.stall_timeout
        look = partial(threads.run, "looking for the file", _is_there, path, deadline=deadline)
        # A file may be the last thing that a command makes, and stays when it has ended.
        await _poll(course, look, last=True)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


async def _poll(course: Course, look: Callable[[], Awaitable[bool]], *, last: bool = False) -> None:
    """Return once a look finds it; `last` says whether there is one more after the job's end."""
    while True:
        ended = course.settled.done()
        if (last or not ended) and await look():
            return
        if ended:
            raise NeverReady("the job has ended before it was ready", ended=True)
        await done_within(course.services.clock, POLL_SECONDS, course.settled)


async def _within(course: Course, seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, if it does so within `seconds` of the job's clock.

    It has ended when this returns or raises. Cancellation: it is cancelled too.
    """
    if seconds is None or math.isinf(seconds):
        return await work
    task = asyncio.get_running_loop().create_task(work)
    try:
        if await done_within(course.services.clock, seconds, task):
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # ours, or that of a wait which is over: no event for the loop's handler
    raise TimeoutError(f"not ready within {seconds:g} seconds")


def _check_seconds(timeout: object) -> None:
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError("timeout must be a number of seconds, or None")
    try:
        not_negative(float(timeout))
    except ValueError as error:
        raise ValueError(f"timeout {error}") from None


def _check_address(host: object, port: object) -> None:
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError("port must be a number")
    if not 0 < port <= LARGEST_PORT:
        raise ValueError(f"port must be from 1 to {LARGEST_PORT}")
    if not isinstance(host, str):
        raise TypeError("host must be a string")
    try:
        usable = bool(host) and "\0" not in host and bool(host.encode("idna"))
    except UnicodeError:
        usable = False
    if not usable:
        raise ValueError("host must be a name or an address")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _checked_path(course: Course, path: str | os.PathLike[str]) -> Path:
    """Return the path as the command would take it: relative to where that runs."""
    text = os.fspath(path)
    if not _is_text(text):
        raise TypeError("path must be text")
    if not text or "\0" in text:
        raise ValueError("path must not be empty, and has no NUL")
    return Path.cwd() / (course.request.options.cwd or "") / text
