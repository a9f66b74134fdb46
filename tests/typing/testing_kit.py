"""The testing kit as its user sees it: type-checked, never run."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, assert_type

from supervisor import Receipt, Supervisor
from supervisor.testing import (
    FailingStorage,
    FakeChild,
    FakeChildren,
    History,
    Reaction,
    Recorder,
    ScriptedChild,
    ScriptedReplay,
    VirtualClock,
    assert_no_leaks,
    assert_receipt,
    assert_settled,
    delay,
    exit_with,
    ignore,
    record,
)

if TYPE_CHECKING:
    from supervisor.clock import Clock
    from supervisor.storage import Storage


async def say(child: FakeChild) -> None:
    """A script."""
    await child.feed(b"text")


async def seams_fit(receipt: Receipt) -> None:
    """What goes into a supervisor, and what is said of what comes out."""
    clock, disk, children = VirtualClock(), FailingStorage(), FakeChildren()
    is_clock: Clock = clock
    is_storage: Storage = disk
    async with assert_no_leaks(), Supervisor(".", spawn=children.spawn, storage=is_storage, clock=is_clock) as opened:
        await clock.advance(3600)
        await clock.settle()
        await clock.sleep(1)
        async with clock.jumping():
            assert_settled(opened)
    with assert_no_leaks(clearance=1), FakeChildren(clock=clock) as other:
        other.check()
    disk.fill_after(10)
    disk.fail_sync("receipt", number=28)
    assert_receipt(receipt, process="exited", code=0, signal=None, capture="complete", stdout="text", survivors=())


async def children_are_played(children: FakeChildren, clock: VirtualClock) -> None:
    """Expected, scripted, replayed; and what they do on signals."""
    assert_type(children.expect(["git", ...]), FakeChild)
    children.expect(lambda argv: argv[0] == "git", script=say)
    children.expect(child=FakeChild(say, clock=clock))
    reaction: Reaction = delay(2.5, exit_with(3))
    child = FakeChild()
    child.on_signal(signal.SIGTERM, reaction)
    child.on_signal(signal.SIGINT, ignore())
    child.on_signal(signal.SIGHUP, exit_with(signal=signal.SIGTERM))
    assert_type(await record(["true"], merge=True, time_limit=1), History)
    history = History.parse(Recorder().history().to_json())
    assert_type(history.child(clock=clock), FakeChild)
    assert_type(FakeChild.replay(history), FakeChild)
    assert_type(history.output("stderr"), bytes)
    replay: ScriptedChild = ScriptedReplay(history)
    await replay.exit(0)
