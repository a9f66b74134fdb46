"""The files of captures as they are found: opened with every suspicion of contract D2, never changed here.

All functions block and run on a thread.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, get_args

from pydantic_core import from_json

from ..sansio.leftover import LaunchRecord
from ..sansio.receipt import Receipt
from ..sansio.words import StreamName
from .creation import HIDDEN_LAUNCH
from .descriptor import Descriptor
from .directory import CAPTURES, STATE, TOOL_OUTPUTS, Rooms, are_one, check_directory, check_file, close_quietly
from .faults import UnsafeDirectoryError
from .owners import SUFFIX, is_live, start_time, this_process
from .publish import LAUNCH, LIVE, RAW, RECEIPT, RESERVED, final_name

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from .files import Files

RECORD_BYTES: Final = 1024 * 1024
"""The most that is read of a record: a receipt has at most 64 KiB, a launch record little more."""
READ_BYTES: Final = 256 * 1024
"""The most that one read(2) asks for."""
STREAMS: Final[tuple[StreamName, ...]] = get_args(StreamName)
RAW_COPIES: Final = tuple(stream + RAW for stream in STREAMS)


def find_rooms(files: Files, directory: Path) -> Rooms | None:
    """Open the directories of a conversation, none of which is made; None if it never had a capture.

    Raises:
        OSError: as `open_rooms`; ENOENT if there is no such directory at all.
    """
    path = directory.absolute()
    opened = [files.open_directory(str(path))]
    try:
        check_directory(files, opened[0], private=False)
        for name, private in ((TOOL_OUTPUTS, False), (CAPTURES, True)):
            try:
                opened.append(files.open_directory(name, parent=opened[-1]))
            except FileNotFoundError:
                for number in opened:
                    close_quietly(files, number)
                return None
            check_directory(files, opened[-1], private=private)
        opened.append(_state(files, tool_outputs=opened[1]))
    except OSError:
        for number in opened:
            close_quietly(files, number)
        raise
    conversation, tool_outputs, captures, state = (Descriptor(files, number) for number in opened)
    return Rooms(path, conversation, tool_outputs, captures, state, ())


def _state(files: Files, *, tool_outputs: int) -> int:
    try:
        state = files.open_directory(STATE, parent=tool_outputs)
    except FileNotFoundError:
        # A copy without owners. `captures/` stands in: no name in it can be an owner's.
        return files.open_directory(CAPTURES, parent=tool_outputs)
    try:
        check_directory(files, state, private=True)
    except OSError:
        close_quietly(files, state)
        raise
    return state


@contextmanager
def opened_capture(files: Files, captures: int, capture_id: str) -> Generator[int]:
    """Lend the directory of a capture. Raises: OSError, in particular UnsafeDirectoryError and ENOENT."""
    number = files.open_directory(capture_id, parent=captures)
    try:
        check_directory(files, number, private=True)
        yield number
    finally:
        close_quietly(files, number)


def open_found(files: Files, name: str, *, parent: int, twin: str | None = None, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file that is ours alone.

    It may have the name `twin` too, and no other: a no-clobber rename by link and unlink is half done then [D2].

    Raises:
        OSError: in particular UnsafeDirectoryError.
    """
    number = files.open_existing(name, parent=parent, flags=flags)
    try:
        try:
            check_file(files, number)
        except UnsafeDirectoryError:
            if twin is None or not are_one(files, number, twin, parent=parent):
                check_file(files, number)  # the renaming may have been finished between the two looks
    except BaseException:
        close_quietly(files, number)
        raise
    return number


def pieces(files: Files, number: int, most: int | None = None, *, offset: int = 0) -> Generator[bytes]:
    """Yield a file's bytes from `offset` on; at most `most` of them."""
    end = None if most is None else offset + most
    while end is None or offset < end:
        piece = files.read(number, READ_BYTES if end is None else min(READ_BYTES, end - offset), offset=offset)
        if not piece:
            return
        offset += len(piece)
        yield piece


def read_record(files: Files, name: str, twin: str | None, *, parent: int) -> bytes | None:
    """Return a record's bytes, None if there is none. Raises: OSError, also for one that is longer than any of ours."""
    try:
        number = open_found(files, name, parent=parent, twin=twin)
    except FileNotFoundError:
        return None
    try:
        data = b"".join(pieces(files, number, RECORD_BYTES + 1))
    finally:
        close_quietly(files, number)
    if len(data) > RECORD_BYTES:
        raise OverlongRecordError(None, f"{name} is longer than any that we write")
    return data


class OverlongRecordError(UnsafeDirectoryError):
    """A record that is longer than any of ours."""


class DamagedReceipt(ValueError):
    """A receipt that cannot be read. `torn`: it is no JSON, as a crash of the machine without a barrier leaves it."""

    def __init__(self, *, torn: bool) -> None:
        super().__init__("the receipt is damaged" if torn else "the receipt is of another version")
        self.torn: Final = torn


def read_receipt(files: Files, capture: int) -> Receipt | None:
    """Return the published receipt, None if there is none. Raises: OSError, DamagedReceipt."""
    data = read_record(files, RECEIPT, RESERVED, parent=capture)
    if data is None:
        return None
    try:
        return Receipt.parse(data)
    except ValueError:
        try:
            from_json(data)
        except ValueError:
            raise DamagedReceipt(torn=True) from None
        raise DamagedReceipt(torn=False) from None


def read_launch(files: Files, capture: int) -> LaunchRecord | None:
    """Return the launch record, None if there is none that can be read. Raises: OSError."""
    data = read_record(files, LAUNCH, HIDDEN_LAUNCH, parent=capture)
    return None if data is None else LaunchRecord.parse(data)


def open_stream(files: Files, stream: str, *, parent: int) -> tuple[int, str]:
    """Return a descriptor of a stream's file and its name, final if it has one.

    Raises:
        OSError: ENOENT if it has neither name; UnsafeDirectoryError.
    """
    final, live = final_name(stream), stream + LIVE
    for name, twin in ((final, live), (live, final)):
        try:
            return open_found(files, name, parent=parent, twin=twin), name
        except FileNotFoundError:
            continue
    return open_found(files, final, parent=parent, twin=live), final  # it got its name between the two looks


@contextmanager
def asked_owners(files: Files, tool_outputs: int) -> Generator[Owners]:
    """Lend what tells which owners live. Enter it after you have seen the captures: an owner is there before its own.

    Their directory is opened anew, because it may not have been there when the visit to the conversation began.

    Raises:
        OSError: as `open_rooms`.
    """
    state = _state(files, tool_outputs=tool_outputs)
    try:
        yield Owners(files, state)
    finally:
        close_quietly(files, state)


class Owners:
    """Which owners live, asked once each: who is dead stays dead."""

    def __init__(self, files: Files, state: int) -> None:
        self._files: Final = files
        self._state: Final = state
        self._known: dict[str, bool | None] = {}
        self._any: bool | None = None

    def lives(self, owner: Mapping[str, object] | None) -> bool | None:
        """Return whether the owner of a capture or claim lives; None where nobody can know.

        Without a usable record, any live owner of the conversation may be the one: the capture may be just being made.
        """
        name = None if owner is None else owner.get("name")
        if owner is None or not isinstance(name, str) or "/" in name or not name.endswith(SUFFIX):
            return self._any_lives()
        if name not in self._known:
            live = is_live(self._state, name, self._files)
            self._known[name] = _runs(owner) if live is None else live
        return self._known[name]

    def _any_lives(self) -> bool:
        if self._any is None:
            names = [name for name in self._files.names(self._state) if name.endswith(SUFFIX)]
            # An owner that cannot be asked counts as alive here: there is no identity to ask about instead.
            self._any = any(is_live(self._state, name, self._files) is not False for name in names)
        return self._any


def _runs(owner: Mapping[str, object]) -> bool | None:
    """Return whether the process that a record names runs: for a lock that cannot be asked [D6]."""
    here = this_process()
    if here["boot_id"] is None or any(owner.get(name) != here[name] for name in ("boot_id", "pid_namespace")):
        return None  # another machine's, on a shared file system, or from before a reboot
    pid = owner.get("pid")
    started = start_time(pid) if isinstance(pid, int) else None
    return started is not None and started == owner.get("start_time")
