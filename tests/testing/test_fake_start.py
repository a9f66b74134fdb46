"""How a fake child starts: before or after its script, or not at all (F6)."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest

from supervisor import SpawnError, Supervisor
from supervisor.testing import FakeChild

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor import Receipt
    from supervisor.sansio.receipt import ProcessFacts


def facts(receipt: Receipt) -> ProcessFacts:
    """Return what the receipt says of its process."""
    assert receipt.process is not None
    return receipt.process


async def turns(count: int = 20) -> None:
    """Let everything run that can."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_a_script_may_come_before_the_start(tmp_path: Path) -> None:
    """Closing and exit happen at the start, feeding and reading wait for it."""
    child = FakeChild()
    assert child.launched is None
    assert child.stdin_received == b""
    feeding = asyncio.create_task(child.feed(b"late\n"))
    starting = asyncio.create_task(child.started())
    await turns()
    assert not feeding.done()
    assert not starting.done()
    child.close("stderr")
    async with Supervisor(tmp_path, spawn=child.spawn, durability="none") as supervisor:
        job = await supervisor.start(["played", "it"], cwd="/", env={"A": "b"})
        await feeding
        assert await starting is child.launched
        with pytest.raises(RuntimeError, match="stderr"):
            await child.feed(b"x", "stderr")
        child.exit(9)
        receipt = await job.wait()
    assert child.launched is not None
    assert (child.launched.argv, child.launched.cwd, child.launched.env) == (("played", "it"), "/", {"A": "b"})
    assert (facts(receipt).code, receipt.stdout) == (9, "late\n")


@pytest.mark.asyncio
@pytest.mark.parametrize("options", [{"code": 7}, {"signal": signal.SIGKILL}])
async def test_a_child_may_have_ended_before_its_start(tmp_path: Path, options: dict[str, int]) -> None:
    """It starts, writes nothing, and ends at once, as a process may."""
    child = FakeChild()
    child.exit(**options)
    async with Supervisor(tmp_path, spawn=child.spawn, durability="none") as supervisor:
        receipt = await supervisor.run(["played"])
    assert (facts(receipt).state, facts(receipt).code) == ("exited", options.get("code"))
    assert facts(receipt).signal == options.get("signal")
    assert receipt.capture.state == "complete"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "fault", "number"),
    [
        (OSError(errno.EMFILE, "none"), "resources", errno.EMFILE),
        (FileNotFoundError(errno.ENOENT, "gone"), "program", errno.ENOENT),
        (SpawnError("in words", errno=errno.EACCES, fault="cwd", subject="/x"), "cwd", errno.EACCES),
    ],
    ids=["resources", "diagnosed", "typed"],
)
async def test_a_start_may_fail(tmp_path: Path, error: OSError | SpawnError, fault: str, number: int) -> None:
    """As often as it is tried, each time with an error and a receipt of its own [F6]."""
    child = FakeChild()
    child.fail_to_spawn(error)
    caught: list[SpawnError] = []
    async with Supervisor(tmp_path, spawn=child.spawn, durability="none") as supervisor:
        for attempt in (supervisor.run, supervisor.start):
            with pytest.raises(SpawnError) as raised:
                await attempt(["/nonexistent/played"])
            caught.append(raised.value)
    assert [(one.fault, one.errno) for one in caught] == [(fault, number)] * 2
    receipts = [one.receipt for one in caught]
    assert receipts[0] is not None
    assert receipts[1] is not None
    assert receipts[0].job_id != receipts[1].job_id
    assert facts(receipts[0]).state == "not-started"
    assert child.launched is not None
    for step in (child.started(), child.feed(b"x"), child.read_stdin()):
        with pytest.raises(RuntimeError, match="start failed"):
            await step


@pytest.mark.asyncio
async def test_without_descriptors_for_its_pipes_it_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipes are real, and so is their lack; those that were had already are given back."""
    real, made = os.pipe, 0

    def pipe() -> tuple[int, int]:
        nonlocal made
        made += 1
        if made == 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real()

    child = FakeChild()
    async with Supervisor(tmp_path, spawn=child.spawn, durability="none") as supervisor:
        monkeypatch.setattr(os, "pipe", pipe)
        with pytest.raises(SpawnError) as caught:
            await supervisor.run(["played"])
    assert (made, caught.value.fault) == (2, "resources")


@pytest.mark.asyncio
async def test_one_object_plays_one_process(tmp_path: Path) -> None:
    """A second start is the test's mistake and reaches it through the supervisor."""
    child = FakeChild()
    async with Supervisor(tmp_path, spawn=child.spawn, durability="none") as supervisor:
        await supervisor.start(["played"])
        with pytest.raises(AssertionError, match="already"):
            await supervisor.start(["played"])
        child.exit(0)
