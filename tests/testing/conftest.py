"""What the tests of the fake child share: a supervisor over one, and a protocol that only listens."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Supervisor
from supervisor.testing import FakeChild

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from supervisor import Job


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[tuple[FakeChild, Job]]]:
    """Return a context with a fake child and its started job; options go to `start`."""

    @asynccontextmanager
    async def playing(child: FakeChild | None = None, **options: Any) -> AsyncIterator[tuple[FakeChild, Job]]:  # noqa: ANN401
        played = child or FakeChild()
        async with Supervisor(tmp_path, spawn=played.spawn, durability="none") as supervisor:
            yield played, await supervisor.start(["played"], **options)

    return playing


class Listener(asyncio.SubprocessProtocol):
    """Keeps what it hears, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.data = b""
        self.over = asyncio.Event()
        """Its exit was told, and the end of each output."""
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: ARG002, D102
        self.events.append("made")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep it."""
        assert fd in {1, 2}
        self.data += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """Keep it."""
        self._note(f"lost {fd}")

    def process_exited(self) -> None:
        """Keep it."""
        self._note("exited")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The last of all."""
        self.events.append("gone")
        self.gone.set()

    def _note(self, event: str) -> None:
        self.events.append(event)
        if {"exited", "lost 1", "lost 2"} <= set(self.events):
            self.over.set()


@pytest.fixture
def listener() -> Listener:
    """Return a protocol that is not connected yet."""
    return Listener()
