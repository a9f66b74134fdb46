"""Cancelling at every point of a job's way: nothing of it is left, and its receipt says what happened (F5)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import SpawnError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import CoroutineType

    from conftest import Conversation

    from supervisor import Job, Receipt

pytestmark = pytest.mark.asyncio

COMMAND: Final = ["sh", "-c", "echo out; echo err >&2; exit 3"]
MOST_POINTS: Final = 500
"""A job has a few dozen; without an end, a defect would make the test run for ever."""


def whereabouts(task: asyncio.Task[Any]) -> tuple[str, ...]:
    """Return the lines at which a task's coroutines wait, outermost first."""
    lines: list[str] = []
    coroutine: CoroutineType[Any, Any, Any] | None = task.get_coro()  # type: ignore[assignment]
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        lines.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
        coroutine = getattr(coroutine, "cr_await", None)
    return tuple(lines)


async def cancel_at(point: int, times: int, way: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
    """Cancel `way` when its job has moved on `point` times, and again at each turn of the loop; return its ended task.

    "Moved on" means that any task of the program waits somewhere else than a turn of the loop before, so each await of
    each task is a point, however many turns of the loop it lasts.
    """
    task = asyncio.create_task(way)
    seen: set[tuple[str, ...]] = set()
    moved = 0
    while not task.done() and moved < point:
        await asyncio.sleep(0)
        now = {whereabouts(other) for other in asyncio.all_tasks() if other is not asyncio.current_task()}
        moved += now != seen
        seen = now
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    return task


def descriptors() -> int:
    """Return how many descriptors are open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> set[str]:
    """Return the pids of our children, zombies included."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


async def assert_nothing_left(before: int, point: int) -> None:
    """Check that no task of the job, no descriptor and no child is left the moment that the caller is told."""
    left = {whereabouts(task) for task in asyncio.all_tasks() - {asyncio.current_task()}}
    assert not left, (point, left)
    await asyncio.sleep(0)  # the transport's last word, connection_lost, is queued
    assert descriptors() == before, point


def assert_says_so(conversation: Conversation, receipt: Receipt, point: int) -> None:
    """Check that the receipt is settled, published, and either of a cancellation or of an exit that came first."""
    assert receipt.process is not None
    facts = (receipt.process.state, receipt.process.reason, receipt.process.code)
    assert facts in {("cancelled", "caller", None), ("cancelled", "caller", 3), ("exited", None, 3)}, (point, facts)
    assert receipt.capture.state == "complete", (point, receipt.capture)
    assert receipt.process.survivors in {(), None}
    assert conversation.published(receipt) == receipt
    assert b"out\n".startswith(conversation.text(receipt))


async def sweep(
    conversation: Conversation, times: int, way: Callable[[Supervisor], Coroutine[Any, Any, object]]
) -> int:
    """Cancel at the first point, the second, ... until the way is over before it is cancelled; return the points."""
    async with Supervisor(conversation.path) as supervisor:
        await supervisor.run(["true"])
        await asyncio.sleep(0)
        before = descriptors()
        for point in range(MOST_POINTS):
            known = set(supervisor.jobs)
            task = await cancel_at(point, times, way(supervisor))
            if not task.cancelled():
                assert task.exception() is None
                for job in supervisor.jobs:
                    await job.wait()
                return point
            await assert_nothing_left(before, point)
            for job in set(supervisor.jobs) - known:
                assert_says_so(conversation, job.receipt, point)
    raise AssertionError("it was never over before the cancellation")


@pytest.mark.parametrize("times", [1, 2])
async def test_a_run_that_is_cancelled_anywhere_leaves_nothing(conversation: Conversation, times: int) -> None:
    """Once, or again while the ending is under way."""
    points = await sweep(conversation, times, lambda supervisor: supervisor.run(COMMAND))
    assert points > 8
    assert not children()
    receipts = [path / "receipt.json" for path in conversation.captures()]
    assert receipts
    assert all(path.is_file() for path in receipts)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_start_that_is_cancelled_anywhere_leaves_nothing(conversation: Conversation, times: int) -> None:
    """The tree is ended and its capture is published; nothing goes on that nobody has a handle of."""
    points = await sweep(conversation, times, lambda supervisor: supervisor.start(COMMAND))
    assert points > 4
    assert not children()
    assert all((path / "receipt.json").is_file() for path in conversation.captures())


async def test_a_failing_start_that_is_cancelled_anywhere_leaves_nothing(conversation: Conversation) -> None:
    """A command that cannot start has nothing to settle, cancelled or not (F6)."""

    async def way(supervisor: Supervisor) -> None:
        with pytest.raises(SpawnError):
            await supervisor.start(["/no/such/program"])

    assert await sweep(conversation, 1, way) > 2
    for path in conversation.captures():  # of cancellations that came before the spawn was tried
        assert (path / "receipt.json").is_file()


async def test_cancelling_a_wait_leaves_the_job_alone(conversation: Conversation) -> None:
    """Any number of waits may come and go, and one that stays gets the same receipt (F5)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin="pipe")
        waits = [asyncio.create_task(wait()) for wait in (job.wait, job.wait, supervisor.join)]
        staying = asyncio.create_task(job.wait())
        await asyncio.sleep(0)
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
        assert all(wait.cancelled() for wait in waits)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await job.wait()
        await job.write(b"still there\n")
        await job.write_eof()
        receipt = await staying
        assert await job.wait() is receipt
    assert receipt.ok
    assert receipt.stdout == "still there\n"


async def test_cancelling_a_terminate_lets_the_ending_go_on(
    conversation: Conversation, program: Callable[..., list[str]], first_text: Callable[[Job], Any]
) -> None:
    """Only the wait for it ends."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("stubborn"), kill_after=0.2, window_bytes=1024)
        await first_text(job)
        ending = asyncio.create_task(job.terminate())
        await asyncio.sleep(0)
        ending.cancel()
        receipt = await job.wait()
    assert ending.cancelled()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.signal) == ("cancelled", 9)


async def test_cancelling_the_supervisors_own_task_closes_it_first(
    conversation: Conversation, first_text: Callable[[Job], Any]
) -> None:
    """The block's end is completed, however often it is cancelled, and the cancellation then goes on (F10)."""
    jobs: list[Job] = []
    ready = asyncio.Event()

    async def host() -> None:
        async with Supervisor(conversation.path) as supervisor:
            jobs.append(await supervisor.start(["sh", "-c", "echo ready; exec sleep 60"], window_bytes=1024))
            await first_text(jobs[0])
            ready.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(host())
    await ready.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    assert task.cancelled()
    receipt = jobs[0].receipt
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("cancelled", "supervisor-shutdown")
    assert conversation.published(receipt) == receipt
