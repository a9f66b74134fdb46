"""One capture on disk while it is live. Descriptors: its directory, its spools, the receipt's reserved file.

No method raises for what the disk does once the command runs, except `record_launch`: faults come back as values, for
the receipt [B5].
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from ..errors import StorageError
from .creation import discard_capture, write_launch
from .descriptor import Descriptor
from .directory import CAPTURES, TOOL_OUTPUTS
from .publish import (
    LIVE,
    NO_BARRIER,
    RAW,
    Fault,
    Named,
    Patience,
    PublishOutcome,
    Sealed,
    SealedStream,
    commit_receipt,
    directory_place,
    final_name,
    name_streams,
    settle_stream,
    warn_once,
)
from .spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .allowance import Reservation
    from .creation import Opened
    from .directory import Rooms
    from .files import Files
    from .publish import Barrier, Place
    from .writers import Writers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Site:
    """What all captures of a conversation share."""

    files: Files
    writers: Writers
    rooms: Rooms
    barrier: Barrier
    durable: bool
    deadline: float
    """Seconds that one hop to a thread may take (`Limits.stall_timeout`)."""
    digest: Literal["sha256"] | None
    limitations: list[str]

    def name_limitation(self, limitation: str) -> None:
        """Add a limitation, once."""
        if limitation not in self.limitations:
            self.limitations.append(limitation)

    def directories(self, unsupported: Sequence[tuple[int, int]]) -> bool | None:
        """Return what a receipt says of directory syncs, and warn about those that cannot be had."""
        if not self.durable:
            return None
        if unsupported:
            self.name_limitation(NO_BARRIER)
            warn_once(unsupported)
        return not unsupported


class Capture:
    """A capture's directory while it is live. Made by `Conversation.create_capture`; used by one task.

    Its life is `record_launch`, writes to its spools, `seal`, `publish`; or `discard`. The last of these, or the
    conversation's `close`, closes its descriptors.
    """

    def __init__(
        self, site: Site, capture_id: str, streams: Sequence[str], opened: Opened, reservation: Reservation
    ) -> None:
        self.id: Final = capture_id
        self.path: Final = site.rooms.path / TOOL_OUTPUTS / CAPTURES / capture_id
        self.reference: Final = f"{TOOL_OUTPUTS}/{CAPTURES}/{capture_id}"
        """The same, relative to the conversation [E7]."""
        self.spools: Final = {
            stream: Spool(
                site.files,
                site.writers,
                number,
                self.path / (stream + LIVE),
                digest=None if stream.endswith(RAW) else site.digest,
            )
            for stream, number in zip(streams, opened.spools, strict=True)
        }
        self.reservation: Final = reservation
        """Its part of the conversation's allowance: take from it before a spool grows [D5]."""
        self._site: Final = site
        self._directory: Final = Descriptor(site.files, opened.directory)
        self._receipt: Final = Descriptor(site.files, opened.receipt)
        self._patience: Final = Patience()
        self._sealed = False
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether it was published, given up or discarded: it has no descriptor any more, save under a stuck call."""
        return self._ended

    async def record_launch(self, record: bytes) -> None:
        """Return when `launch.json` is visible to readers, whole.

        Raises:
            StorageError: it could not be made; the capture can go on without.
        """
        await self._run("recording the launch", partial(write_launch, self._site.files, self._directory, record))

    async def seal(self) -> Sealed:
        """Return when the streams have their final names and, with a barrier, are on the device. Called once.

        A spool whose write is still out is abandoned: its size is unknown and its name stays live. Each step has its
        own deadline, so that a slow disk is not taken for a stuck one. Cancellation: the step under way goes on.
        """
        assert not self._sealed, "sealed twice"
        self._sealed = True
        settled = await asyncio.gather(*map(self._settle, self.spools.values()))
        faults = dict(zip(self.spools, settled, strict=True))
        named = await self._name({name: self.spools[name] for name, fault in faults.items() if not _is_stuck(fault)})
        streams: dict[str, SealedStream] = {}
        for stream, settling in faults.items():
            # A name that is not on the device is no better than data that is not [D4].
            fault = settling or named.faults.get(stream) or named.directory_fault
            streams[stream] = self._sealed_stream(
                stream, fault, final=stream in named.names, place=named.places.get(stream, "here")
            )
        # What a raw copy fails at is told with the copy: the barrier is the text's.
        texts = [stream for name, stream in streams.items() if not name.endswith(RAW)]
        errors = [stream.fault.error for stream in texts if stream.fault is not None]
        return Sealed(
            streams=streams,
            barrier=self._site.durable and not errors,
            directories=None if named.directory_fault else self._site.directories(named.unsupported),
            error=errors[0] if errors else None,
        )

    async def publish(self, receipt: bytes) -> PublishOutcome:
        """Return when the receipt has its name and, with a barrier, all names are on the device. Called once, at last.

        All descriptors are closed then, whatever the outcome. Cancellation: the step under way goes on.
        """
        assert self._sealed, "published before it was sealed"
        assert not self._ended, "published or discarded twice"
        outcome = await self._publish(receipt)
        await self.close()
        return outcome

    async def discard(self) -> str | None:
        """Remove the capture and all of its files; return what went wrong, or None when nothing of it is left."""
        assert not self._ended, "published or discarded twice"
        error = None
        try:
            await self._run(
                "discarding the capture",
                partial(
                    discard_capture,
                    self._site.files,
                    self._site.rooms.captures,
                    self.id,
                    self._directory,
                    tuple(self.spools),
                ),
            )
        except StorageError as fault:
            error = str(fault)
        await self.close()
        return error

    async def close(self) -> None:
        """Close all descriptors; one under a call that is still out is closed when that comes back.

        What is not published by now is a leftover [D6].
        """
        self._ended = True
        self._patience.given_up = True
        for spool in self.spools.values():
            spool.abandon()
        try:
            await self._run("closing the capture", self._close_all)
        except StorageError:  # a thread closes them if it ever comes to it
            return

    async def _settle(self, spool: Spool) -> Fault | None:
        name = spool.path.name
        if spool.outstanding:
            spool.abandon()
            return Fault("writer-stuck", f"writing {name}: the call did not return")
        try:
            return await self._run(
                f"syncing {name}", partial(settle_stream, self._site.files, spool, durable=self._site.durable)
            )
        except StorageError as error:
            return _fault(error)

    async def _name(self, spools: Mapping[str, Spool]) -> Named:
        step = partial(
            name_streams, self._site.files, self._directory, spools, self._patience, durable=self._site.durable
        )
        try:
            return await self._run("naming the streams", step)
        except StorageError as error:
            self._patience.given_up = True
            return Named({}, _fault(error), (), frozenset(), {})

    def _sealed_stream(self, stream: str, fault: Fault | None, *, final: bool, place: Place) -> SealedStream:
        spool = self.spools[stream]
        stuck = _is_stuck(fault)
        return SealedStream(
            name=final_name(stream) if final else stream + LIVE,
            size=None if stuck else spool.size,
            digest=None if stuck else spool.hexdigest(),
            fault=fault,
            place=place,
        )

    async def _publish(self, receipt: bytes) -> PublishOutcome:
        site = self._site
        commit = partial(
            commit_receipt, site.files, self._directory, self._receipt, receipt, self._patience, durable=site.durable
        )
        try:
            await self._run("publishing the receipt", commit)
        except StorageError as error:
            self._patience.given_up = True
            place = await self._place()
            return PublishOutcome(published=False, durable=False, directories=None, error=str(error), place=place)
        if not site.durable:
            return PublishOutcome(published=True, durable=False, directories=None, error=None)
        try:
            unsupported = await self._run("syncing the directories", partial(site.barrier.sync, self._directory))
        except StorageError as error:
            return PublishOutcome(published=True, durable=False, directories=None, error=str(error))
        return PublishOutcome(published=True, durable=True, directories=site.directories(unsupported), error=None)

    async def _place(self) -> Place:
        look = partial(directory_place, self._site.files, self._directory, self.path)
        try:
            return await self._run("looking for the capture", look)
        except StorageError:  # nobody saw it elsewhere
            return "here"

    def _close_all(self) -> None:
        # Under a write that is still out the file may grow yet, up to what was reserved.
        if not any(spool.outstanding for spool in self.spools.values()):
            self.reservation.release()
        for descriptor in (*(spool.descriptor for spool in self.spools.values()), self._receipt, self._directory):
            descriptor.discard()

    async def _run(self, action: str, step: Callable[[], T]) -> T:
        return await self._site.writers.run(action, step, deadline=self._site.deadline)


def _is_stuck(fault: Fault | None) -> bool:
    return fault is not None and fault.reason == "writer-stuck"


def _fault(error: StorageError) -> Fault:
    return Fault("writer-stuck" if error.reason == "writer-stuck" else "io-error", str(error))
