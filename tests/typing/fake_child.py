"""The fake child and its contract suite as their user sees them: type-checked, never run."""

from __future__ import annotations

import signal
from typing import assert_type

from supervisor import SpawnError, Supervisor
from supervisor.process import Launch
from supervisor.testing import CHECKS, FakeChild, RealChild, ScriptedChild, ScriptedFake, check_child


async def plays_a_child() -> None:
    """Its `spawn` fits the seam; steps that can wait are awaited, the others are not."""
    child = FakeChild()
    async with Supervisor(spawn=child.spawn) as supervisor:
        await supervisor.start(["played"])
    assert_type(await child.started(), Launch)
    assert_type(child.launched, Launch | None)
    assert_type(child.signals, list[int])
    assert_type(child.pid, int)
    await child.feed(b"text")
    await child.feed(b"text", stream="stderr")
    await child.received(signal.SIGTERM)
    assert_type(await child.read_stdin(), bytes)
    assert_type(await child.read_stdin(4), bytes)
    assert_type(child.stdin_received, bytes)
    child.close("stdout")
    child.ignore(signal.SIGTERM, 9)
    child.exit()
    child.exit(code=3)
    child.exit(signal=signal.SIGKILL, hold_pipes=True)
    child.fail_to_spawn(OSError(24, "none left"))
    child.fail_to_spawn(SpawnError("no", errno=None, fault="other"))


async def checks_children(mine: ScriptedChild) -> None:
    """Both kinds that are shipped are scripted children, and so is one's own."""
    await check_child(ScriptedFake)
    await check_child(RealChild, tuple(CHECKS), patience=60)
    await check_child(lambda: RealChild(mine.spawn))
    fake: ScriptedChild = ScriptedFake(FakeChild())
    await fake.exit(0)
