"""What the commands that look at captures share: their directory, the ids in it, one answer, one line per mistake."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ..errors import StorageError, SupervisorError, UnknownCapture
from ..recovering import list_captures
from ..request import conversation_path
from ..sansio.cursor import is_capture_id
from ..storage import Figures, Files, Visit, look_at_allowance, visiting
from ..storage.recovery import find_capture
from .codes import OWN_FAULT
from .faults import Fault
from .loops import loop_factory
from .messages import complain
from .place import conversation_directory
from .screen import write_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Sequence
    from pathlib import Path

    from ..sansio.receipt import Receipt

T = TypeVar("T")

CANDIDATES: Final = 5
"""How many ids a complaint lists."""


def directory_of(given: str | None) -> Path:
    """Return the directory that is meant by `--dir`. Raises: click.ClickException if it names none."""
    if given == "":
        raise click.UsageError("--dir needs the name of a directory", click.get_current_context(silent=True))
    directory = conversation_directory(given, os.environ)
    if directory is None:
        raise click.ClickException("there is no home directory; give --dir")
    return directory


def answer(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, run on a loop of its own.

    Raises:
        click.ClickException: for the errors of the package, as the caller's mistake, or as a `Fault` if it is none.
        click.Abort: after Ctrl-C, once `work` was cancelled.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which the runner makes a cancellation
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(work)
    except KeyboardInterrupt:
        raise click.Abort from None  # for it alone click prints an empty line, after what we said last
    except StorageError as error:
        # A directory that cannot be used is the wrong one to name; a disk that fails is nobody's mistake.
        mistaken = error.reason in {"unsafe-directory", "no-directory"}
        raise (click.ClickException if mistaken else Fault)(str(error)) from None
    except SupervisorError as error:
        raise click.ClickException(str(error)) from None
    finally:
        work.close()  # not begun, if there was no loop to be had


def put(data: bytes) -> int:
    """Write `data` to stdout and return the exit code; a reader that has seen enough is no fault."""
    try:
        write_all(1, data)
    except BrokenPipeError:
        return 0
    except OSError as error:
        complain(f"stdout takes no more: {error.strerror}")
        return OWN_FAULT
    return 0


async def unless_missing(directory: Path, work: Awaitable[list[T]]) -> list[T]:
    """Return what `work` returns, and nothing where the directory that it looks into is not there yet."""
    try:
        return await work
    except StorageError as error:
        if error.errno != errno.ENOENT or os.path.lexists(directory):  # noqa: ASYNC240 - nothing else is on this loop
            raise
        return []


async def captures_of(directory: Path) -> list[Receipt]:
    """Return the receipts of all captures, oldest first. Raises: StorageError."""
    return await unless_missing(directory, list_captures(directory))


async def listing_of(directory: Path) -> tuple[list[Receipt], Figures | None]:
    """Return all receipts, oldest first, and the allowance, None without any capture. Raises: StorageError."""

    async def look() -> list[Figures]:
        async with visiting(Files(), conversation_path(directory)) as visit:
            if visit is None:
                return []
            return [await visit.run("counting", partial(look_at_allowance, visit.files, visit.rooms))]

    receipts = await captures_of(directory)
    figures = await unless_missing(directory, look())
    return receipts, figures[0] if figures else None


async def ids_in(directory: Path) -> list[str]:
    """Return the ids of all captures, oldest first, without opening any. Raises: StorageError."""

    async def look() -> list[str]:
        async with visiting(Files(), conversation_path(directory)) as visit:
            return [] if visit is None else await visit.run("listing the captures", partial(_ids, visit))

    return await unless_missing(directory, look())


async def identified(directory: Path, given: str) -> str:
    """Return the id that `given` is, or is the beginning of.

    Raises:
        click.ClickException: there is none or more than one; the message lists some that could be meant.
        StorageError: the directory cannot be used.
    """
    return chosen(await ids_in(directory), given)


def chosen(ids: Sequence[str], given: str) -> str:
    """Return the one of `ids`, sorted, that `given` is or is the beginning of. Raises: click.ClickException."""
    # An empty one would be the beginning of all: an unset variable of a script must never remove the only capture.
    found = [capture_id for capture_id in ids if given and capture_id.startswith(given)]
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
        raise click.ClickException(f"{given!r} may be {', '.join(found[-CANDIDATES:])}{more}")
    newest = f"; the newest are {', '.join(ids[-CANDIDATES:])}" if ids else ""
    raise click.ClickException(f"there is no capture {given!r}{newest}")


async def receipt_of(directory: Path, capture_id: str) -> Receipt:
    """Return the receipt of one capture as it stands. Raises: UnknownCapture, StorageError."""
    async with visiting(Files(), conversation_path(directory)) as visit:
        found = None if visit is None else await visit.run("reading the receipt", partial(_receipt, visit, capture_id))
    if found is None:
        raise UnknownCapture(f"there is no capture {capture_id} any more")
    return found


def _ids(visit: Visit) -> list[str]:
    with visit.rooms.captures.borrow() as captures:
        return sorted(filter(is_capture_id, visit.files.names(captures)))


def _receipt(visit: Visit, capture_id: str) -> Receipt | None:
    found = find_capture(visit.files, visit.rooms, capture_id)
    return None if found is None else found.receipt
