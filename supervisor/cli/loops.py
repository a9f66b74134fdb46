"""The event loop that the command line runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's where there is one, else None for asyncio's own."""
    try:
        import uvloop  # noqa: PLC0415 - 20 ms, and not for every platform
    except ImportError:
        return None
    return uvloop.new_event_loop
