"""How a child ended is told as it was, or not at all, whatever the rest of the program does (A2-A4, F4, F10)."""

# ruff: noqa: ASYNC222, ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Receipt, Supervisor
from supervisor.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

TRUE_OR_LOST: Final = {("exited", 9, None), ("unknown", None, "status-lost")}
"""The kernel files the status with the pidfd since Linux 6.15; before it, nobody can know."""


def ending(receipt: Receipt) -> tuple[str, int | None, str | None]:
    """Return state, code and reason."""
    assert receipt.process is not None
    return receipt.process.state, receipt.process.code, receipt.process.reason


class SteppedClock(SystemClock):
    """The machine's clock, whose time of day is set back by an hour at each look."""

    def __init__(self) -> None:
        self._back = timedelta(0)

    def wall(self) -> datetime:
        """Return the time of day."""
        self._back += timedelta(hours=1)
        return datetime.now(UTC) - self._back


async def test_h5_027_ignored_sigchld_never_becomes_255(conversation: Conversation) -> None:
    """H5-027 (python/cpython#76296): the host's own starter ignored SIGCHLD, and each command "exited with 255"."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        async with Supervisor(conversation.path) as supervisor:
            receipts = [await supervisor.run(["sh", "-c", "echo out; exit 9"]) for _ in range(5)]
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert {ending(receipt) for receipt in receipts} <= TRUE_OR_LOST
    assert {receipt.stdout for receipt in receipts} == {"out\n"}


async def test_h5_028_a_stolen_status_never_becomes_a_success(conversation: Conversation) -> None:
    """H5-028 (python/cpython#84259): somebody's `waitpid(-1)` took the status; "0" or "255" was reported."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "read line; exit 9"], stdin=PIPE)
        assert job.pid is not None
        await job.write(b"go\n")
        assert os.waitpid(-1, 0)[0] == job.pid  # quicker than the loop, which has no turn meanwhile
        receipt = await job.wait()
    assert ending(receipt) in TRUE_OR_LOST
    assert not receipt.ok


async def test_h5_031_a_sibling_that_fails_during_a_start_is_what_the_caller_gets(conversation: Conversation) -> None:
    """H5-031 (python/cpython#133536): the program hung for ever; here the start is undone and the error goes on."""

    async def fail() -> None:
        raise LookupError("the sibling's")

    async def together(*coroutines: Coroutine[Any, Any, object]) -> None:
        async with asyncio.TaskGroup() as group:
            for coroutine in coroutines:
                group.create_task(coroutine)

    async with asyncio.timeout(30), Supervisor(conversation.path) as supervisor:
        with pytest.raises(ExceptionGroup) as caught:
            await together(supervisor.start(["sleep", "60"], stdin=PIPE), fail())
        assert [type(error) for error in caught.value.exceptions] == [LookupError]
        await supervisor.join()
        assert "".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")) == ""


async def test_h5_032_a_job_that_nobody_holds_leaves_no_zombie(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """H5-032 (tokio-rs/tokio#2685): a dropped handle's child stayed a zombie until the next spawn."""
    async with Supervisor(conversation.path) as supervisor:
        pid = (await supervisor.start(["sleep", "60"])).pid
        assert pid is not None
        gc.collect()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_h5_073_a_job_that_our_shutdown_ended_did_not_fail(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """H5-073 (gitmoot/gitmoot#1726): recorded as "exit 143"; who asked and what was seen are two facts."""
    script = "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done"
    async with Supervisor(conversation.path) as supervisor:
        obeys = await supervisor.start(["sh", "-c", "echo ready; exec sleep 60"], window_bytes=1024)
        handles = await supervisor.start(["sh", "-c", script], window_bytes=1024)
        for job in (obeys, handles):
            await first_text(job)
    assert ending(obeys.receipt) == ("cancelled", None, "supervisor-shutdown")
    assert obeys.receipt.process is not None
    assert obeys.receipt.process.signal == signal.SIGTERM
    assert ending(handles.receipt) == ("cancelled", 143, "supervisor-shutdown")
    assert conversation.published(handles.receipt) == handles.receipt


async def test_h5_075_a_clock_that_is_set_back_moves_no_deadline(conversation: Conversation) -> None:
    """H5-075 (Supervisor/supervisor 3.3.1): waits by the time of day hung for hours, and uptimes were negative."""
    async with asyncio.timeout(30), Supervisor(conversation.path, clock=SteppedClock()) as supervisor:
        receipt = await supervisor.run(["sleep", "60"], time_limit=0.2)
    assert ending(receipt) == ("timeout", None, "time-limit")
    assert receipt.started_at is not None
    assert receipt.ended_at is not None
    assert receipt.ended_at < receipt.started_at  # it is shown as the clock had it
    assert receipt.duration is not None
    assert 0.2 <= receipt.duration < 30


@pytest.mark.parametrize("call", ["waitid", "wait4"])
async def test_h5_029_an_unknown_error_of_a_wait_is_no_endless_loop(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """H5-029 (python/cpython#151179): the child watcher let no error but ECHILD go, and spun or leaked its pidfd."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    async with asyncio.timeout(30), Supervisor(conversation.path) as supervisor:
        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuse)
            job = await supervisor.start(["sh", "-c", "echo out; exit 9"])
            receipt = await job.wait()
    assert job.pid is not None
    with suppress(ChildProcessError):
        os.waitpid(job.pid, 0)
    assert ending(receipt) == (("unknown", None, "status-lost") if call == "waitid" else ("exited", 9, None))
    assert conversation.text(receipt) == b"out\n"
