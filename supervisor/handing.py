"""Captures handed on by copy, and receipts read away from their files [E7, E10].

A copy keeps its capture's id, so a reference or a cursor that somebody has is good there too. It is made whole before
it has a name: killed half-way, or on a full disk, it leaves the source as it was and the destination without it. What
is copied is the sanitised text with its receipt; an unsanitised copy is never copied again [B8]. A text that is not to
be had, or is not what its receipt says, is `unavailable` in the copy.
"""

from __future__ import annotations

import errno
import math
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .errors import LiveCapture, StorageError, UnknownCapture
from .limits import Limits
from .recovering import bound
from .request import conversation_path
from .sansio.cursor import is_capture_id
from .sansio.leftover import placed
from .sansio.receipt import Durability
from .sansio.routes import handed_over, reached, unreached, without_paths
from .storage import (
    Files,
    LocalStorage,
    find_capture,
    find_names,
    open_outgoing,
    recover_capture,
    site_of,
    sweep,
    visiting,
)
from .storage.visiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .sansio.receipt import Receipt
    from .storage import Conversation, Found, Outgoing, Visit
    from .storage.directory import Rooms

TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})
"""How a directory's name that is taken is told."""


async def export_captures(
    conversation: str | os.PathLike[str], capture_ids: Iterable[str], destination: str | os.PathLike[str]
) -> list[Receipt]:
    """Copy captures to be given to somebody; return the receipts of the copies, in the order of the ids.

    The destination is made if it is missing, and is a conversation from then on: its captures can be listed and read.
    Its receipts are those that `Receipt.for_sharing` gives, with references alone; those returned have the paths of
    here. No limit holds for its size. A capture that is there already, whole, is left as it is.

    Raises:
        ValueError: an id that cannot be one, or a destination inside the conversation; nothing was written.
        UnknownCapture, LiveCapture: of one of them, before any is copied.
        StorageError: a directory cannot be used, the destination is full, or has another version of a capture. The
            captures before that one are there, whole; of it, nothing.

    Cancellation: as after a StorageError; the copy under way may be there all the same.
    """
    limits = Limits(stall_timeout=PATIENCE_SECONDS, conversation_bytes=math.inf)
    ids = tuple(dict.fromkeys(capture_ids))
    return await hand_over(Files(), conversation, ids, destination, limits=limits, export=True)


async def share_capture(
    conversation: str | os.PathLike[str],
    capture_id: str,
    destination: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
) -> Receipt:
    """Copy a capture into another conversation of ours and return the receipt of the copy, with paths of there.

    When it returns, the copy is on the device and the source may be removed. It counts against the `conversation_bytes`
    of the destination, which must exist. No completion is owed for it there. A capture that is there already, whole, is
    left as it is, so this may be called again.

    Raises:
        ValueError, UnknownCapture, LiveCapture, StorageError: as `export_captures`; also if the destination is full by
            its limit (`conversation-limit`).
    """
    limits = (limits or Limits()).model_copy(update={"stall_timeout": PATIENCE_SECONDS})
    (receipt,) = await hand_over(Files(), conversation, (capture_id,), destination, limits=limits, export=False)
    return receipt


async def resolve(receipt: Receipt, conversation: str | os.PathLike[str] | None = None) -> Receipt:
    """Return the receipt as it is true here and now: where its texts are, or that they cannot be had.

    `conversation` is where to look; None: where the receipt says. A text that is there is `local`. Where the whole
    conversation is not to be found it `needs-transfer`: it may be on another machine. Where only the capture, or its
    file, is not there any more it is `unavailable`.

    Raises:
        StorageError: the disk fails, or a call did not return in time.
    """
    given = receipt.conversation if conversation is None else conversation
    if given is None:
        return _unreached(receipt, gone=False)
    path = conversation_path(given)
    assert path is not None
    try:
        async with visiting(Files(), path) as visit:
            if visit is None:
                return _unreached(receipt, gone=True)
            look = partial(find_names, visit.files, visit.rooms, receipt)
            names = await visit.run("looking for the capture", look)
    except StorageError as error:
        if error.reason not in {"no-directory", "unsafe-directory"}:
            raise
        return _unreached(receipt, gone=False)
    if names is None:
        return _unreached(receipt, gone=True)
    return bound(reached(receipt, site_of(path, receipt.capture_id), names), path)


def _unreached(receipt: Receipt, *, gone: bool) -> Receipt:
    """Return the receipt without a route to its texts, nor the one that it may have been given where it was made."""
    return unreached(receipt, gone=gone).bind(None)


async def hand_over(
    files: Files,
    conversation: str | os.PathLike[str],
    ids: Sequence[str],
    destination: str | os.PathLike[str],
    *,
    limits: Limits,
    export: bool,
) -> list[Receipt]:
    """Copy by these system calls: the seam at which tests kill and fail it."""
    if not all(map(is_capture_id, ids)):
        raise ValueError("not a capture id")
    source, target = conversation_path(conversation), conversation_path(destination)
    assert source is not None
    assert target is not None
    async with visiting(files, source) as visit:
        if visit is None:
            if ids:
                raise UnknownCapture(f"this conversation has no capture {ids[0]}")
            return []
        await visit.run("comparing the directories", partial(_check_apart, source, target))
        for capture_id in ids:
            await _prepare(visit, capture_id)
        storage = LocalStorage(files)
        if export:
            await storage.create_directory(target, deadline=PATIENCE_SECONDS)
        opened = await storage.open(target, limits=limits)
        try:
            await opened.run("finishing removals", sweep)
            return [await _copied(visit, opened, capture_id, export=export) for capture_id in ids]
        finally:
            await opened.close()


def _check_apart(source: Path, target: Path) -> None:
    """Return if the destination is not the conversation, nor anything in it. Raises: ValueError."""
    inner, outer = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    if inner == outer or outer in inner.parents:
        raise ValueError("the destination is inside the conversation")


async def _prepare(visit: Visit, capture_id: str) -> None:
    """Return when the capture is published; a leftover is recovered. Raises: UnknownCapture, LiveCapture."""
    find = partial(find_capture, visit.files, visit.rooms, capture_id)
    found = await visit.run("looking for the capture", find)
    if found is None:
        raise UnknownCapture(f"this conversation has no capture {capture_id}")
    if found.state == "live" or (found.state == "left" and not found.recoverable):
        raise LiveCapture(f"the capture {capture_id} is live, or nobody can know that it is not", capture_id=capture_id)
    if found.state == "left":
        step = partial(recover_capture, visit.files, visit.rooms, visit.barrier, capture_id)
        await visit.run(f"recovering {capture_id}", step)


async def _copied(visit: Visit, target: Conversation, capture_id: str, *, export: bool) -> Receipt:
    """Return the receipt of the copy that is made, or was there."""
    opening = partial(open_outgoing, visit.files, visit.rooms, capture_id)
    outgoing = await visit.run(f"opening {capture_id}", opening, undo=_close)
    try:
        there = await _already_there(target, outgoing) or await _copy_unless_taken(target, outgoing, export=export)
    finally:
        outgoing.close()
    return bound(placed(there, site_of(target.directory, capture_id)), target.directory)


async def _copy_unless_taken(target: Conversation, outgoing: Outgoing, *, export: bool) -> Receipt:
    try:
        return await _copy(target, outgoing, export=export)
    except StorageError as error:
        if error.errno not in TAKEN:
            raise
        # Where the source cannot be locked, another one may have been faster.
        there = await _already_there(target, outgoing)
        if there is None:
            raise
        return there


async def _copy(target: Conversation, outgoing: Outgoing, *, export: bool) -> Receipt:
    capture_id = outgoing.receipt.capture_id
    incoming = await target.receive(capture_id)
    try:
        names: dict[str, str] = {}
        for stream, text in outgoing.texts.items():
            name = await incoming.add(stream, text)
            if name is not None:
                names[stream] = name
        directories = await incoming.settle()
        receipt = outgoing.receipt.for_sharing() if export else outgoing.receipt
        receipt = handed_over(receipt, site_of(target.directory, capture_id), names)
        receipt = receipt.model_copy(update={"durability": Durability(barrier=True, directories=directories)}).fitted()
        await incoming.publish((without_paths(receipt) if export else receipt).to_json())
    except BaseException:
        await incoming.discard()
        raise
    return receipt


async def _already_there(target: Conversation, outgoing: Outgoing) -> Receipt | None:
    """Return the receipt of a copy that has the same texts, on the device; None if there is none.

    Raises:
        StorageError: the destination has a capture of that id that is not this one.
    """
    receipt = outgoing.receipt
    found = await target.run("looking for a copy", partial(_find, receipt.capture_id))
    if found is None:
        return None
    if found.state != "published" or not _is_copy(found.receipt, receipt):
        raise _another_version(receipt.capture_id)
    await target.sync_published(receipt.capture_id)  # who made it may have been killed before its barrier
    return found.receipt


def _is_copy(copy: Receipt, original: Receipt) -> bool:
    """Return whether two receipts are of the same texts, and the copy has each that the original has."""
    for name, facts in original.streams.items():
        other = copy.streams.get(name)
        if facts is None or other is None:
            if facts is not other:
                return False
            continue
        same = (other.state, other.sha256, other.retained) == (facts.state, facts.sha256, facts.retained)
        if not same or (facts.access == "local" and other.access != "local"):
            return False
    return True


def _find(capture_id: str, files: Files, rooms: Rooms) -> Found | None:
    return find_capture(files, rooms, capture_id)


def _another_version(capture_id: str) -> StorageError:
    message = f"the destination has another capture {capture_id}, which is left as it is"
    return StorageError(message, reason="io-error", errno=errno.EEXIST)


def _close(outgoing: Outgoing) -> None:
    outgoing.close()
