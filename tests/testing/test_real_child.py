"""The real child of the contract suite, where the suite itself does not look."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor import Supervisor
from supervisor.process import spawn
from supervisor.testing import RealChild
from supervisor.testing.stage import until

if TYPE_CHECKING:
    from supervisor.process import Child, Launch

pytestmark = pytest.mark.asyncio


def is_over(pid: int) -> bool:
    """Return whether no such process lives: an orphan is a zombie until init has reaped it."""
    try:
        return b") Z " in Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_it_uses_the_start_that_it_is_given() -> None:
    """So that a start of one's own can be held to the contract."""
    launched: list[Launch] = []

    async def start(protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        launched.append(launch)
        return await spawn(protocol, launch)

    async with RealChild(start) as child, Supervisor(spawn=child.spawn) as supervisor:
        job = await supervisor.start(child.command)
        await child.exit(3)
        receipt = await job.wait()
    assert [list(launch.argv) for launch in launched] == [child.command]
    assert receipt.process is not None
    assert receipt.process.code == 3


async def test_an_order_to_one_that_has_ended_is_an_error() -> None:
    """It would otherwise wait for an answer that never comes."""
    async with RealChild() as child, Supervisor(spawn=child.spawn) as supervisor:
        job = await supervisor.start(child.command)
        await child.feed(b"x")
        await job.terminate()
        with pytest.raises(ConnectionError):
            await child.feed(b"x")


async def test_leaving_the_context_ends_a_descendant() -> None:
    """One that outlived its supervisor, held its pipe and ignores signals."""
    async with RealChild() as child:
        async with Supervisor(spawn=child.spawn) as supervisor:
            job = await supervisor.start(child.command, drain_timeout=0.05)
            await child.ignore(signal.SIGTERM)
            await child.exit(0, hold_pipes=True)
            receipt = await job.wait()
        assert receipt.process is not None
        assert receipt.process.survivors
        (pid,) = receipt.process.survivors
        os.kill(pid, 0)
        place = Path(child.command[-1]).parent
        assert place.is_dir()
    assert not place.exists()
    async with asyncio.timeout(10):
        await until(lambda: is_over(pid))


async def test_a_context_without_a_start_leaves_nothing() -> None:
    """Its socket and directory go, though nobody ever connected."""
    async with RealChild() as child:
        place = Path(child.command[-1]).parent
    assert not place.exists()
