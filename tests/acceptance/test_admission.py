"""How many jobs live at once, and what becomes of the next one (F9)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import PIPE, Limits, SpawnError, Supervisor, SupervisorClosed, TooManyJobs
from supervisor.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from conftest import Conversation

    from supervisor import Job

pytestmark = pytest.mark.asyncio


def one_at_a_time(conversation: Conversation, **more: Any) -> Supervisor:  # noqa: ANN401 - the supervisor's own
    """Return a supervisor with one place and a queue."""
    return Supervisor(conversation.path, limits=Limits(max_jobs=1), admission="queue", **more)


async def ended(job: Job) -> None:
    """End a `cat` by its end of file, and wait for its receipt."""
    await job.write_eof()
    assert (await job.wait()).ok


@asynccontextmanager
async def queue_of(supervisor: Supervisor, *labels: str) -> AsyncGenerator[tuple[Job, list[asyncio.Task[Job]]]]:
    """Give the job that has the place, and the tasks of starts that wait behind it, in their order."""
    first = await supervisor.start(["cat"], stdin=PIPE)
    tasks = [asyncio.ensure_future(supervisor.start(["cat"], stdin=PIPE, label=label)) for label in labels]
    while supervisor.waiting < len(labels):  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0)
    yield first, tasks


async def test_a_word_that_does_not_exist_is_refused() -> None:
    """At once."""
    with pytest.raises(ValueError, match="admission"):
        Supervisor(admission="evict")  # type: ignore[arg-type]


async def test_the_default_refuses() -> None:
    """Nobody waits who did not ask for it."""
    async with Supervisor(limits=Limits(max_jobs=1)) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        with pytest.raises(TooManyJobs):
            await supervisor.start(["true"])
        assert supervisor.waiting == 0
        await ended(job)


async def test_starts_wait_in_order_and_no_newcomer_overtakes(conversation: Conversation) -> None:
    """Also one that asks in the moment in which a job gives its place back."""
    async with one_at_a_time(conversation) as supervisor, queue_of(supervisor, "b", "c") as (first, waiting):
        assert [job.id for job in supervisor.jobs] == [first.id]
        await first.write_eof()
        await first.wait()
        waiting.append(asyncio.ensure_future(supervisor.start(["cat"], stdin=PIPE, label="d")))
        for number, task in enumerate(waiting):
            job = await task
            assert [later.done() for later in waiting[number + 1 :]] == [False] * (2 - number)
            assert job.receipt.label == "bcd"[number]
            await ended(job)
    assert len(conversation.captures()) == 4


async def test_many_runs_never_are_more_than_the_places(conversation: Conversation) -> None:
    """All of them end, two at a time."""
    limits = Limits(max_jobs=2)
    seen: list[int] = []
    async with Supervisor(conversation.path, limits=limits, admission="queue") as supervisor:

        async def run(number: int) -> str:
            receipt = await supervisor.run(["echo", str(number)])
            seen.append(sum(not job.done for job in supervisor.jobs))
            return receipt.stdout

        texts = await asyncio.gather(*(run(number) for number in range(12)))
    assert texts == [f"{number}\n" for number in range(12)]
    assert max(seen) <= 2


async def test_a_wrong_argument_is_raised_before_the_queue(conversation: Conversation) -> None:
    """It needs no place to be wrong."""
    async with one_at_a_time(conversation) as supervisor, queue_of(supervisor) as (first, _):
        with pytest.raises(ValueError, match="empty"):
            await supervisor.run([])
        assert supervisor.waiting == 0
        await ended(first)


async def test_a_cancelled_wait_leaves_nothing_and_passes_its_turn_on(conversation: Conversation) -> None:
    """No job, no capture, no place; the cancellation goes on."""
    async with one_at_a_time(conversation) as supervisor, queue_of(supervisor, "b", "c") as (first, (b, c)):
        b.cancel()
        with pytest.raises(asyncio.CancelledError):
            await b
        assert supervisor.waiting == 1
        await ended(first)
        await ended(await c)
        assert [job.receipt.label for job in supervisor.jobs] == [None, "c"]
    assert len(conversation.captures()) == 2


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_that_meets_the_free_place_loses_neither(conversation: Conversation, turns: int) -> None:
    """However many turns of the loop lie between: the cancelled start raises, and the next one comes in."""
    async with one_at_a_time(conversation) as supervisor, queue_of(supervisor, "b", "c") as (first, (b, c)):
        await first.write_eof()
        await first.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        b.cancel()
        with pytest.raises(asyncio.CancelledError):
            await b
        await ended(await c)
        assert (await supervisor.run(["true"])).ok
    assert supervisor.waiting == 0


async def test_a_time_limit_begins_with_the_process(conversation: Conversation) -> None:
    """An hour in the queue is no part of ten seconds."""
    clock = VirtualClock()
    async with one_at_a_time(conversation, clock=clock) as supervisor, queue_of(supervisor) as (first, _):
        second = asyncio.ensure_future(supervisor.run(["true"], time_limit=10.0, idle_limit=10.0))
        while not supervisor.waiting:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
        await clock.advance(3600)
        assert supervisor.waiting == 1
        await ended(first)
        receipt = await second
    assert receipt.ok
    assert receipt.duration == 0


async def test_a_command_that_cannot_start_gives_its_place_back(conversation: Conversation) -> None:
    """Its receipt is settled then, and the next one starts."""
    async with one_at_a_time(conversation) as supervisor:
        failures = [supervisor.run(["/no/such/program"]) for _ in range(3)]
        errors = await asyncio.gather(*failures, return_exceptions=True)
        assert [type(error) for error in errors] == [SpawnError] * 3
        assert (await supervisor.run(["true"])).ok


async def test_closing_sends_waiting_starts_away(conversation: Conversation) -> None:
    """One clear error for each; nothing of them is left."""
    supervisor = one_at_a_time(conversation)
    async with supervisor, queue_of(supervisor, "b", "c") as (first, waiting):
        pass
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [SupervisorClosed] * 2
    assert first.receipt.process is not None
    assert first.receipt.process.reason == "supervisor-shutdown"
    assert len(conversation.captures()) == 1
    with pytest.raises(SupervisorClosed):
        await supervisor.run(["true"])


async def test_joining_waits_for_starts_that_wait(conversation: Conversation) -> None:
    """They are jobs to be, and the last one gives its place back before it returns."""
    async with one_at_a_time(conversation) as supervisor:
        runs = [asyncio.ensure_future(supervisor.run(["echo", "x"])) for _ in range(3)]
        await asyncio.sleep(0)
        await supervisor.join()
        assert supervisor.waiting == 0
        assert all([(await run).ok for run in runs])
        assert not [job for job in supervisor.jobs if not job.done]


async def test_joining_waits_for_a_place_that_is_passed_on(conversation: Conversation) -> None:
    """A start that is cancelled with its place in hand makes no moment in which nothing seems to be left."""
    async with one_at_a_time(conversation) as supervisor, queue_of(supervisor, "b", "c") as (first, (b, c)):
        joining = asyncio.ensure_future(supervisor.join())
        await first.write_eof()
        await first.wait()
        b.cancel()
        job = await c
        await asyncio.sleep(0)
        assert not joining.done()
        await ended(job)
        await joining
        with pytest.raises(asyncio.CancelledError):
            await b
