"""What a supervisor gives each of its jobs: limits, clock, spawner, storage, and what is shared between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from .completions import Offers
from .turnstile import Turnstile

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    from .clock import Clock
    from .limits import Limits
    from .process import Child, Launch
    from .sansio.needles import NeedleSet
    from .sansio.words import CaptureReason
    from .storage import Conversation


class Spawn(Protocol):
    """Starts a child and lets it drive a protocol: the seam for fakes, and for systems without pidfds."""

    def __call__(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Awaitable[Child]:
        """Return the running child, its readers paused. Raises: SpawnError. Cancellation: no child is left."""
        ...


@dataclass(slots=True)
class Services:
    """Shared by the jobs of one supervisor; used on its loop only."""

    clock: Clock
    limits: Limits
    spawn: Spawn
    needles: Callable[[Mapping[str, str] | None], NeedleSet]
    """The known values of a child with that environment."""
    redact: bool
    conversation: Conversation | None = None
    unavailable: CaptureReason | None = "no-directory"
    """Why there is no conversation; None where there is one."""
    limitations: tuple[str, ...] = ()
    live_streams: int = field(default=0)
    offers: Offers = field(default_factory=Offers)
    """Where the ends of started jobs are told [E5]."""
    turnstile: Turnstile = field(default_factory=Turnstile)
    """Where the long steps of jobs that begin or end together take turns."""

    def high_mark(self) -> int:
        """Return how many bytes a stream may have waiting: its own mark, or its share of all [B3]."""
        return min(self.limits.queue_bytes, self.limits.buffered_bytes // max(1, self.live_streams))
