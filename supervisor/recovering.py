"""What becomes of captures after their supervisor: listed, recovered, removed, from the files alone [D1, D6].

A job of a supervisor that was killed has no receipt until `recover` gives it one; only then is its completion offered
by `Supervisor.completions`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .captures import read_capture
from .errors import StorageError, UnknownCapture
from .request import conversation_path
from .sansio.cursor import is_capture_id
from .storage import (
    Files,
    check_removable,
    find_captures,
    recover_capture,
    remove_capture,
    sweep,
    visiting,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .sansio.cursor import Cursor
    from .sansio.receipt import Receipt
    from .sansio.words import StreamName
    from .storage import Visit

PAGE_BYTES: Final = 1024 * 1024
"""How much of a text that is read whole is read at once."""


async def list_captures(directory: str | os.PathLike[str]) -> list[Receipt]:
    """Return the receipts of all captures of the conversation `directory`, oldest first. Nothing is written.

    A published one is as it was published. One that lives is `pending`, with its committed lengths. One whose owner is
    gone is `partial` / `supervisor-lost`, its process `unknown` / `status-lost`; digest, lines and previews are for
    `recover` to make. One that must not be opened is `unavailable` / `unsafe-directory`. An empty list also where there
    never was a capture.

    Raises:
        StorageError: the directory is missing, unsafe or broken, or a call did not return in time.
    """
    path = conversation_path(directory)
    async with visiting(Files(), path) as visit:
        if visit is None:
            return []
        found = await visit.run("listing the captures", partial(find_captures, visit.files, visit.rooms))
    return [bound(capture.receipt, path) for capture in found]


async def recover(directory: str | os.PathLike[str]) -> list[Receipt]:
    """Publish a receipt for each capture that a dead owner left without one; return these receipts, oldest first.

    What it kept stays readable to its committed length, and its files get their final names. It is `partial`, whatever
    it holds [D6]. Captures of live owners, or of owners of whom nobody can know, are left alone. It may be killed at
    any moment and called again, by any number of processes at once: they agree, and a second call finds nothing to do.

    Cancellation: the capture under way may be finished all the same.

    Raises:
        StorageError: the directory cannot be used, or a leftover could not be recovered; all others were.
    """
    return await recover_with(Files(), directory)


async def recover_with(files: Files, directory: str | os.PathLike[str]) -> list[Receipt]:
    """Recover by these system calls: the seam at which tests kill and fail it."""
    path = conversation_path(directory)
    receipts: list[Receipt] = []
    fault: StorageError | None = None
    async with visiting(files, path) as visit:
        if visit is None:
            return []
        await visit.run("finishing removals", partial(sweep, files, visit.rooms))
        found = await visit.run("looking for leftovers", partial(find_captures, files, visit.rooms))
        for capture in found:
            if not capture.recoverable:
                continue
            step = partial(recover_capture, files, visit.rooms, visit.barrier, capture.capture_id)
            try:
                receipt = await visit.run(f"recovering {capture.capture_id}", step)
            except StorageError as error:
                fault = fault or error
                continue
            if receipt is not None and capture.state == "left":
                receipts.append(bound(receipt, path))
    if fault is not None:
        raise fault
    return receipts


async def remove_captures(directory: str | os.PathLike[str], capture_ids: Iterable[str]) -> int:
    """Remove captures with all their files; return how many bytes of retained text this has freed.

    Nothing else ever deletes a capture [D1]. The bytes are free at once for all who share the allowance. If it is
    killed, each capture is either still listed or wholly gone; what is left of its files is removed by the next call,
    or by `recover`. Two calls at once may name the same capture.

    Cancellation: the capture under way may be removed all the same.

    Raises:
        ValueError: an id that cannot be one; no file was touched.
        UnknownCapture, LiveCapture: of one of them, before any is removed. One that comes alive meanwhile cannot be.
        StorageError: the directory cannot be used, or a capture could not be removed.
    """
    return await remove_with(Files(), directory, tuple(dict.fromkeys(capture_ids)))


async def remove_with(files: Files, directory: str | os.PathLike[str], capture_ids: Sequence[str]) -> int:
    """Remove by these system calls: the seam at which tests kill and fail it."""
    if not all(map(is_capture_id, capture_ids)):
        raise ValueError("not a capture id")
    freed = 0
    async with visiting(files, conversation_path(directory)) as visit:
        if visit is None:
            if capture_ids:
                raise UnknownCapture(f"this conversation has no capture {capture_ids[0]}")
            return 0
        freed += await visit.run("finishing removals", partial(sweep, files, visit.rooms))
        await visit.run("checking the captures", partial(_check_all, visit, capture_ids))
        for capture_id in capture_ids:
            step = partial(remove_capture, files, visit.rooms, capture_id)
            gone = await visit.run(f"removing {capture_id}", step)
            freed += gone or 0
    return freed


def bound(receipt: Receipt, directory: Path) -> Receipt:
    """Return the receipt, with the route by which it reads its texts if they are in files of `directory` [E6]."""
    if all(facts is None or facts.access != "local" for facts in receipt.streams.values()):
        return receipt
    capture_id = receipt.capture_id

    async def read(stream: StreamName) -> str:
        parts: list[str] = []
        cursor: Cursor | None = None
        while True:
            page = await read_capture(directory, capture_id, stream, cursor=cursor, max_bytes=PAGE_BYTES)
            parts.append(page.text)
            if page.eof or not page.text:
                return "".join(parts)
            cursor = page.cursor

    return receipt.bind(read)


def _check_all(visit: Visit, capture_ids: Sequence[str]) -> None:
    for capture_id in capture_ids:
        if not check_removable(visit.files, visit.rooms, capture_id):
            raise UnknownCapture(f"this conversation has no capture {capture_id}")
