"""A conversation's storage: its directories, its owner's lock, its allowance, its captures."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from ..errors import StorageError
from .allowance import Allowance, Reservation, SharedAccount
from .capture import Capture, Site
from .creation import open_capture, undo_open
from .delivery import Deliveries
from .descriptor import Descriptor
from .directory import Rooms, make_directory, open_rooms
from .files import Files
from .incoming import Incoming, begin, undo_begin
from .owners import Owner, take_ownership
from .publish import Barrier
from .writers import Writers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..limits import Limits

T = TypeVar("T")
Durability = Literal["barrier", "none"]

CAPTURE_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
STREAM_NAME: Final = re.compile(r"[a-z]{1,16}(?:\.raw)?")
NOT_RESERVED: Final = "receipt-space-not-reserved"
"""The limitation that is named where space cannot be reserved (no fallocate(2)): a full disk may cost the receipt."""


class Storage(Protocol):
    """Whatever gives a supervisor its conversation."""

    async def open(self, directory: Path, *, limits: Limits, durability: Durability) -> Conversation:
        """Return the storage of `directory`. Raises: StorageError."""
        ...


class LocalStorage:
    """Storage in directories of this machine. `files` is the seam at which tests inject faults."""

    def __init__(self, files: Files | None = None) -> None:
        self._files: Final = files or Files()

    async def create_directory(
        self, directory: Path, *, deadline: float = 5.0, durability: Durability = "barrier"
    ) -> None:
        """Return when `directory` is there; it and its missing parents are made 0700, and what exists is left as it is.

        Raises:
            StorageError: it could not be made, or a call did not return for `deadline` seconds.
        """
        writers = Writers()
        try:
            make = partial(make_directory, self._files, directory, durable=durability == "barrier")
            await writers.run("making the directory", make, deadline=deadline)
        finally:
            await writers.close()

    async def open(self, directory: Path, *, limits: Limits, durability: Durability = "barrier") -> Conversation:
        """Return the storage of the existing `directory`; this process is its owner's lock-holder from then on.

        Cancellation: everything is closed again, late arrivals included.

        Raises:
            StorageError: it is missing, unsafe, full or broken, or a call did not return in time. Nothing is open then.
        """
        writers = Writers()
        try:
            opened = await writers.run(
                "opening the conversation",
                _open,
                self._files,
                directory,
                deadline=limits.stall_timeout,
                undo=lambda late: _close(self._files, *late),
            )
        except BaseException:
            await writers.close()
            raise
        return Conversation(self._files, writers, *opened, limits=limits, durability=durability)


class Conversation:
    """One open conversation directory. Made by `LocalStorage.open`; used from one event loop."""

    def __init__(
        self,
        files: Files,
        writers: Writers,
        rooms: Rooms,
        owner: Owner,
        *,
        limits: Limits,
        durability: Durability,
    ) -> None:
        self.directory: Final = rooms.path
        self.owner: Final = owner
        self.durability: Final[Durability] = durability
        self._site: Final = Site(
            files=files,
            writers=writers,
            rooms=rooms,
            barrier=Barrier(files, rooms),
            durable=durability == "barrier",
            deadline=limits.stall_timeout,
            digest=limits.digest,
            limitations=[*rooms.limitations, *owner.limitations],
        )
        self.deliveries: Final = Deliveries(self._site, owner)
        """The completions of its captures, as this owner claims them."""
        self._account: Final = SharedAccount(files, rooms, owner.name, limits.conversation_bytes)
        self._allowance: Final = Allowance(
            self._account, writers, deadline=limits.stall_timeout, on_limitation=self._site.name_limitation
        )
        self._captures: set[Capture] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called: what is still to be done here needs the directory opened anew."""
        return self._closed

    @property
    def limitations(self) -> tuple[str, ...]:
        """What this directory's file system could not give, as known so far; it grows while captures are made."""
        return tuple(self._site.limitations)

    async def create_capture(self, capture_id: str, streams: tuple[str, ...]) -> Capture:
        """Return a new capture with an empty live file for each of `streams` and the space of its receipt reserved.

        Cancellation: nothing of it is left, late arrivals included.

        Raises:
            ValueError: `capture_id` or a stream's name is not a plain name.
            StorageError: it could not be made; nothing of it is left.
        """
        assert not self._closed, "the conversation is closed"
        if not CAPTURE_ID.fullmatch(capture_id) or not all(map(STREAM_NAME.fullmatch, streams)):
            raise ValueError("a capture id or a stream's name is a plain name")
        site = self._site
        arguments = (site.files, site.rooms.captures, capture_id, streams)
        opened = await site.writers.run(
            "making the capture",
            open_capture,
            *arguments,
            deadline=site.deadline,
            undo=lambda late: undo_open(*arguments, late),
        )
        if not opened.reserved:
            site.name_limitation(NOT_RESERVED)
        self._captures = {capture for capture in self._captures if not capture.ended}
        capture = Capture(site, capture_id, streams, opened, Reservation(self._allowance, capture_id))
        self._captures.add(capture)
        return capture

    async def receive(self, capture_id: str) -> Incoming:
        """Return a copy to be made of a capture of that id, which takes its room from this conversation's allowance.

        Cancellation: nothing of it is left, late arrivals included.

        Raises:
            StorageError: its directory could not be made.
        """
        assert not self._closed, "the conversation is closed"
        site = self._site
        hidden, number = await site.writers.run(
            "making the copy",
            partial(begin, site.files, site.rooms),
            deadline=site.deadline,
            undo=partial(undo_begin, site.files, site.rooms),
        )
        return Incoming(site, capture_id, hidden, number, Reservation(self._allowance, hidden))

    async def run(self, action: str, step: Callable[[Files, Rooms], T]) -> T:
        """Return the result of a step in the open directories, made on a thread. Raises: StorageError."""
        site = self._site
        return await site.writers.run(action, partial(step, site.files, site.rooms), deadline=site.deadline)

    async def sync_published(self, capture_id: str) -> None:
        """Return when the names down to that capture's are on the device. Raises: StorageError."""
        await self.run("syncing the directories", partial(_sync_published, self._site.barrier, capture_id))

    async def close(self) -> None:
        """Return when the lock is released and every descriptor and thread is gone, save those of a stuck call.

        Captures that were neither published nor discarded stay as leftovers. A second call does nothing.
        """
        if self._closed:
            return
        self._closed = True
        # A capture whose making was cancelled needs `captures/` to be removed from.
        await self._site.writers.settle_late(self._site.deadline)
        for capture in self._captures:
            if not capture.ended:
                await capture.close()
        try:
            await self._site.writers.run(
                "closing the conversation",
                _close,
                self._site.files,
                self._site.rooms,
                self.owner,
                self._account,
                deadline=self._site.deadline,
            )
        except StorageError:  # the lock goes with the process; the thread closes the rest if it ever comes back
            return
        finally:
            await self._site.writers.close()


def _open(files: Files, directory: Path) -> tuple[Rooms, Owner]:
    rooms = open_rooms(files, directory)
    try:
        return rooms, take_ownership(files, rooms.state)
    except BaseException:
        rooms.discard()
        raise


def _sync_published(barrier: Barrier, capture_id: str, files: Files, rooms: Rooms) -> None:
    with rooms.captures.borrow() as captures:
        directory = Descriptor(files, files.open_directory(capture_id, parent=captures))
    try:
        barrier.sync(directory)
    finally:
        directory.discard()


def _close(files: Files, rooms: Rooms, owner: Owner, account: SharedAccount | None = None) -> None:
    if account is not None:
        account.reservations.discard()
    owner.release(files)
    rooms.discard()
