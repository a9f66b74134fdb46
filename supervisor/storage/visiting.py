"""A visit to a conversation by who owns no capture in it: lists, recovers, removes, and leaves nothing open."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from .evidence import find_rooms
from .publish import Barrier
from .writers import Writers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from .directory import Rooms
    from .files import Files

T = TypeVar("T")

PATIENCE_SECONDS: Final = 60.0
"""The deadline of one step, which may read and sync a whole capture, and wait for another one that does [D8]."""


class Visit:
    """The open conversation and the threads that work in it."""

    def __init__(self, files: Files, rooms: Rooms, writers: Writers) -> None:
        self.files: Final = files
        self.rooms: Final = rooms
        self.barrier: Final = Barrier(files, rooms)
        self._writers: Final = writers

    async def run(self, action: str, step: Callable[[], T], *, undo: Callable[[T], object] | None = None) -> T:
        """Return the step's result, from a thread. Raises: StorageError.

        Cancellation: the step goes on; `undo` gets its late result.
        """
        return await self._writers.run(action, step, deadline=PATIENCE_SECONDS, undo=undo)


@asynccontextmanager
async def visiting(files: Files, directory: Path) -> AsyncGenerator[Visit | None]:
    """Lend the conversation of `directory`; None if it never had a capture.

    Raises:
        StorageError: it cannot be opened.
    """
    writers = Writers()
    try:
        find = partial(find_rooms, files, directory)
        rooms = await writers.run("opening the conversation", find, deadline=PATIENCE_SECONDS, undo=_discard)
        if rooms is None:
            yield None
            return
        try:
            yield Visit(files, rooms, writers)
        finally:
            rooms.discard()  # a step that is still out has borrowed what it needs, and closes it
    finally:
        await _closed(writers)


async def _closed(writers: Writers) -> None:
    """Return when the threads have ended, also if the caller is cancelled (again) meanwhile."""
    closing = asyncio.ensure_future(writers.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait({closing})
        raise


def _discard(rooms: Rooms | None) -> None:
    if rooms is not None:
        rooms.discard()
