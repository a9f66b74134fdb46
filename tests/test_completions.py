"""Each started job's end is told once, to one consumer, and again only if that one died over it (E5, D4)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import PIPE, SpawnError, Supervisor, recover

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from conftest import NextOf, NoneIsLeft

    from supervisor import Completion

PROGRAMS: Final = Path(__file__).parent / "programs"
PATIENCE: Final = 30.0
"""Seconds after which a test gives up; nothing waits for it to pass."""


def program(name: str, *arguments: object) -> list[str]:
    """Return the command for a program of tests/programs, with this process's imports."""
    code = "import runpy, sys; sys.path[:] = {!r}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    return [sys.executable, "-c", code.format(sys.path), str(PROGRAMS / f"{name}.py"), *map(str, arguments)]


def killed_host(name: str, *arguments: object) -> list[str]:
    """Run a program until it has said its line, kill it, and return the captures that it named."""
    with subprocess.Popen(program(name, *arguments), stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        line = host.stdout.readline()
        host.kill()
    ids: list[str] = json.loads(line)
    return ids


@pytest.mark.asyncio
async def test_a_completion_is_the_receipt_that_wait_returns_and_comes_after_its_publication(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """It is offered last: by then the receipt is on disk. Waiting and reading have claimed nothing."""
    async with Supervisor(tmp_path) as supervisor:
        job = await supervisor.start(["echo", "text"])
        receipt = await job.wait()
        assert (await job.read()).text == "text\n"
        completion = await next_of(supervisor.completions())
        assert completion.receipt == receipt
        assert not completion.redelivered
        capture = tmp_path / "tool-outputs" / "captures" / job.capture_id
        assert json.loads((capture / "receipt.json").read_bytes())["capture_id"] == job.capture_id
        assert (capture / "delivered").stat().st_mode & 0o777 == 0o600
        await completion.acknowledge()
        await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_a_foreground_run_and_a_command_that_did_not_start_have_none(
    tmp_path: Path, none_is_left: NoneIsLeft
) -> None:
    """The one has told its caller, whatever file it left; the other was never started."""
    async with Supervisor(tmp_path) as supervisor:
        failed = await supervisor.run("echo text; exit 3", shell=True)
        assert failed.streams["stdout"]
        with pytest.raises(SpawnError):
            await supervisor.start(["/does/not/exist"])
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_what_earlier_supervisors_left_comes_first_and_oldest_first(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """Nobody asked for it then, so it is not redelivered; its text can be read."""
    ids = []
    async with Supervisor(tmp_path) as supervisor:
        for text in ("one", "two", "three"):
            job = await supervisor.start(["echo", text])
            await job.wait()
            ids.append(job.capture_id)
    async with Supervisor(tmp_path) as supervisor:
        own = await supervisor.start(["echo", "own"])
        await own.wait()
        completions = supervisor.completions()
        got = [await next_of(completions) for _ in range(4)]
        assert [completion.receipt.capture_id for completion in got] == [*ids, own.capture_id]
        assert not any(completion.redelivered for completion in got)
        assert await got[1].receipt.read_text("stdout") == "two\n"
        for completion in got:
            await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_a_claim_without_acknowledgement_is_redelivered_by_the_next_supervisor_and_never_after(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """The claimer closed, which is a death to its claims; each later owner may be the one that acknowledges."""
    async with Supervisor(tmp_path) as supervisor:
        await supervisor.start(["true"])
        first = await next_of(supervisor.completions())
    async with Supervisor(tmp_path) as supervisor:
        second = await next_of(supervisor.completions())
    async with Supervisor(tmp_path) as supervisor:
        third = await next_of(supervisor.completions())
        assert [first.redelivered, second.redelivered, third.redelivered] == [False, True, True]
    await first.acknowledge()  # of a supervisor that is closed, by who was given it first
    await none_is_left(tmp_path)


@pytest.mark.asyncio
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_consumer_killed_before_it_acknowledged_is_followed_by_one_redelivery(
    tmp_path: Path, loop: str, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """Of two claims only the acknowledged one is settled by the time of the kill."""
    pytest.importorskip(loop)
    acknowledged, claimed, unclaimed = await asyncio.to_thread(killed_host, "killed_consumer", loop, tmp_path)
    async with Supervisor(tmp_path) as supervisor:
        completions = supervisor.completions()
        got = [await next_of(completions) for _ in range(2)]
        offered = {completion.receipt.capture_id: completion.redelivered for completion in got}
        assert offered == {claimed: True, unclaimed: False}
        assert acknowledged not in offered
        for completion in got:
            await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_crashed_jobs_are_offered_once_they_were_recovered(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """Before it there is no receipt to offer; after it each is offered once."""
    ids = await asyncio.to_thread(killed_host, "many_jobs", "asyncio", tmp_path, 3)
    await none_is_left(tmp_path)
    await recover(tmp_path)
    async with Supervisor(tmp_path) as supervisor:
        completions = supervisor.completions()
        got = [await next_of(completions) for _ in ids]
        assert [completion.receipt.capture_id for completion in got] == ids
        for completion in got:
            assert completion.receipt.capture.reason == "supervisor-lost"
            await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_200_jobs_with_five_waiters_and_five_iterators_have_one_completion_each(
    tmp_path: Path, none_is_left: NoneIsLeft
) -> None:
    """Five waiters of each job; four iterators, one of which two tasks share, of two supervisors of one directory."""
    got: Counter[str] = Counter()
    count = 200

    async def consume(completions: AsyncIterator[Completion]) -> None:
        async for completion in completions:
            assert not completion.redelivered
            await completion.acknowledge()
            got[completion.receipt.capture_id] += 1

    async with Supervisor(tmp_path, durability="none") as other, Supervisor(tmp_path, durability="none") as supervisor:
        shared = supervisor.completions()
        iterators = [shared, shared, supervisor.completions(), supervisor.completions(), other.completions()]
        consumers = [asyncio.create_task(consume(iterator)) for iterator in iterators]
        ids: set[str] = set()
        for _ in range(count // 20):
            jobs = [await supervisor.start(["true"]) for _ in range(20)]
            for receipts in await asyncio.gather(*(asyncio.gather(*(job.wait() for _ in range(5))) for job in jobs)):
                assert len({id(receipt) for receipt in receipts}) == 1
            ids |= {job.capture_id for job in jobs}
        async with asyncio.timeout(PATIENCE):
            while len(got) < count:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0)
    await asyncio.gather(*consumers)
    assert set(got) == ids
    assert set(got.values()) == {1}
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_two_live_supervisors_share_what_an_earlier_one_left(tmp_path: Path) -> None:
    """Each is claimed by one of them; a claim of a live owner is not taken over."""
    async with Supervisor(tmp_path) as supervisor:
        jobs = [await supervisor.start(["true"]) for _ in range(20)]
        await supervisor.join()
    got: list[str] = []

    async def consume(supervisor: Supervisor) -> None:
        async for completion in supervisor.completions():
            await completion.acknowledge()
            got.append(completion.receipt.capture_id)

    async with Supervisor(tmp_path) as one, Supervisor(tmp_path) as two:
        consumers = [asyncio.create_task(consume(supervisor)) for supervisor in (one, two)]
        async with asyncio.timeout(PATIENCE):
            while len(got) < len(jobs):  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0)
    await asyncio.gather(*consumers)
    assert sorted(got) == [job.capture_id for job in jobs]


@pytest.mark.asyncio
async def test_a_consumer_that_is_cancelled_at_any_moment_loses_nothing(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """What was claimed for it is offered to the next one, or, if there is none, is not called redelivered later."""
    async with Supervisor(tmp_path) as supervisor:
        for _ in range(2):
            await (await supervisor.start(["true"])).wait()
    async with Supervisor(tmp_path) as supervisor:
        await (await supervisor.start(["true"])).wait()
        got: list[Completion] = []
        for turns in range(60):
            task = asyncio.ensure_future(anext(supervisor.completions()))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                got.append(await task)
                break
        else:
            got.append(await next_of(supervisor.completions()))
        assert len(got) == 1
        assert not got[0].redelivered
        await got[0].acknowledge()
        task = asyncio.ensure_future(anext(supervisor.completions()))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    async with Supervisor(tmp_path) as supervisor:
        completions = supervisor.completions()
        left = [await next_of(completions) for _ in range(2)]
        assert not any(completion.redelivered for completion in left)
        for completion in left:
            await completion.acknowledge()
    await none_is_left(tmp_path)


@pytest.mark.asyncio
async def test_iterators_end_when_the_supervisor_closes_and_what_they_did_not_take_is_left(
    tmp_path: Path, next_of: NextOf
) -> None:
    """One that waits, and one that is asked afterwards; a job that the closing ended is offered by the next one."""
    async with Supervisor(tmp_path) as supervisor:
        completions = supervisor.completions()
        job = await supervisor.start("read _", shell=True, stdin=PIPE)
    with pytest.raises(StopAsyncIteration):
        await anext(completions)
    async with Supervisor(tmp_path) as supervisor:
        completion = await next_of(supervisor.completions())
        assert completion.receipt.capture_id == job.capture_id
        assert completion.receipt.process is not None
        assert completion.receipt.process.reason == "supervisor-shutdown"
        await completion.acknowledge()
        waiting = asyncio.create_task(anext(supervisor.completions()))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await waiting


@pytest.mark.asyncio
async def test_a_job_acknowledged_by_its_caller_is_not_offered(
    tmp_path: Path, next_of: NextOf, none_is_left: NoneIsLeft
) -> None:
    """Before anybody asked, and after somebody did; of another job nothing is taken."""
    async with Supervisor(tmp_path) as supervisor:
        first, second = [await supervisor.start(["true"]) for _ in range(2)]
        await first.acknowledge()
        await first.acknowledge()
        completion = await next_of(supervisor.completions())
        assert completion.receipt.capture_id == second.capture_id
        await second.acknowledge()
    await none_is_left(tmp_path)
