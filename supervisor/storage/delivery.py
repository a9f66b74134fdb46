"""The durable marker of a completion: who was given it, and whether it was acknowledged [E5].

`delivered` lies in the capture's directory and grows by one line of JSON for each thing that happened: a claim by an
owner, the release of a claim whose completion was handed to nobody, the acknowledgement. A line is valid once its line
feed is there, so a crash can tear nothing but the last one. All is decided under a short lock on the file; a claim
stands while its owner lives, told like the owner of a capture [D6].
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic_core import from_json, to_json

from .descriptor import Descriptor
from .directory import close_quietly, create_private_file, sync_directory
from .evidence import Owners, open_found, opened_capture, pieces, read_launch, read_record
from .faults import UnsafeDirectoryError
from .files import write_all
from .owners import LOCK_UNSUPPORTED
from .publish import RECEIPT, RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from .capture import Site
    from .directory import Rooms
    from .files import Files
    from .owners import Owner

T = TypeVar("T")

DELIVERED: Final = "delivered"
MARKER_BYTES: Final = 1024 * 1024
"""The most that is read of a marker; a claim has about 300 bytes, and each needs a crash of the one before it."""

ACKNOWLEDGEMENTS: Final = 1024
"""Lines that say so in one file, each for somebody who wanted it on the device once more."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What a `delivered` file says."""

    claims: tuple[Mapping[str, object], ...] = ()
    """Of owners that did not release them, oldest first; the last one is the standing one."""
    acknowledged: bool = False
    torn: bool = False
    """The last line is not whole: whatever it was to be, it did not take effect, but somebody was at it."""
    fresh: bool = False
    """Nothing was ever written: the file's name may not be on the device yet."""
    often: bool = False
    """It was acknowledged so often that one time more would only fill the file."""

    @classmethod
    def parse(cls, data: bytes) -> Marker:
        """Return what the whole lines say; one that cannot be read says that somebody was at it."""
        *lines, unfinished = data.split(b"\n")
        claims: list[Mapping[str, object]] = []
        acknowledged, torn = 0, bool(unfinished)
        for line in filter(None, lines):
            try:
                record: Any = from_json(line)
            except ValueError:
                record = None
            match record:
                case {"claimed": {"name": str() as name, **rest}}:
                    claims.append({"name": name} | {str(key): value for key, value in rest.items()})
                case {"released": str() as name}:
                    claims = [claim for claim in claims if claim.get("name") != name]
                case {"acknowledged": True}:
                    acknowledged += 1
                case _:
                    torn = True
        often = acknowledged >= ACKNOWLEDGEMENTS
        return cls(tuple(claims), acknowledged > 0, torn, fresh=not data, often=often)


@dataclass(frozen=True, slots=True)
class Claim:
    """A completion that is ours to hand over."""

    receipt: bytes
    """The published receipt."""
    redelivered: bool
    """Somebody else claimed it before, and died before acknowledging it."""


@contextmanager
def _opened_marker(files: Files, capture: int, *, to_claim: bool) -> Generator[int]:
    """Lend the marker's descriptor, locked; it is made if it is missing.

    Where there are no locks, only who made it can claim: nobody could tell who else is at it. All else is one append,
    which is whole by itself (open(2), `O_APPEND`).

    Raises: OSError, in particular BlockingIOError.
    """
    new = True
    try:
        number = create_private_file(files, DELIVERED, parent=capture, flags=os.O_RDWR | os.O_APPEND)
    except FileExistsError:
        new = False
        number = open_found(files, DELIVERED, parent=capture, flags=os.O_RDWR | os.O_APPEND)
    try:
        try:
            files.lock(number, exclusive=True, wait=True)
        except OSError as error:
            if error.errno not in LOCK_UNSUPPORTED:
                raise
            if to_claim and not new:
                raise BlockingIOError(errno.EAGAIN, "the marker exists and cannot be locked") from error
        yield number
    finally:
        close_quietly(files, number)


def _read(files: Files, number: int) -> Marker:
    data = b"".join(pieces(files, number, MARKER_BYTES))
    if len(data) == MARKER_BYTES:
        raise UnsafeDirectoryError(errno.EFBIG, "the delivery marker is longer than any that we write")
    return Marker.parse(data)


def _append(
    files: Files, number: int, marker: Marker, record: object, *, durable: bool, capture: int | None = None
) -> None:
    if marker.fresh and durable and capture is not None:
        # Before anything is in it, so that whoever finds something knows that the name lasts.
        sync_directory(files, capture)
    # What a torn line is of ends here: it must not swallow this one.
    write_all(files, number, (b"\n" if marker.torn else b"") + to_json(record) + b"\n")
    if durable:
        files.sync_file(number)


def claim(files: Files, rooms: Rooms, capture_id: str, me: Mapping[str, object], *, durable: bool) -> Claim | None:
    """Claim a capture's completion; None if it is acknowledged, or claimed by an owner that lives, this one included.

    Precondition: its receipt is published. When this returns, the claim is on the device if `durable`.

    Raises:
        OSError: it was not claimed, or the claim may not be on the device.
    """
    with (
        rooms.captures.borrow() as captures,
        rooms.state.borrow() as state,
        opened_capture(files, captures, capture_id) as capture,
    ):
        receipt = read_record(files, RECEIPT, RESERVED, parent=capture)
        if receipt is None:
            raise FileNotFoundError(errno.ENOENT, "there is no receipt")
        with _opened_marker(files, capture, to_claim=True) as number:
            marker = _read(files, number)
            owners = Owners(files, state)
            if marker.acknowledged or any(owners.lives(owner) is not False for owner in marker.claims):
                return None
            _append(files, number, marker, {"claimed": me}, durable=durable, capture=capture)
        return Claim(receipt, redelivered=bool(marker.claims) or marker.torn)


def release(files: Files, rooms: Rooms, capture_id: str, name: str) -> None:
    """Take back the claim of the owner `name`, whose completion was handed to nobody. Raises: OSError."""
    with (
        rooms.captures.borrow() as captures,
        opened_capture(files, captures, capture_id) as capture,
        _opened_marker(files, capture, to_claim=False) as number,
    ):
        _append(files, number, _read(files, number), {"released": name}, durable=False)


def acknowledge(files: Files, rooms: Rooms, capture_id: str, *, durable: bool) -> None:
    """Return when the completion is acknowledged, on the device if `durable`: it is never offered again.

    May be called again, and by who did not claim it. A capture that was removed has nothing to acknowledge.

    Raises:
        OSError: it may be offered again.
    """
    with rooms.captures.borrow() as captures:
        try:
            with (
                opened_capture(files, captures, capture_id) as capture,
                _opened_marker(files, capture, to_claim=False) as number,
            ):
                marker = _read(files, number)
                # Another one may have written it and not synced it; where its sync failed, one more would succeed with
                # the line lost [D4]. So it is written again.
                if not marker.acknowledged or (durable and not marker.often):
                    _append(files, number, marker, {"acknowledged": True}, durable=durable, capture=capture)
                elif durable:
                    files.sync_file(number)
        except FileNotFoundError:
            return


def undelivered(files: Files, rooms: Rooms) -> list[str]:
    """Return the captures whose completion is to be had, oldest first, so far as can be seen without claiming it.

    They are published, of started jobs, of owners that are gone, not acknowledged and not claimed by one that lives.
    What cannot be read is left out. Raises: OSError.
    """
    with rooms.captures.borrow() as captures, rooms.state.borrow() as state:
        names = sorted(name for name in files.names(captures) if not name.startswith("."))
        owners = Owners(files, state)
        return [name for name in names if _is_undelivered(files, captures, owners, name)]


def _is_undelivered(files: Files, captures: int, owners: Owners, capture_id: str) -> bool:
    try:
        with opened_capture(files, captures, capture_id) as capture:
            if RECEIPT not in files.names(capture):
                return False
            marker = Marker.parse(read_record(files, DELIVERED, None, parent=capture) or b"")
            if marker.acknowledged or any(owners.lives(owner) is not False for owner in marker.claims):
                return False
            launch = read_launch(files, capture)
    except OSError:
        return False
    # Without a record nobody knows that a job was started, nor by whom.
    return launch is not None and launch.kept and owners.lives(launch.owner) is False


class Deliveries:
    """The completions of one open conversation, as its owner claims and acknowledges them. Used from one loop."""

    def __init__(self, site: Site, owner: Owner) -> None:
        self._site: Final = site
        self._me: Final[dict[str, object]] = {"name": owner.name, **owner.identity}
        self._name: Final = owner.name

    async def undelivered(self) -> list[str]:
        """Return what earlier owners left to be delivered, oldest first. Raises: StorageError."""
        return await self._run("looking for completions", undelivered)

    async def claim(self, capture_id: str, *, earlier: bool) -> Claim | None:
        """Return the claimed completion, or None if it is not to be had.

        `earlier`: it is of another owner, whose barrier may not have been reached before it died; it is made up for.

        Cancellation: the claim may come to stand all the same; await this in a task of its own. Raises: StorageError.
        """
        if earlier and self._site.durable:
            await self._run("syncing the directories", self._sync, capture_id)
        return await self._run("claiming a completion", claim, capture_id, self._me, durable=self._site.durable)

    async def release(self, capture_id: str) -> None:
        """Take the claim back, so that who claims it next is not told that it was delivered. Raises: StorageError."""
        await self._run("releasing a completion", release, capture_id, self._name)

    async def acknowledge(self, capture_id: str) -> None:
        """Return when it is never offered again. Cancellation: it may be so all the same. Raises: StorageError."""
        await self._run("acknowledging a completion", acknowledge, capture_id, durable=self._site.durable)

    def _sync(self, files: Files, rooms: Rooms, capture_id: str) -> None:
        with rooms.captures.borrow() as captures:
            directory = Descriptor(files, files.open_directory(capture_id, parent=captures))
        try:
            self._site.barrier.sync(directory)
        finally:
            directory.discard()

    async def _run(self, action: str, step: Callable[..., T], *arguments: object, **options: object) -> T:
        site = self._site
        call = partial(step, site.files, site.rooms, *arguments, **options)
        return await site.writers.run(action, call, deadline=site.deadline)
