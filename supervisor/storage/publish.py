"""How what a capture holds becomes evidence, in this order [D3, D4]; dropping any step was caught by a crash model.

1. `settle_stream`: the data of each stream is synced on the descriptor that wrote it, which is then closed;
2. `name_streams`: `.live` becomes `.log`, and the capture's directory is synced;
3. `commit_receipt`: the receipt's bytes go into its reserved file, are synced, and it gets its name without clobbering;
4. `Barrier.sync`: the capture's directory, `captures/` and what is above it. Only now may a completion be offered.

A sync that failed is not tried again: a second fsync can report success with the data lost (facts 3). All functions
block and run on a writer's thread; between two steps they look whether anybody still waits for them, so that one which
hung past its deadline changes no name after the receipt was given out from memory [D8].
"""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from .directory import sync_directory
from .faults import text_of, write_reason
from .files import Files, rename_noreplace, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..sansio.words import CaptureReason
    from .descriptor import Descriptor
    from .directory import Rooms
    from .spool import Spool

LIVE: Final = ".live"
FINAL: Final = ".log"
RAW: Final = ".raw"
"""The unsanitised copy of `stdout` is a stream of its own, `stdout.raw`, which is its final name too: what looks for
`*.log` must not take it for text that was sanitised [B8]."""
LAUNCH: Final = "launch.json"
RECEIPT: Final = "receipt.json"
RESERVED: Final = ".receipt.reserved"
"""The receipt's file until it is published: made, with its space, before the command is started."""
NO_BARRIER: Final = "no-directory-barrier"
"""The limitation that is named where a directory cannot be synced."""


def final_name(stream: str) -> str:
    """Return the name of a stream's file once it is settled."""
    return stream if stream.endswith(RAW) else stream + FINAL


Place = Literal["here", "elsewhere", "gone"]
"""Where something is that we hold open: where its path leads, under another path, or under no name at all [D1, E7]."""
_warned: Final[set[tuple[int, int]]] = set()


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong with one stream or one step: a word of contract A3, and a text that names the step."""

    reason: CaptureReason
    error: str


@dataclass(frozen=True, slots=True)
class SealedStream:
    """One stream after the first half of publication."""

    name: str
    """The file's name in the capture's directory: final, or still the live one where that failed."""
    size: int | None
    """Its length, which is what the kernel took; None where a call is still out and nobody knows [D8]."""
    digest: str | None
    """Hexadecimal, over those bytes; None where none was wanted or a call is still out."""
    fault: Fault | None
    """What keeps it from ever being `complete`."""
    place: Place = "here"


@dataclass(frozen=True, slots=True)
class Sealed:
    """All streams of a capture after the first half of publication. They do not change any more."""

    streams: Mapping[str, SealedStream]
    barrier: bool
    """Whether all data and names are on the device; False with durability `none`."""
    directories: bool | None
    """Whether directories were synced too: False where the file system cannot, None where it was not tried."""
    error: str | None
    """The first thing that went wrong, of a stream or of the directory."""


@dataclass(frozen=True, slots=True)
class PublishOutcome:
    """What became of the receipt."""

    published: bool
    """Whether `receipt.json` has its name."""
    durable: bool
    """Whether that is on the device; False with durability `none`."""
    directories: bool | None
    """As in `Sealed`."""
    error: str | None
    place: Place = "here"
    """Of the capture's directory, if the receipt has no name."""


class Patience:
    """Whether anybody still waits for a call; shared by the loop, which gives up, and a writer's thread, which asks."""

    __slots__ = ("given_up",)

    def __init__(self) -> None:
        self.given_up = False

    def check(self) -> None:
        """Raise OSError (ECANCELED) once the call was given up."""
        if self.given_up:
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))


def fault_of(step: str, error: OSError) -> Fault:
    """Return the fault of one step."""
    return Fault(write_reason(error.errno), f"{step}: {text_of(error)}")


def settle_stream(files: Files, spool: Spool, *, durable: bool) -> Fault | None:
    """Sync and close one stream's file; return the first thing that went wrong. It is closed in any case."""
    name = spool.path.name
    fault: Fault | None = None
    try:
        with spool.descriptor.borrow() as number:
            status = files.status(number)
            spool.identity = (status.st_dev, status.st_ino)  # also of a file whose sync fails
            if durable:
                files.sync_file(number)
        if status.st_size != spool.size or status.st_nlink != 1:
            fault = Fault("io-error", f"checking {name}: it was removed, linked or changed by somebody else")
    except OSError as error:
        fault = fault_of(f"syncing {name}", error)
    try:
        spool.descriptor.close()
    except OSError as error:  # EIO or EDQUOT of an earlier write (close(2))
        fault = fault or fault_of(f"closing {name}", error)
    return fault


def check_place(files: Files, name: str, spool: Spool, *, parent: int) -> None:
    """Return if `name` leads to the file that the spool wrote. Raises: OSError (ESTALE) if it leads to another one."""
    status = files.status_at(name, parent=parent)
    if spool.identity is not None and (status.st_dev, status.st_ino) != spool.identity:
        raise OSError(errno.ESTALE, "another file is in its place")


@dataclass(frozen=True, slots=True)
class Named:
    """The outcome of `name_streams`."""

    faults: Mapping[str, Fault]
    """By stream: what kept it from getting its name."""
    directory_fault: Fault | None
    unsupported: tuple[tuple[int, int], ...]
    """The directory, if it has no barrier."""
    names: frozenset[str]
    """The streams that have their final name."""
    places: Mapping[str, Place]
    """By stream, where that was looked for."""


def stream_place(files: Files, name: str, spool: Spool, *, parent: int) -> Place:
    """Return where a settled stream's file is: its directories may have been moved or removed since [D1].

    What cannot be looked at counts as here: nobody saw it elsewhere.
    """
    path = str(spool.path.with_name(name))
    if spool.identity is None:
        return "here"
    try:
        if _identity_of(files, path, parent=parent) == spool.identity:  # an absolute path has no use for the parent
            return "here"
        return "elsewhere" if _identity_of(files, name, parent=parent) == spool.identity else "gone"
    except OSError:
        return "here"


def directory_place(files: Files, directory: Descriptor, path: Path) -> Place:
    """Return where a capture's directory is. Raises: OSError."""
    with directory.borrow() as number:
        status = files.status(number)
        if _identity_of(files, str(path), parent=number) == (status.st_dev, status.st_ino):
            return "here"
    return "elsewhere" if status.st_nlink else "gone"


def _identity_of(files: Files, name: str, *, parent: int) -> tuple[int, int] | None:
    try:
        status = files.status_at(name, parent=parent)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def name_streams(
    files: Files, directory: Descriptor, spools: Mapping[str, Spool], patience: Patience, *, durable: bool
) -> Named:
    """Give settled streams their final names, and sync the directory that holds them.

    A file that somebody put in the place of ours keeps its name: it is no evidence.
    """
    faults: dict[str, Fault] = {}
    names: set[str] = set()
    places: dict[str, Place] = {}
    unsupported = None
    try:
        with directory.borrow() as number:
            for stream, spool in spools.items():
                patience.check()
                try:
                    check_place(files, stream + LIVE, spool, parent=number)
                    rename_noreplace(files, stream + LIVE, final_name(stream), parent=number, durable=durable)
                    names.add(stream)
                except OSError as error:
                    faults[stream] = fault_of(f"naming {final_name(stream)}", error)
            patience.check()
            if durable:
                unsupported = sync_directory(files, number)
            for stream, spool in spools.items():
                name = final_name(stream) if stream in names else stream + LIVE
                places[stream] = stream_place(files, name, spool, parent=number)
    except OSError as error:
        return Named(faults, fault_of("syncing the capture's directory", error), (), frozenset(names), places)
    return Named(faults, None, () if unsupported is None else (unsupported,), frozenset(names), places)


def commit_receipt(
    files: Files, directory: Descriptor, reserved: Descriptor, receipt: bytes, patience: Patience, *, durable: bool
) -> None:
    """Write the receipt into its reserved file and give it its name: the moment of publication.

    Raises:
        OSError: it has no name, and never gets one.
    """
    with reserved.borrow() as number:
        write_all(files, number, receipt)
        files.truncate(number, len(receipt))
        if durable:
            files.sync_file(number)
    reserved.close()
    with directory.borrow() as number:
        patience.check()
        rename_noreplace(files, RESERVED, RECEIPT, parent=number, durable=durable)


class Barrier:
    """Syncs the directories of a conversation from the inside out. One per conversation.

    A directory that captures share and that failed to be synced has failed for good: the next sync of it can report
    success with names lost. So nothing below it is acknowledged any more until the conversation is opened anew [D4].
    """

    def __init__(self, files: Files, rooms: Rooms) -> None:
        self._files: Final = files
        self._rooms: Final = rooms
        self._ancestors: tuple[Descriptor, ...] = (rooms.tool_outputs, rooms.conversation)
        self._failed: int | None = None

    def sync(self, capture: Descriptor) -> tuple[tuple[int, int], ...]:
        """Return when all names down to the capture's are on the device, and which directories have no barrier.

        What is above `captures/` is synced once, whoever made it: another process may have made it and died before
        its own barrier.

        Raises:
            OSError: a directory could not be synced, or one that captures share could not at an earlier call.
        """
        found = [self._sync(capture)]
        if self._failed is not None:
            raise OSError(self._failed, os.strerror(self._failed))
        try:
            found += [self._sync(room) for room in (self._rooms.captures, *self._ancestors)]
        except OSError as error:
            self._failed = error.errno or errno.EIO
            raise
        self._ancestors = ()
        return tuple(key for key in found if key is not None)

    def _sync(self, room: Descriptor) -> tuple[int, int] | None:
        with room.borrow() as number:
            return sync_directory(self._files, number)


def warn_once(directories: Iterable[tuple[int, int]]) -> None:
    """Warn about each directory without a barrier, once in the life of this process [D4]. Called on the loop."""
    for key in directories:
        if key not in _warned:
            _warned.add(key)
            # `-W error` turns a warning into an exception, which must not end a capture: the receipt names it anyway.
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(
                    f"the file system of device {key[0]} cannot sync directories: "
                    "a crash of the machine may undo published names",
                    RuntimeWarning,
                    stacklevel=2,
                )
