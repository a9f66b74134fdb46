"""Completions: each started job's end is told once, to one consumer, and again only if that one died over it [E5].

An end is offered here after its receipt was published and the barrier holds; what was published and not acknowledged
by earlier supervisors of the directory is offered first. To be handed over it is claimed by a durable marker
(`storage/delivery.py`), so that any number of consumers in any number of processes share the work. `wait`, reading and
listing claim nothing.

Where there is no capture to mark (`unavailable`, or `capture="none"`), the end is offered once, from memory. The same
goes for a job of our own whose marker cannot be written: nobody else claims it while we live.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from .errors import StorageError
from .recovering import bound
from .sansio.leftover import placed
from .sansio.receipt import Receipt
from .storage import Files, acknowledge, site_of, visiting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .storage import Claim, Conversation

REMEMBERED_RECEIPTS: Final = 256
"""Receipts of ended jobs that nobody asked for yet. Older ones are read from their files, or, without one, dropped."""
QUEUED: Final = 65536
"""Ends that nobody asked for yet. Older ones are offered by the next supervisor of the directory [B3]."""


async def _nothing() -> None:
    """Acknowledge what has no marker."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One job's end, handed to one consumer."""

    receipt: Receipt
    redelivered: bool
    """It was handed to somebody before, who died without acknowledging it: what it called for may be done already."""
    _acknowledge: Callable[[], Awaitable[None]] = field(repr=False, compare=False)

    async def acknowledge(self) -> None:
        """Return when it is never offered again; that is on the device then, unless durability is "none".

        May be called again, by anybody, and after the supervisor closed. Without it, the completion is offered again
        once the supervisor that it came from is gone.

        Cancellation: it may be acknowledged all the same.

        Raises:
            StorageError: that it was acknowledged cannot be written; it may be tried again.
        """
        await self._acknowledge()


@dataclass(frozen=True, slots=True)
class _Offer:
    """A completion that waits for a consumer."""

    capture_id: str
    marked: bool = True
    """There is a capture to be marked."""
    earlier: bool = False
    """It is of a supervisor before this one."""
    ready: Completion | None = None
    """Claimed already, for a consumer that was cancelled before it got it."""


class Offers:
    """What one supervisor has to offer. Used on its loop."""

    def __init__(self) -> None:
        self._conversation: Conversation | None = None
        self._queue: deque[_Offer] = deque(maxlen=QUEUED)
        self._receipts: OrderedDict[str, Receipt] = OrderedDict()
        self._claiming: set[asyncio.Task[Completion | None]] = set()
        self._looking: set[asyncio.Task[list[str]]] = set()
        self._waiters: set[asyncio.Future[None]] = set()
        self._closed = False

    def open(self, conversation: Conversation) -> None:
        """Completions of this conversation's captures are offered from now on."""
        self._conversation = conversation

    def offer(self, receipt: Receipt, *, marked: bool) -> None:
        """Offer the end of a job of ours. `marked`: its receipt is published, and so durable as was asked for."""
        self._receipts[receipt.capture_id] = receipt
        while len(self._receipts) > REMEMBERED_RECEIPTS:
            self._receipts.popitem(last=False)
        self._queue.append(_Offer(receipt.capture_id, marked=marked))
        self._wake()

    async def withdraw(self, capture_id: str) -> None:
        """Let nobody be offered an end whose barrier failed [D4], so far as a disk that fails lets us say so."""
        if self._conversation is not None:
            with suppress(StorageError):
                await self._conversation.deliveries.acknowledge(capture_id)

    async def acknowledge(self, capture_id: str) -> None:
        """Return when the end of a job of ours is not offered any more; as `Completion.acknowledge`."""
        mine = [offer for offer in self._queue if offer.capture_id == capture_id]
        for offer in mine:
            self._queue.remove(offer)
        self._receipts.pop(capture_id, None)
        if all(offer.marked for offer in mine):
            await self._acknowledge(capture_id)

    def earlier(self) -> asyncio.Task[list[str]]:
        """Look for what earlier supervisors left to be delivered, oldest first; nothing where that cannot be seen."""
        looking = asyncio.get_running_loop().create_task(self._earlier())
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)
        return looking

    async def next(self, earlier: deque[str]) -> Completion | None:
        """Return the next completion, those of the captures `earlier` first; None once the supervisor closes.

        Cancellation: what was claimed for the caller is offered to the next one.
        """
        while not self._closed:
            if earlier:
                offer = _Offer(earlier.popleft(), earlier=True)
            elif self._queue:
                offer = self._queue.popleft()
            else:
                await self._change()
                continue
            completion = await self._hand_over(offer)
            if completion is not None:
                return completion
        return None

    async def close(self) -> None:
        """Return when nothing is being claimed and nobody waits any more; claims that nobody was handed are released.

        What was not claimed is offered by the next supervisor of the directory.
        """
        self._closed = True
        while at_work := {*self._claiming, *self._looking}:
            await asyncio.wait(at_work)
        self._wake()
        for offer in self._queue:
            if offer.ready is not None and offer.marked:
                await self._release(offer.capture_id)
        self._queue.clear()

    async def _earlier(self) -> list[str]:
        if self._conversation is None or self._closed:
            return []
        try:
            return await self._conversation.deliveries.undelivered()
        except StorageError:
            return []

    async def _hand_over(self, offer: _Offer) -> Completion | None:
        if offer.ready is not None:
            return offer.ready
        claiming = asyncio.get_running_loop().create_task(self._claim(offer))
        self._claiming.add(claiming)
        claiming.add_done_callback(self._claiming.discard)
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            claiming.add_done_callback(partial(self._take_back, offer))
            raise

    def _take_back(self, offer: _Offer, claiming: asyncio.Task[Completion | None]) -> None:
        """Offer again what was claimed for a consumer that is not there any more."""
        completion = None if claiming.cancelled() else claiming.result()
        if completion is not None:
            self._queue.appendleft(_Offer(offer.capture_id, offer.marked, offer.earlier, completion))
            self._wake()

    async def _claim(self, offer: _Offer) -> Completion | None:
        """Return the completion, if it is to be had."""
        capture_id = offer.capture_id
        known = self._receipts.pop(capture_id, None)
        if not offer.marked:
            return None if known is None else Completion(known, redelivered=False, _acknowledge=_nothing)
        assert self._conversation is not None
        try:
            claim = await self._conversation.deliveries.claim(capture_id, earlier=offer.earlier)
        except StorageError:
            if known is None:
                return None  # it stays for a supervisor that can
            return Completion(known, redelivered=False, _acknowledge=partial(self._acknowledge, capture_id))
        if claim is None:
            return None
        receipt = known or self._parsed(capture_id, claim)
        if receipt is None:
            await self._release(capture_id)
            return None
        return Completion(receipt, claim.redelivered, partial(self._acknowledge, capture_id))

    async def _release(self, capture_id: str) -> None:
        """Take back a claim that nobody was handed, so far as the disk lets us."""
        assert self._conversation is not None
        with suppress(StorageError):
            await self._conversation.deliveries.release(capture_id)

    def _parsed(self, capture_id: str, claim: Claim) -> Receipt | None:
        assert self._conversation is not None
        try:
            receipt = Receipt.parse(claim.receipt)
        except ValueError:  # of another version: for who can read it
            return None
        site = site_of(self._conversation.directory, capture_id)
        return bound(placed(receipt, site), self._conversation.directory)

    async def _acknowledge(self, capture_id: str) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        if not conversation.closed:
            try:
                await conversation.deliveries.acknowledge(capture_id)
            except StorageError:
                if not conversation.closed:
                    raise
            else:
                return
        async with visiting(Files(), conversation.directory) as visit:
            if visit is not None:
                durable = conversation.durability == "barrier"
                step = partial(acknowledge, visit.files, visit.rooms, capture_id, durable=durable)
                await visit.run("acknowledging a completion", step)

    async def _change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class Consumer(AsyncIterator[Completion]):
    """One pass over completions; see `Supervisor.completions`. Any number of tasks may ask it at a time."""

    def __init__(self, offers: Offers) -> None:
        self._offers: Final = offers
        self._left: deque[str] = deque()
        self._looking: asyncio.Task[list[str]] | None = None
        self._looked = False

    async def __anext__(self) -> Completion:
        """Return the next completion. Cancellation: it is for the next who asks."""
        if not self._looked:
            if self._looking is None:
                self._looking = self._offers.earlier()
            found = await asyncio.shield(self._looking)
            if not self._looked:
                self._looked = True
                self._left.extend(found)
        completion = await self._offers.next(self._left)
        if completion is None:
            raise StopAsyncIteration
        return completion
