"""Ending a job ends everything that its command started, wherever it went; what lives on is named (contract F2, F3)."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Supervisor
from supervisor.process import cgroup, proc, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Conversation

    from supervisor.sansio.receipt import ProcessFacts, Receipt

pytestmark = pytest.mark.asyncio

LONG: Final = 60.0
"""Seconds that no test waits for."""
SHAPES: Final = [
    ("session",),
    ("session", "orphan"),
    ("session", "orphan", "closed"),
    ("session", "orphan", "clean"),
    ("session", "orphan", "stopped"),
]
"""How far a descendant goes. One that goes all the way, and holds no pipe, is the subreaper's (tests/process)."""


@pytest.fixture
def kill_later() -> Iterator[list[int]]:
    """Kill these pids when the test is over, whatever it has shown."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether a process is more than a zombie."""
    found = proc.process(pid)
    return found is not None and found.alive


def facts(receipt: Receipt) -> ProcessFacts:
    """Return the process's part."""
    assert receipt.process is not None
    return receipt.process


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
@pytest.mark.parametrize("by", ["cancel", "timeout"])
async def test_a_descendant_that_went_away_ends_with_its_job(
    conversation: Conversation,
    first_text: Callable[..., Any],
    program: Callable[..., list[str]],
    kill_later: list[int],
    shape: tuple[str],
    by: str,
) -> None:
    """TERM reaches it in its own session, under another parent; a stopped one is continued for it."""
    limit = 1.0 if by == "timeout" else None
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            program("escape", *shape, "stay"), kill_after=LONG, window_bytes=1024, time_limit=limit
        )
        pid = int(await first_text(job))
        kill_later.append(pid)
        receipt = await (job.terminate() if by == "cancel" else job.wait())
    assert not alive(pid)
    assert facts(receipt).state == {"cancel": "cancelled", "timeout": "timeout"}[by]
    assert (facts(receipt).forced, facts(receipt).kill_confirmed, facts(receipt).survivors) == (False, True, ())
    assert receipt.capture.state == "complete"
    assert "tree-by-snapshot" in receipt.limitations


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
async def test_what_is_left_at_the_exit_is_ended_if_that_is_wanted(
    conversation: Conversation, program: Callable[..., list[str]], kill_later: list[int], shape: tuple[str]
) -> None:
    """`on_exit="end"`: the command has exited by itself, and is reported so."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("escape", *shape), on_exit="end", kill_after=LONG, drain_timeout=LONG)
    kill_later.append(int(receipt.stdout))
    assert not alive(int(receipt.stdout))
    assert (facts(receipt).state, facts(receipt).code, facts(receipt).reason) == ("exited", 3, None)
    assert (facts(receipt).forced, facts(receipt).survivors, receipt.capture.state) == (False, (), "complete")


async def test_an_exit_that_leaves_nobody_is_an_ordinary_one(conversation: Conversation) -> None:
    """With `on_exit="end"` too: nothing was ended, so nothing is limited, and a last line is whole."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", "printf 'password: '"], on_exit="end")
    assert (facts(receipt).code, receipt.capture.state, receipt.stdout) == (0, "complete", "password: ")
    assert receipt.limitations == ()


async def test_a_descendant_that_ignores_term_is_killed_in_its_own_session(
    conversation: Conversation, first_text: Callable[..., Any], program: Callable[..., list[str]], kill_later: list[int]
) -> None:
    """It has its grace first; the leader that obeyed does not hide it."""
    async with Supervisor(conversation.path) as supervisor:
        command = program("escape", "session", "orphan", "stubborn", "closed", "stay")
        job = await supervisor.start(command, kill_after=0.2, window_bytes=1024)
        pid = int(await first_text(job))
        kill_later.append(pid)
        receipt = await job.terminate()
    assert not alive(pid)
    assert facts(receipt).signal == signal.SIGTERM
    assert (facts(receipt).forced, facts(receipt).kill_confirmed, facts(receipt).survivors) == (True, True, ())


async def test_what_a_command_starts_when_it_is_ended_is_asked_to_end_too(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """It did not live when the tree was signalled, and need not wait for KILL."""
    script = "trap 'setsid sleep 1000 & exit' TERM; echo ready; while :; do sleep 0.05; done"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script], kill_after=LONG, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert (facts(receipt).forced, facts(receipt).kill_confirmed, facts(receipt).survivors) == (False, True, ())


async def test_what_forks_faster_than_it_is_killed_ends(
    conversation: Conversation, first_text: Callable[..., Any], program: Callable[..., list[str]]
) -> None:
    """Four lines of processes, each in a session of its own and orphaned, none older than 20 ms."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("forking", "20"), kill_after=0.1, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert (facts(receipt).kill_confirmed, facts(receipt).survivors) == (True, ())
    subtree = cgroup.usable_subtree()
    if subtree is not None:  # its own alone: other tests have theirs at the same time
        left = subtree / f"spoolvisor-{job._course.request.launch.mark}" / "cgroup.procs"
        assert not left.exists() or not left.read_text()


@pytest.mark.parametrize("shape", SHAPES[1:4], ids="-".join)
async def test_what_is_left_alone_is_named(
    conversation: Conversation, program: Callable[..., list[str]], kill_later: list[int], shape: tuple[str]
) -> None:
    """A survivor of a normal exit lives on; who held the pipe is told apart from who only lives."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("escape", *shape), drain_timeout=0.1)
    pid = int(receipt.stdout)
    kill_later.append(pid)
    assert alive(pid)
    assert facts(receipt).survivors == (pid,)
    assert facts(receipt).holders == (None if "closed" in shape else (pid,))
    assert receipt.limitations == ()


async def test_a_holder_that_nobody_can_see_is_unknown_and_not_nobody(
    conversation: Conversation, program: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that had to be cut proves that somebody lives; one who holds it unseen is another user's (A4)."""
    monkeypatch.setattr(proc, "holders", lambda *_: ())
    monkeypatch.setattr(proc, "marked", lambda *_: False)
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("escape", "session", "orphan"), drain_timeout=0.1)
    os.kill(int(receipt.stdout), signal.SIGKILL)
    assert receipt.capture.reason == "drain-timeout"
    assert (facts(receipt).survivors, facts(receipt).holders) == (None, None)


async def test_where_nobody_can_see_processes_the_group_is_ended_and_nothing_is_claimed(
    conversation: Conversation, first_text: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS, and a /proc that is not mounted: null and a limitation, never "nobody" (A4)."""
    monkeypatch.setattr(proc, "process", lambda *_: None)
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "sleep 1000 & echo ready; wait"], window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert (facts(receipt).state, receipt.capture.state) == ("cancelled", "complete")
    assert (facts(receipt).kill_confirmed, facts(receipt).survivors, facts(receipt).holders) == (None, None, None)
    assert receipt.limitations == ("tree-by-group",)


async def test_the_jobs_of_one_supervisor_are_strangers_to_each_other(
    conversation: Conversation, first_text: Callable[..., Any], program: Callable[..., list[str]], kill_later: list[int]
) -> None:
    """One ends with its daemon, and neither the other nor its daemon is touched."""
    command = program("escape", "session", "orphan", "stay")
    async with Supervisor(conversation.path) as supervisor:
        jobs = [await supervisor.start(command, window_bytes=1024) for _ in range(2)]
        first, second = [int(await first_text(job)) for job in jobs]
        kill_later += (first, second)
        await jobs[0].terminate()
        assert [alive(pid) for pid in (first, second, jobs[1].pid or 0)] == [False, True, True]
        await jobs[1].terminate()
    assert not alive(second)


async def test_a_supervisor_inside_a_command_does_not_hide_its_children(
    conversation: Conversation, first_text: Callable[..., Any], host_program: Callable[..., list[str]]
) -> None:
    """The inner job adds its mark behind the outer's; the outer ending reaches both."""
    inner = host_program("nested_host", "asyncio")
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(inner, kill_after=0, window_bytes=1024)
        pid = int(await first_text(job))
        assert alive(pid)
        receipt = await job.terminate()
    assert not alive(pid)
    assert (facts(receipt).state, facts(receipt).survivors) == ("cancelled", ())


async def test_a_tree_that_is_gone_costs_no_grace(conversation: Conversation) -> None:
    """A cancel is over when everybody has ended, however long the grace is."""
    began = time.monotonic()
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sleep", "1000"], kill_after=LONG)
        await job.terminate()
    assert time.monotonic() - began < LONG / 4
    assert not tree.LEADERS
