"""A supervisor that lives for a day, in virtual time: jobs come and go, limits strike, and nothing grows."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import Supervisor
from supervisor.testing import FakeChild, FakeChildren, VirtualClock, assert_receipt

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor import Job, Receipt

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

HOUR: Final = 3600.0
WARM: Final = 6
"""Hours after which all that is remembered is there (`REMEMBERED_JOBS` is made small)."""
OBJECTS: Final = 1000
"""A job that stayed would have a hundred, and there are some ninety of them after the warm-up."""


async def chatty(child: FakeChild, clock: VirtualClock) -> None:
    """Write a line every twenty minutes, and end after the third."""
    for number in range(3):
        await clock.sleep(1200)
        await child.feed(f"line {number}\n".encode())
    child.exit(5)


class Day:
    """One supervisor, and what it owns at each hour."""

    def __init__(self, supervisor: Supervisor, clock: VirtualClock, children: FakeChildren) -> None:
        self.supervisor: Final = supervisor
        self.clock: Final = clock
        self.children: Final = children
        self.told: Final[list[str]] = []
        self.started: Final[list[str]] = []
        self.owned: Final[list[dict[str, int]]] = []

    async def consume(self) -> None:
        """Acknowledge every end."""
        async for completion in self.supervisor.completions():
            self.told.append(completion.receipt.capture_id)
            await completion.acknowledge()

    async def hour(self) -> None:
        """Begin four jobs, of which two end by a limit, see each end in its time, and take stock."""
        clock = self.clock
        jobs = {name: await self._start(name) for name in ("talks", "idles", "lasts", "ends")}
        follower = asyncio.create_task(_text(jobs["talks"]))
        await clock.advance(HOUR + 1)
        receipts = {name: await job.wait() for name, job in jobs.items()}
        _check(receipts)
        assert await follower == "line 0\nline 1\nline 2\n"
        await clock.settle()
        self.children.started.clear()
        gc.collect()
        self.owned.append(
            {
                "objects": len(gc.get_objects()),
                "descriptors": len(os.listdir("/dev/fd")),  # noqa: PTH208 - names
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "alarms": len(clock._alarms),
                "jobs": len(self.supervisor.jobs),
            }
        )

    async def _start(self, name: str) -> Job:
        if name == "talks":
            self.children.expect([name], script=lambda child: chatty(child, self.clock))
        else:
            child = self.children.expect([name])
            if name == "ends":
                child.exit()
        limits = {"talks": {"idle_limit": 1500.0}, "idles": {"idle_limit": 600.0}, "lasts": {"time_limit": 1800.0}}
        job = await self.supervisor.start([name], **limits.get(name, {}))  # type: ignore[arg-type]
        self.started.append(job.capture_id)
        return job


async def _text(job: Job) -> str:
    async with aclosing(job.follow()) as pages:
        return "".join([page.text async for page in pages])


def _check(receipts: dict[str, Receipt]) -> None:
    assert_receipt(receipts["talks"], process="exited", code=5, capture="complete")
    assert receipts["talks"].duration == pytest.approx(HOUR)
    assert_receipt(receipts["idles"], process="timeout", reason="idle-limit", signal=signal.SIGTERM)
    assert receipts["idles"].duration == pytest.approx(600)
    assert_receipt(receipts["lasts"], process="timeout", reason="time-limit", signal=signal.SIGTERM)
    assert receipts["lasts"].duration == pytest.approx(1800)
    assert_receipt(receipts["ends"], process="exited", code=0)


async def test_a_day_of_jobs_leaves_no_more_than_an_hour_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each end comes in its own second and is told once; after the warm-up nothing that is counted becomes more."""
    monkeypatch.setattr("supervisor.supervisor.REMEMBERED_JOBS", 16)
    clock = VirtualClock()
    children = FakeChildren(clock=clock)
    async with Supervisor(tmp_path, spawn=children.spawn, clock=clock, durability="none") as supervisor:
        day = Day(supervisor, clock, children)
        consuming = asyncio.create_task(day.consume())
        whole = await day._start("whole day")  # lives from the first second to the last
        for _ in range(24):
            await day.hour()
        assert not whole.done
        await whole.terminate()
        await clock.settle()
    await consuming
    assert clock.now() == pytest.approx(24 * (HOUR + 1))
    assert sorted(day.told) == sorted(day.started)
    first, last = day.owned[WARM], day.owned[-1]
    more = {name: last[name] - first[name] for name in first}
    assert more.pop("objects") < OBJECTS, day.owned
    assert more.pop("alarms") <= 4, day.owned
    assert more == dict.fromkeys(more, 0), day.owned
