"""What the adapters' tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapters.blocking import BlockingSupervisor, loop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["asyncio", "uvloop"])
def any_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocking supervisors on each loop."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    else:
        make: Callable[[], asyncio.AbstractEventLoop] = loop.asyncio.new_event_loop
        monkeypatch.setattr(loop, "_new_loop", make)


@pytest.fixture
def supervisor(tmp_path: Path, any_loop: None) -> Iterator[BlockingSupervisor]:  # noqa: ARG001 - orders the two
    """Return an open supervisor of `tmp_path`."""
    with BlockingSupervisor(tmp_path, durability="none") as opened:
        yield opened
