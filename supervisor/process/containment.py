"""Calls into the protocol that cannot hurt the transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

P = ParamSpec("P")


def deliver(
    loop: asyncio.AbstractEventLoop,
    transport: asyncio.BaseTransport,
    call: Callable[P, object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Call a protocol's method; what it raises goes to the loop's exception handler, and the transport goes on.

    Otherwise the exception would end the transport's own callback halfway: a reader that is never armed again, an
    exit that is never told (contract B5: the child is drained and its code kept whatever breaks above).
    """
    try:
        call(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - containment, contract B5
        loop.call_exception_handler(
            {
                "message": f"{getattr(call, '__qualname__', 'a protocol callback')} raised",
                "exception": error,
                "transport": transport,
            }
        )


def tell_later(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
    """Call back from the loop. A host that closed its loop over a living child has nobody left to be told."""
    if not loop.is_closed():
        loop.call_soon(call, *args)
