"""Where decided text goes: a spool, memory until it is worth a file, or nowhere. A pump swaps one for another.

A sink never raises for the world's faults: it says how much it kept and, when it can keep no more, why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from .sansio.retention import cut
from .storage import SpoolFault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from .sansio.retention import RawRetention, Retention
    from .sansio.words import CaptureReason, StreamName
    from .storage import Reservation, Spool


@dataclass(frozen=True, slots=True)
class Kept:
    """What a write came to: bytes now on disk that were not before, and why nothing more can follow, if so."""

    count: int
    ended: CaptureReason | None = None


class Sink(Protocol):
    """Takes decided text, in order, one call at a time."""

    def write(self, chunks: Sequence[bytes]) -> Coroutine[None, None, Kept]:
        """Keep `chunks`, as far as limits and disk allow."""
        ...

    def spill(self) -> Coroutine[None, None, Kept]:
        """Put what is held in memory on disk; a sink that holds nothing keeps nothing."""
        ...

    def in_line(self) -> int | None:
        """Return a number that changes while the write that is out waits for others, not for the disk; else None."""
        ...

    def give_up(self) -> None:
        """The write that is out will not be waited for, and none will follow."""
        ...

    def late(self) -> int | None:
        """Return the bytes kept by a write that was given up and has come back; None while it has not."""
        ...


class _Preparing:
    """What comes before a write: each of its steps has a deadline of its own, in the storage."""

    def __init__(self) -> None:
        self._under_way = False
        self._asked = 0

    def __enter__(self) -> None:
        self._under_way = True

    def __exit__(self, *_: object) -> None:
        self._under_way = False

    def in_line(self) -> int | None:
        """Return another number each time, as long as it is under way; else None."""
        self._asked += 1
        return self._asked if self._under_way else None


class Nowhere:
    """Keeps nothing: there is no directory, or the caller wants none [D1, B9]."""

    async def write(self, chunks: Sequence[bytes]) -> Kept:
        """Keep nothing."""
        del chunks
        return Kept(0)

    async def spill(self) -> Kept:
        """Keep nothing."""
        return Kept(0)

    def in_line(self) -> int | None:
        """Return None: no write is ever out."""
        return None

    def give_up(self) -> None:
        """Change nothing: no write is ever out."""

    def late(self) -> int | None:
        """Return 0: nothing was written."""
        return 0


class SpoolSink:
    """Writes to a spool within the job's limit and the conversation's allowance [D5]; `trim` says where it may cut."""

    def __init__(
        self,
        name: StreamName,
        spool: Spool,
        retention: Retention | RawRetention,
        reservation: Reservation,
        *,
        trim: Callable[[Sequence[bytes], int], list[bytes]] | None = None,
    ) -> None:
        self._name: Final = name
        self._spool: Final = spool
        self._retention: Final = retention
        self._reservation: Final = reservation
        self._trim: Final = trim or trimmed
        self._before = 0
        self._preparing: Final = _Preparing()

    async def write(self, chunks: Sequence[bytes]) -> Kept:
        """Write what may be kept. Cancellation: the write itself goes on in its thread; see `late`."""
        self._before = self._spool.size
        wanted = sum(map(len, chunks))
        allowed = self._retention.allow(self._name, wanted)
        self._retention.take(self._name, allowed)  # before anything is waited for: the other stream takes as well
        try:
            with self._preparing:
                granted = await self._reservation.take(allowed)
            if granted < wanted:
                chunks = self._trim(chunks, granted)
            count = sum(map(len, chunks))
            self._reservation.put_back(granted - count)
            self._retention.give_back(self._name, allowed - count)
            if count:
                await self._spool.write(chunks)
        except SpoolFault as fault:
            return Kept(self._spool.size - self._before, fault.reason)
        ended: CaptureReason | None = "job-limit" if allowed < wanted else None
        return Kept(count, "conversation-limit" if granted < allowed else ended)

    async def spill(self) -> Kept:
        """Keep nothing more: all was written as it came."""
        return Kept(0)

    def in_line(self) -> int | None:
        """Return what changes while room is reserved, and while the write waits for a thread."""
        return self._preparing.in_line() or self._spool.queued

    def give_up(self) -> None:
        """Write off the thread that is out."""
        self._spool.abandon()

    def late(self) -> int | None:
        """Return what the abandoned write kept, or None while the kernel has not given it back."""
        return None if self._spool.outstanding else self._spool.size - self._before


class MemorySink:
    """Keeps the text of a foreground run until it is worth a file [A7], then hands everything to a spool, from byte 0.

    `fits` says whether what has been decided so far still fits the receipt; `open_spool` is called at most once.
    """

    def __init__(self, fits: Callable[[], bool], open_spool: Callable[[], Awaitable[Sink | CaptureReason]]) -> None:
        self._fits: Final = fits
        self._open_spool: Final = open_spool
        self._chunks: list[bytes] = []
        self._next: Sink | None = None
        self._preparing: Final = _Preparing()

    async def write(self, chunks: Sequence[bytes]) -> Kept:
        """Hold the text, or spill all of it once it no longer fits the receipt."""
        if self._next is not None:
            return await self._next.write(chunks)
        self._chunks.extend(chunks)
        return Kept(0) if self._fits() else await self.spill()

    async def spill(self) -> Kept:
        """Open the spool and write all that was held. Called again, it writes nothing."""
        if self._next is not None:
            return Kept(0)
        with self._preparing:
            opened = await self._open_spool()
        if isinstance(opened, str):
            self._chunks.clear()
            return Kept(0, opened)
        self._next = opened
        held, self._chunks = self._chunks, []
        return await opened.write(held)

    def in_line(self) -> int | None:
        """Return what changes while the spool is opened, and then what it says."""
        return self._preparing.in_line() if self._next is None else self._next.in_line()

    def give_up(self) -> None:
        """Hold nothing more; write off the thread that is out, if there is one."""
        self._chunks.clear()
        if self._next is not None:
            self._next.give_up()

    def late(self) -> int | None:
        """Return what an abandoned write kept; nothing was if no spool was opened yet."""
        return 0 if self._next is None else self._next.late()


def trimmed(chunks: Sequence[bytes], at_most: int) -> list[bytes]:
    """Return the longest prefix of `chunks` of `at_most` bytes that does not end inside a character."""
    kept: list[bytes] = []
    left = at_most
    for chunk in chunks:
        if len(chunk) > left:
            # Chunks are whole characters each, so the border is inside this one or at its start.
            kept.append(chunk[: cut(chunk, left)])
            break
        kept.append(chunk)
        left -= len(chunk)
    return [chunk for chunk in kept if chunk]
