"""Leftovers: captures without a receipt whose owner is gone [D6].

`find_captures` looks and writes nothing. `recover_capture` gives a leftover the receipt that its supervisor could not
write: `partial`, whatever it holds, never more. Its steps are those of publication (`publish.py`), each of which may
already have happened, or half happened, when it begins: so it may be killed anywhere and called again, and ends at the
same files. A lock on the capture's directory lets two of them take turns; where there are no locks the receipt's name,
which is never replaced, decides. All functions block and run on a thread.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from ..limits import Limits
from ..sansio.cursor import is_capture_id
from ..sansio.decoder import Decoder
from ..sansio.leftover import (
    UNVERIFIED,
    LaunchRecord,
    Site,
    Streams,
    live_receipt,
    lost_receipt,
    placed,
    unusable_receipt,
)
from ..sansio.preview import Preview, share
from ..sansio.receipt import Durability, PreviewFacts
from ..sansio.routes import reached
from .contents import names_by_stream
from .creation import HIDDEN_LAUNCH
from .descriptor import Descriptor
from .directory import (
    CAPTURES,
    TOOL_OUTPUTS,
    are_one,
    check_directory,
    close_quietly,
    create_private_file,
    sync_directory,
)
from .evidence import (
    RAW_COPIES,
    STREAMS,
    DamagedReceipt,
    asked_owners,
    open_found,
    open_stream,
    opened_capture,
    pieces,
    read_launch,
    read_receipt,
)
from .faults import UNSAFE, UnsafeDirectoryError, text_of
from .files import Files, rename_noreplace
from .owners import LOCK_UNSUPPORTED
from .publish import LAUNCH, LIVE, RECEIPT, RESERVED, Patience, commit_receipt, final_name
from .sizing import same_boot, sizes_of

if TYPE_CHECKING:
    from pathlib import Path

    from ..sansio.receipt import Receipt
    from ..sansio.words import StreamName
    from .directory import Rooms
    from .evidence import Owners
    from .publish import Barrier

TWINS: Final = (
    (HIDDEN_LAUNCH, LAUNCH),
    *((name + LIVE, final_name(name)) for name in (*STREAMS, *RAW_COPIES)),
    (RESERVED, RECEIPT),
)
"""The names before and after each no-clobber rename; a crash can leave both on one file [D2]."""
UNREADABLE: Final = ".receipt.unreadable"
"""What a torn receipt is renamed to, with random digits: it is nobody's evidence, and nothing is deleted [D1]."""
OTHER_VERSION: Final = "receipt-of-another-version"
OWNER_UNKNOWN: Final = "owner-liveness-unknown"


@dataclass(frozen=True, slots=True)
class Found:
    """A capture as it lies there."""

    capture_id: str
    state: Literal["published", "live", "left", "unusable"]
    receipt: Receipt
    recoverable: bool = False
    """Its owner is known to be gone, and something is left to be finished."""


def site_of(conversation: Path, capture_id: str) -> Site:
    """Return where a capture lies."""
    return Site(str(conversation), f"{TOOL_OUTPUTS}/{CAPTURES}/{capture_id}", capture_id)


def find_captures(files: Files, rooms: Rooms) -> list[Found]:
    """Return all captures, sorted by id. What is removed meanwhile is left out. Raises: OSError."""
    with rooms.captures.borrow() as captures, rooms.tool_outputs.borrow() as tool_outputs:
        names = sorted(filter(is_capture_id, files.names(captures)))
        with asked_owners(files, tool_outputs) as owners:
            found = [_look_at(files, captures, owners, site_of(rooms.path, name)) for name in names]
    return [capture for capture in found if capture is not None]


def find_capture(files: Files, rooms: Rooms, capture_id: str) -> Found | None:
    """Return what can be said of one capture; None if there is none. Raises: OSError."""
    with (
        rooms.captures.borrow() as captures,
        rooms.tool_outputs.borrow() as tool_outputs,
        asked_owners(files, tool_outputs) as owners,
    ):
        return _look_at(files, captures, owners, site_of(rooms.path, capture_id))


def _look_at(files: Files, captures: int, owners: Owners, site: Site) -> Found | None:
    try:
        with opened_capture(files, captures, site.capture_id) as capture:
            return _look_inside(files, capture, owners, site)
    except FileNotFoundError:
        return None
    except OSError as error:
        if not isinstance(error, UnsafeDirectoryError) and error.errno not in UNSAFE:
            raise
        return Found(site.capture_id, "unusable", unusable_receipt(site, text_of(error)))


def _look_inside(files: Files, capture: int, owners: Owners, site: Site) -> Found:
    receipt, damage = _receipt(files, capture)
    launch = read_launch(files, capture)
    lives = owners.lives(None if launch is None else launch.owner)
    if receipt is None and damage is None:
        if lives:
            return Found(site.capture_id, "live", live_receipt(site, launch, sizes_of(files, capture, launch, None)))
        # Its owner may have published it, and ended, between the two looks.
        receipt, damage = _receipt(files, capture)
    if receipt is not None:
        unfinished = lives is False and any(_is_half_done(files, capture, *names) for names in TWINS)
        there = reached(receipt, site, names_by_stream(files, capture, receipt))
        return Found(site.capture_id, "published", there, unfinished)
    verified = same_boot(launch)
    limitations = (
        *((OWNER_UNKNOWN,) if lives is None else ()),
        *((OTHER_VERSION,) if damage is not None and not damage.torn else ()),
        *(() if verified else (UNVERIFIED,)),
    )
    sizes = sizes_of(files, capture, launch, verified)
    untouchable = lives is not False or (damage is not None and not damage.torn)
    return Found(
        site.capture_id, "left", lost_receipt(site, launch, sizes, limitations=limitations), recoverable=not untouchable
    )


def _receipt(files: Files, capture: int) -> tuple[Receipt | None, DamagedReceipt | None]:
    try:
        return read_receipt(files, capture), None
    except DamagedReceipt as damage:
        return None, damage


def recover_capture(files: Files, rooms: Rooms, barrier: Barrier, capture_id: str) -> Receipt | None:
    """Publish the receipt of a leftover, or return the one that another recoverer has published meanwhile.

    Precondition: its owner is dead. None: it was removed, or its receipt is of another version and not touched.

    Raises:
        OSError: nothing was published, or its name may not be on the device. It may be tried again.
    """
    with rooms.captures.borrow() as captures:
        try:
            directory = Descriptor(files, files.open_directory(capture_id, parent=captures))
        except FileNotFoundError:
            return None
        try:
            with directory.borrow() as number:
                check_directory(files, number, private=True)
                lock_directory(files, number)  # let go with the descriptor
                if not is_still_there(files, number, capture_id, parent=captures):
                    return None
                finish_names(files, number)
                receipt, damage = _receipt(files, number)
                if damage is not None and not damage.torn:
                    return None
                if damage is not None:
                    aside = f"{UNREADABLE}-{secrets.token_hex(8)}"
                    rename_noreplace(files, RECEIPT, aside, parent=number, durable=True)
            site = site_of(rooms.path, capture_id)
            return placed(receipt, site) if receipt is not None else _publish(files, barrier, directory, site)
        finally:
            directory.discard()


def lock_directory(files: Files, number: int) -> None:
    """Return when this descriptor holds the capture directory's lock, or where there are none."""
    try:
        files.lock(number, exclusive=True, wait=True)
    except OSError as error:
        # EBADF: a network file system wants a descriptor open for writing, which a directory's never is (flock(2)).
        if error.errno not in LOCK_UNSUPPORTED | {errno.EBADF}:
            raise


def is_still_there(files: Files, number: int, name: str, *, parent: int) -> bool:
    """Return whether the open directory still has its name: it may have been removed while its lock was awaited."""
    try:
        return os.path.samestat(files.status_at(name, parent=parent), files.status(number))
    except FileNotFoundError:
        return False


def finish_names(files: Files, capture: int) -> None:
    """Finish each no-clobber rename that was interrupted between its link and its unlink. Raises: OSError."""
    for before, after in TWINS:
        if _is_half_done(files, capture, before, after):
            sync_directory(files, capture)  # the link may be in memory only, and this is the other way to the file
            files.unlink(before, parent=capture)


def _is_half_done(files: Files, capture: int, before: str, after: str) -> bool:
    try:
        number = files.open_existing(before, parent=capture)
    except OSError:  # not there, or not a file of ours
        return False
    try:
        return are_one(files, number, after, parent=capture)
    finally:
        close_quietly(files, number)


def _publish(files: Files, barrier: Barrier, directory: Descriptor, site: Site) -> Receipt:
    with directory.borrow() as capture:
        launch = read_launch(files, capture)
        error = _settle_streams(files, capture)
        verified = same_boot(launch) if error is None else None
        directories: bool | None = None
        if error is None:
            try:
                directories = sync_directory(files, capture) is None
            except OSError as fault:
                error = f"syncing the capture's directory: {text_of(fault)}"
        streams = _measured(files, capture, launch, verified)
    receipt = lost_receipt(
        site,
        launch,
        streams,
        durability=Durability(barrier=error is None, directories=directories, error=error),
        limitations=() if verified else (UNVERIFIED,),
    ).fitted()
    with directory.borrow() as capture:
        reserved = Descriptor(files, _reserved(files, capture))
    try:
        commit_receipt(files, directory, reserved, receipt.to_json(), Patience(), durable=True)
    except FileExistsError:  # a recoverer that no lock could hold back was faster
        with directory.borrow() as capture:
            return placed(read_receipt(files, capture) or receipt, site)
    finally:
        reserved.discard()
    barrier.sync(directory)
    return receipt


def _settle_streams(files: Files, capture: int) -> str | None:
    """Sync each stream and give it its final name; return the text's first error, after which nothing is verified."""
    error: str | None = None
    for stream in (*STREAMS, *RAW_COPIES):
        try:
            number, name = open_stream(files, stream, parent=capture)
        except (FileNotFoundError, UnsafeDirectoryError):  # as the receipt will say
            continue
        try:
            files.sync_file(number)
        except OSError as fault:
            if stream in STREAMS:
                error = error or f"syncing {name}: {text_of(fault)}"
        finally:
            close_quietly(files, number)
        if name == stream + LIVE:
            rename_noreplace(files, name, final_name(stream), parent=capture, durable=True)
    return error


def _measured(files: Files, capture: int, launch: LaunchRecord | None, verified: bool | None) -> Streams:  # noqa: FBT001
    """Read each stream once, in bounded memory: digest, lines, and the preview that its supervisor did not leave."""
    limits = Limits()
    previews: dict[StreamName, Preview] = {}
    found = sizes_of(files, capture, launch, verified)
    digests: dict[StreamName, str] = {}
    for stream, left in found.items():
        if left is None:
            continue
        chars = limits.preview_stdout_chars if stream == "stdout" else limits.preview_stderr_chars
        previews[stream] = Preview(chars, limits.preview_bytes)
        digests[stream] = _measure(files, capture, stream, previews[stream])
    shown: dict[StreamName, PreviewFacts] = {}
    if (stdout := previews.get("stdout")) is not None:
        texts = share(stdout, previews.get("stderr"), limits, failed=True)
        for name, text in zip(STREAMS, texts, strict=True):
            if text is not None:
                shown[name] = PreviewFacts.model_validate(text)
    measured: Streams = {}
    for stream, left in found.items():
        measured[stream] = left and replace(
            left,
            lines=previews[stream].lines,
            ends_with_newline=previews[stream].ends_with_newline,
            sha256=digests[stream],
            preview=shown.get(stream),
        )
    return measured


def _measure(files: Files, capture: int, stream: StreamName, preview: Preview) -> str:
    number, _ = open_stream(files, stream, parent=capture)
    digest, decoder = hashlib.sha256(), Decoder()
    try:
        for piece in pieces(files, number):
            digest.update(piece)
            # Whole characters were written; after a crash of the machine anything may be there.
            preview.feed(decoder.feed(piece))
    finally:
        close_quietly(files, number)
    preview.feed(decoder.finish())
    return digest.hexdigest()


def _reserved(files: Files, capture: int) -> int:
    """Return the receipt's file: the reserved one, so that a full disk is no obstacle, or a new one."""
    try:
        return open_found(files, RESERVED, parent=capture, flags=os.O_WRONLY)
    except FileNotFoundError:
        return create_private_file(files, RESERVED, parent=capture, flags=os.O_WRONLY)
