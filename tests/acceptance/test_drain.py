"""Exit and end of file are two facts: what a command leaves running delays nothing beyond the drain window (F1, F2)."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio


def kill(pids: Iterable[int]) -> None:
    """Kill what the receipt names, as its reader would."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.realtime
@pytest.mark.parametrize("script", ["sleep 30 & echo hi", "yes & echo hi"], ids=["silent", "writing"])
async def test_a_descendant_that_holds_the_pipe_costs_one_drain_window(conversation: Conversation, script: str) -> None:
    """The command has exited with 0 and is reported so, with its output partial and its leftovers named."""
    began = time.monotonic()
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", script])
    took = time.monotonic() - began
    assert receipt.process is not None
    kill(receipt.process.survivors or ())
    assert 1.0 <= took < 3.0
    assert (receipt.process.state, receipt.process.code, receipt.process.reason) == ("exited", 0, None)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "drain-timeout")
    assert b"hi\n" in conversation.text(receipt)
    assert conversation.published(receipt) == receipt


async def test_a_window_of_zero_still_reads_what_was_there_at_the_exit(conversation: Conversation) -> None:
    """What is in the pipe at the exit is read off the clock (F2)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", "sleep 30 & seq 1 20000; exit 5"], drain_timeout=0)
    assert receipt.process is not None
    kill(receipt.process.survivors or ())
    assert receipt.process.survivors
    assert receipt.process.code == 5
    assert receipt.capture.reason == "drain-timeout"
    assert conversation.text(receipt) == b"".join(b"%d\n" % number for number in range(1, 20001))


async def test_a_daemon_that_closed_its_output_delays_nothing(
    conversation: Conversation, program: Callable[..., list[str]]
) -> None:
    """End of file was real, so the capture is complete, whatever else the command has left running."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("descendant", "daemon", "closed"), drain_timeout=30)
    kill([int(receipt.stdout)])
    assert receipt.process is not None
    assert receipt.process.code == 3
    assert receipt.capture.state == "complete"
    assert receipt.process.survivors == (int(receipt.stdout),)


async def test_a_daemon_that_holds_the_pipe_costs_one_drain_window(
    conversation: Conversation, program: Callable[..., list[str]]
) -> None:
    """It need not be in the group for its pipe to count."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("descendant", "daemon"), drain_timeout=0.1)
    kill([int(receipt.stdout)])
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "drain-timeout")
    assert conversation.text(receipt) == receipt.stdout.encode()
