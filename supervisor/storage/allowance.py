"""What one conversation may retain, shared by all captures of all processes that have it open [D5].

A capture reserves before its files grow, in steps, so that the shared account is touched seldom, and lets go of what it
did not use when it is settled. Nobody keeps a total: under a short lock (flock(2)), whoever reserves counts the files,
and what live owners have reserved beyond them. So what a killed process had is right again with the next step of
anybody, to the byte. Exhaustion refuses new retention and deletes nothing. Supervisors with different limits each keep
the sum below their own.
"""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ..errors import StorageError
from .directory import check_file, close_quietly, create_private_file
from .faults import SpoolFault
from .owners import LOCK_UNSUPPORTED
from .reservations import Reservations, reserved_by_others
from .retained import RetainedSizes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..sansio.words import CaptureReason
    from .directory import Rooms
    from .files import Files
    from .writers import Writers

FIRST_STEP: Final = 64 * 1024
LAST_STEP: Final = 4 * 1024 * 1024
"""Steps double from the first to the last: a short output reserves little, a long one reserves seldom."""
LOCK: Final = "allowance"
"""The lock of `tool-outputs/.supervisor/`. It is never removed: two could hold it then. It holds the limit of the last
one who reserved, for people."""
LOCK_BYTES: Final = 32
NOT_SHARED: Final = "allowance-not-shared"
"""The limitation that is named where the file system has no locks: two processes may be granted the same bytes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """An allowance at one moment, in bytes."""

    used: int
    """What all files hold."""
    reserved: int
    """What live captures may still add."""
    limit: int | None
    """Of the last one who reserved; None where nobody with a limit has."""


def share(free: float, wanted: int, at_least: int) -> int:
    """Return how many of `wanted` bytes are granted of what is free: all, or no more than the `at_least` needed now.

    Near the end a whole step for one capture would leave others nothing while it lies unused.
    """
    return wanted if wanted <= free else int(max(0, min(at_least, free)))


class SharedAccount:
    """The blocking half: counts, under the lock. Safe from any thread."""

    def __init__(self, files: Files, rooms: Rooms, owner: str, limit: float) -> None:
        self.reservations: Final = Reservations(files, rooms.state, owner)
        self.limit: Final = limit
        self.shared = True
        """False once the file system was seen to have no locks."""
        self._files: Final = files
        self._rooms: Final = rooms
        self._sizes: Final = RetainedSizes(files, rooms.captures)

    def reserve(self, capture_id: str, wanted: int, at_least: int) -> None:
        """Raise the capture's ceiling as far as the limit allows: by `wanted`, or as `share` says.

        Raises:
            OSError: from the system; its ceiling is what it was.
        """
        with self._locked() as state:
            # First the slots, then the files: a capture that is let go between the two counts with its final sizes.
            live = reserved_by_others(self._files, state, self.reservations.name, sweep=self.shared)
            live |= self.reservations.all()
            granted = share(self._free(live), wanted, at_least)
            if granted < at_least:
                self._sizes.forget()
                granted = share(self._free(live), wanted, at_least)
            if granted:
                self.reservations.raise_by(capture_id, granted)

    def _free(self, live: dict[str, int]) -> float:
        return self.limit - sum(live.values()) - sum(self._sizes.by_name(but=live).values())

    @contextmanager
    def _locked(self) -> Generator[int]:
        """Lend the state directory's descriptor while the lock is held, if there are locks."""
        with self._rooms.state.borrow() as state:
            # Opened anew each time, so that threads of one process exclude each other like processes do (flock(2)).
            number = _open_lock(self._files, state)
            try:
                try:
                    self._files.lock(number, exclusive=True, wait=True)
                except OSError as error:
                    if error.errno not in LOCK_UNSUPPORTED:
                        raise
                    self.shared = False
                _note_limit(self._files, number, self.limit)
                yield state
            finally:
                close_quietly(self._files, number)


def look_at_allowance(files: Files, rooms: Rooms) -> Figures:
    """Return what an allowance is now, as anybody may see it. Nothing is written. Blocks. Raises: OSError."""
    with rooms.state.borrow() as state:
        live = reserved_by_others(files, state)
        limit = _noted_limit(files, state)
    sizes = RetainedSizes(files, rooms.captures).by_name()
    reserved = sum(max(0, ceiling - sizes.get(capture_id, 0)) for capture_id, ceiling in live.items())
    return Figures(used=sum(sizes.values()), reserved=reserved, limit=limit)


def _open_lock(files: Files, state: int) -> int:
    try:
        number = files.open_existing(LOCK, parent=state, flags=os.O_RDWR)
    except FileNotFoundError:
        try:
            return create_private_file(files, LOCK, parent=state, flags=os.O_RDWR)
        except FileExistsError:  # made by another process meanwhile
            number = files.open_existing(LOCK, parent=state, flags=os.O_RDWR)
    try:
        check_file(files, number)
    except OSError:
        close_quietly(files, number)
        raise
    return number


def _note_limit(files: Files, number: int, limit: float) -> None:
    text = f"{limit:.0f}".ljust(LOCK_BYTES - 1).encode() + b"\n"
    if files.read(number, LOCK_BYTES, offset=0) != text:
        files.write_at(number, text, offset=0)


def _noted_limit(files: Files, state: int) -> int | None:
    try:
        number = files.open_existing(LOCK, parent=state)
    except FileNotFoundError:
        return None
    try:
        check_file(files, number)
        return int(files.read(number, LOCK_BYTES, offset=0))
    except ValueError:  # nobody has written it yet
        return None
    finally:
        close_quietly(files, number)


class Ceilings(Protocol):
    """What a reservation is taken of; `Allowance` is one."""

    def admit(self, capture_id: str) -> None:
        """A capture was made, whose files are empty."""
        ...

    def ceiling(self, capture_id: str) -> float:
        """Return how many bytes this capture's files may hold."""
        ...

    async def grow(self, capture_id: str, wanted: int, at_least: int) -> None:
        """Raise the ceiling as far as it goes. Raises: SpoolFault."""
        ...

    def let_go(self, capture_id: str) -> None:
        """The capture's files do not grow any more. Blocks, on any thread; never raises."""
        ...


class Allowance:
    """The shared account as captures of one conversation see it. Used from the event loop, unless a method blocks."""

    def __init__(
        self, account: SharedAccount, writers: Writers, *, deadline: float, on_limitation: Callable[[str], None]
    ) -> None:
        self._account: Final = account
        self._writers: Final = writers
        self._deadline: Final = deadline
        self._on_limitation: Final = on_limitation
        self._turn: Final = asyncio.Lock()
        self._turns = 0
        """How many came to a good end."""

    def admit(self, capture_id: str) -> None:
        """A capture was made, whose files are empty: nobody need look at them before they grow."""
        self._account.reservations.admit(capture_id)

    def ceiling(self, capture_id: str) -> float:
        """Return how many bytes this capture's files may hold."""
        return math.inf if math.isinf(self._account.limit) else self._account.reservations.ceiling(capture_id)

    async def grow(self, capture_id: str, wanted: int, at_least: int) -> None:
        """Return when the ceiling is raised, as far as it goes. Precondition: the capture was not let go.

        Cancellation: it may be raised all the same.

        Raises:
            SpoolFault: `writer-stalled` if the lock or the disk was not to be had in time; `no-space` or `io-error`.
        """
        step = partial(self._account.reserve, capture_id, wanted, at_least)
        try:
            # One at a time: a crowd of jobs would only wait for one lock, each on a thread.
            await self._take_turn()
            try:
                await self._writers.run("reserving", step, deadline=self._deadline)
                self._turns += 1
            finally:
                self._turn.release()
        except TimeoutError:
            raise SpoolFault("writer-stalled", None) from None
        except StorageError as error:
            raise SpoolFault(_fault_reason(error), error.errno) from error
        if not self._account.shared:
            self._on_limitation(NOT_SHARED)

    async def _take_turn(self) -> None:
        """Return with the turn. Raises: TimeoutError when nobody has used one to a good end for the deadline."""
        deadline = None if math.isinf(self._deadline) else self._deadline
        while True:
            before = self._turns
            try:
                async with asyncio.timeout(deadline):
                    await self._turn.acquire()
                    return
            except TimeoutError:
                if self._turns == before:
                    raise

    def let_go(self, capture_id: str) -> None:
        """Let the capture count with what its files hold; if that cannot be written, it does once we end. Blocks."""
        with suppress(OSError):
            self._account.reservations.let_go(capture_id)


def _fault_reason(error: StorageError) -> CaptureReason:
    if error.reason == "writer-stuck":
        return "writer-stalled"  # what hangs is not under the stream's own file: where that ends is known
    return error.reason if error.reason == "no-space" else "io-error"


class Reservation:
    """One capture's part of an allowance; all of its files take from it, on the event loop."""

    def __init__(self, ceilings: Ceilings, capture_id: str) -> None:
        self._ceilings: Final = ceilings
        self._capture_id: Final = capture_id
        self._step = FIRST_STEP
        self._taken = 0
        self._released = False
        ceilings.admit(capture_id)
        self._growing: Final = asyncio.Lock()

    async def take(self, wanted: int) -> int:
        """Return how many of `wanted` bytes may be written; fewer when the conversation's allowance is at its end.

        Within what is reserved already it does not wait. Cancellation: nothing is taken.

        Raises:
            SpoolFault: nothing could be reserved; it may be tried again.
        """
        assert wanted >= 0, "bytes are not given back by taking"
        if self._missing(wanted):
            async with self._growing:  # another file's step may do for this one too
                await self._grow(wanted)
        granted = 0 if self._released else max(0, wanted - self._missing(wanted))
        self._taken += granted
        return granted

    def put_back(self, count: int) -> None:
        """Return `count` bytes that were taken and will not be written."""
        assert 0 <= count <= self._taken, "more is put back than was taken"
        self._taken -= count

    def release(self) -> None:
        """Let go of what was not used: no file of the capture grows any more, and nothing more can be taken. Blocks."""
        self._released = True
        self._ceilings.let_go(self._capture_id)

    async def _grow(self, wanted: int) -> None:
        """Raise the ceiling until it does for `wanted`, or the allowance is at its end."""
        # Another file takes what lies below the ceiling without waiting, out of a step that was for this one too.
        while (missing := self._missing(wanted)) and not self._released:
            step, self._step = self._step, min(self._step * 2, LAST_STEP)
            before = self._ceilings.ceiling(self._capture_id)
            await self._ceilings.grow(self._capture_id, max(step, missing), missing)
            if self._ceilings.ceiling(self._capture_id) - before < missing:
                return

    def _missing(self, wanted: int) -> int:
        """Return how many bytes the ceiling is too low; 0 if it is not."""
        return int(max(0, self._taken + wanted - self._ceilings.ceiling(self._capture_id)))
