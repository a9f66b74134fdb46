"""A capture that is copied into a conversation [E10].

Its files are made under a hidden name, which no reader takes for a capture's. It gets the capture's own when all of
them, the receipt too, are on the device. So a copy that is killed, or that finds the disk full, leaves nothing that
could be taken for evidence. While it is made its directory is locked: one that is not is what a kill has left, and the
next copy, removal or recovery sweeps it away. Until then it counts against the allowance.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ..errors import StorageError
from .descriptor import Descriptor
from .directory import check_directory, close_quietly, create_private_directory, create_private_file, sync_directory
from .faults import SpoolFault
from .files import rename_directory, write_all
from .owners import LOCK_UNSUPPORTED
from .publish import RECEIPT, Patience, final_name
from .recovery import is_still_there

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .allowance import Reservation
    from .capture import Site
    from .directory import Rooms
    from .files import Files
    from .outgoing import Text

T = TypeVar("T")

INCOMING: Final = ".incoming-"
STEP_BYTES: Final = 8 * 1024 * 1024
"""How much is copied in one hop to a thread, which has a deadline: a tenth of a second of a slow disk's."""
READ_BYTES: Final = 256 * 1024
ATTEMPTS: Final = 3
"""How often the directory is made: between that and its lock a sweeper may take it for left behind, once each."""
NO_LOCK: Final = LOCK_UNSUPPORTED | {errno.EBADF}
"""What a directory answers on a file system that cannot lock it (see `recovery.lock_directory`)."""


class Incoming:
    """A copy without a name yet. Made by `Conversation.receive`; ends with `publish` or `discard`; used by one task."""

    def __init__(self, site: Site, capture_id: str, hidden: str, number: int, reservation: Reservation) -> None:
        self._site: Final = site
        self._capture_id: Final = capture_id
        self._hidden: Final = hidden
        self._directory: Final = Descriptor(site.files, number)
        self._reservation: Final = reservation
        self._patience: Final = Patience()

    async def add(self, stream: str, text: Text) -> str | None:
        """Return the name of the stream's copy, synced; None, and nothing of it, if the bytes are not what they were.

        Raises:
            StorageError: the copy cannot be made; `conversation-limit` if it has no room in the allowance.
        """
        await self._reserve(text.size)
        name = final_name(stream)
        target = Descriptor(self._site.files, await self._run(f"making {name}", partial(self._create, name)))
        digest = hashlib.sha256()
        try:
            offset = 0
            while offset < text.size:
                step = partial(_copy, self._site.files, text, target, offset, digest.update)
                copied = await self._run(f"copying {name}", step)
                if not copied:
                    break
                offset += copied
            whole = offset == text.size and text.digest in {None, digest.hexdigest()}
            await self._run(f"syncing {name}", partial(self._settle, name, target, keep=whole))
        finally:
            target.discard()
        return name if whole else None

    async def settle(self) -> bool:
        """Return whether the directory could be synced; False where the file system has no such barrier.

        Raises:
            StorageError: it failed.
        """
        return self._site.directories(await self._run("syncing the copy's directory", self._sync)) is True

    async def publish(self, receipt: bytes) -> None:
        """Return when the capture has its name, and all names are on the device.

        Raises:
            StorageError: it has no name, or, after the last step, one that may not be on the device. EEXIST or
                ENOTEMPTY: another capture has that name, and keeps it.
        """
        try:
            await self._run("publishing the copy", partial(self._publish, receipt))
            await self._run("syncing the directories", partial(self._site.barrier.sync, self._directory))
        finally:
            self._close()

    async def discard(self) -> None:
        """Remove what there is of it, as far as that can be done; the next sweep does the rest."""
        self._patience.given_up = True
        try:
            await self._run("discarding the copy", self._remove)
        except StorageError:
            return
        finally:
            self._close()

    async def _reserve(self, size: int) -> None:
        try:
            granted = await self._reservation.take(size)
        except SpoolFault as fault:
            raise StorageError(f"reserving space: {fault}", reason=fault.reason, errno=fault.errno) from fault
        if granted < size:
            raise StorageError("the conversation's limit leaves no room for the copy", reason="conversation-limit")

    def _create(self, name: str) -> int:
        with self._directory.borrow() as directory:
            return create_private_file(self._site.files, name, parent=directory, flags=os.O_WRONLY)

    def _settle(self, name: str, target: Descriptor, *, keep: bool) -> None:
        if not keep:
            with self._directory.borrow() as directory:
                self._site.files.unlink(name, parent=directory)
            return
        with target.borrow() as number:
            self._site.files.sync_file(number)
        target.close()

    def _sync(self) -> tuple[tuple[int, int], ...]:
        with self._directory.borrow() as directory:
            unsupported = sync_directory(self._site.files, directory)
        return () if unsupported is None else (unsupported,)

    def _publish(self, receipt: bytes) -> None:
        files = self._site.files
        with self._directory.borrow() as directory:
            number = create_private_file(files, RECEIPT, parent=directory, flags=os.O_WRONLY)
            try:
                write_all(files, number, receipt)
                files.sync_file(number)
            finally:
                files.close(number)
            sync_directory(files, directory)
        with self._site.rooms.captures.borrow() as captures:
            self._patience.check()
            rename_directory(files, self._hidden, self._capture_id, parent=captures)

    def _remove(self) -> None:
        with self._site.rooms.captures.borrow() as captures:
            remove_incoming(self._site.files, self._hidden, parent=captures)

    def _close(self) -> None:
        self._reservation.release()
        self._directory.discard()

    async def _run(self, action: str, step: Callable[[], T]) -> T:
        try:
            return await self._site.writers.run(action, step, deadline=self._site.deadline)
        except StorageError:
            self._patience.given_up = True
            raise


def begin(files: Files, rooms: Rooms) -> tuple[str, int]:
    """Make a hidden directory and return its name and its descriptor, which holds its lock. Raises: OSError."""
    with rooms.captures.borrow() as captures:
        for _ in range(ATTEMPTS):
            hidden = INCOMING + secrets.token_hex(16)
            try:
                number = create_private_directory(files, hidden, parent=captures)
            except FileNotFoundError:  # a sweeper was faster than the second of the two calls
                continue
            try:
                _lock(files, number)
                if is_still_there(files, number, hidden, parent=captures):
                    return hidden, number
            except BlockingIOError:  # a sweeper has it
                pass
            except BaseException:
                close_quietly(files, number)
                raise
            close_quietly(files, number)
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def undo_begin(files: Files, rooms: Rooms, begun: tuple[str, int]) -> None:
    """Remove a directory that was made too late for anybody to use it. Raises: OSError."""
    hidden, number = begun
    try:
        with rooms.captures.borrow() as captures:
            remove_incoming(files, hidden, parent=captures)
    finally:
        close_quietly(files, number)


def remove_incoming(files: Files, hidden: str, *, parent: int) -> int:
    """Remove the files of a copy that has no name, and its directory; return the bytes of them. Raises: OSError."""
    freed = 0
    directory = files.open_directory(hidden, parent=parent)
    try:
        for name in files.names(directory):
            freed += files.status_at(name, parent=directory).st_size if name != RECEIPT else 0
            files.unlink(name, parent=directory)
    finally:
        close_quietly(files, directory)
    files.remove_directory(hidden, parent=parent)
    return freed


def sweep_incoming(files: Files, rooms: Rooms) -> int:
    """Remove copies that nobody makes any more; return the bytes that this has freed.

    Where directories cannot be locked nobody knows which those are, and they are left.

    Raises:
        OSError: `captures/` cannot be listed, or one could not be removed.
    """
    with rooms.captures.borrow() as captures:
        names = [name for name in files.names(captures) if name.startswith(INCOMING)]
        return sum(_sweep(files, name, parent=captures) for name in names)


def _sweep(files: Files, hidden: str, *, parent: int) -> int:
    try:
        with _locked(files, hidden, parent=parent) as dead:
            return remove_incoming(files, hidden, parent=parent) if dead else 0
    except FileNotFoundError:  # it was named, or another one sweeps as well
        return 0


@contextmanager
def _locked(files: Files, hidden: str, *, parent: int) -> Generator[bool]:
    number = files.open_directory(hidden, parent=parent)
    try:
        check_directory(files, number, private=True)
        try:
            files.lock(number, exclusive=True)
        except OSError as error:
            if not isinstance(error, BlockingIOError) and error.errno not in NO_LOCK:
                raise
            yield False
            return
        yield is_still_there(files, number, hidden, parent=parent)
    finally:
        close_quietly(files, number)


def _lock(files: Files, number: int) -> None:
    try:
        files.lock(number, exclusive=True)
    except OSError as error:
        if error.errno not in NO_LOCK:
            raise


def _copy(files: Files, text: Text, target: Descriptor, offset: int, digest: Callable[[bytes], None]) -> int:
    """Copy up to `STEP_BYTES` from `offset` on and return how many there were. Raises: OSError."""
    copied = 0
    with text.file.borrow() as source, target.borrow() as number:
        while copied < STEP_BYTES:
            wanted = min(READ_BYTES, STEP_BYTES - copied, text.size - offset - copied)
            piece = files.read(source, wanted, offset=offset + copied) if wanted else b""
            if not piece:
                break
            write_all(files, number, piece)
            digest(piece)
            copied += len(piece)
    return copied
