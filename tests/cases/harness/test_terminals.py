"""Reports of pseudo-terminals: an end that is taken for an error, cut characters, a full line discipline (B7, C1)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Limits, Supervisor, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Conversation

    from supervisor.storage import Storage

pytestmark = pytest.mark.asyncio

TERMINAL: Final = Terminal(rows=24, columns=80)
PATIENCE: Final = 30.0


async def test_bug_020_the_last_words_before_eio_are_kept(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-020 (node-pty users: nicobailon/pi-interactive-shell#58): final data is lost, or the job "failed" (F2)."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        for _ in range(10):
            receipt = await (await supervisor.start("echo bye; exit 3", shell=True, pty=TERMINAL)).wait()
            assert (process_of(receipt).state, process_of(receipt).code) == ("exited", 3)
            assert (conversation.text(receipt), receipt.capture.state) == (b"bye\n", "complete")


async def test_bug_025_a_terminal_gives_the_text_that_a_pipe_gives(
    conversation: Conversation, stream_of: Callable[..., Any]
) -> None:
    """BUG-025 (sursaone/bun-pty#32): the reader of a terminal splits a code point at its buffer's edge (C1)."""
    command = [sys.executable, "-S", "-X", "utf8", "-c", "print('xx' + '€' * 4000)"]
    async with Supervisor(conversation.path) as supervisor:
        jobs = [await supervisor.start(command, pty=terminal) for terminal in (TERMINAL, None)]
        receipts = [await job.wait() for job in jobs]
    assert [conversation.text(receipt).decode() for receipt in receipts] == ["xx" + "€" * 4000 + "\n"] * 2
    assert [stream_of(receipt).replaced for receipt in receipts] == [0, 0]


async def test_bug_106_a_child_that_blocks_on_a_full_terminal_can_be_cancelled(
    conversation: Conversation,
    disk: Callable[..., Storage],
    until: Callable[..., Any],
    alive: Callable[[int], bool],
    process_of: Callable[..., Any],
    stream_of: Callable[..., Any],
) -> None:
    """BUG-106 (pty drain class): nobody reads, the child blocks in its write, and a kill waits for ever (B1, F3)."""
    go = threading.Event()

    def write(descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        assert go.wait(PATIENCE)
        return os.writev(descriptor, buffers)

    limits = Limits(queue_bytes=8192, stall_timeout=2 * PATIENCE)
    async with Supervisor(conversation.path, storage=disk(write), limits=limits) as supervisor:
        job = await supervisor.start("head -c 1000000 /dev/zero | tr '\\0' u", shell=True, pty=TERMINAL)
        await until(lambda: stream_of(job.receipt).raw.observed > 8192)
        ending = asyncio.create_task(job.terminate())
        assert job.pid is not None
        await until(lambda: not alive(job.pid))
        go.set()
        receipt = await ending
    assert (process_of(receipt).state, process_of(receipt).signal) == ("cancelled", signal.SIGTERM)
    assert stream_of(receipt).raw.observed < 1_000_000
    assert process_of(receipt).survivors == ()
