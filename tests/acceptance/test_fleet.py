"""Many commands that live at the same time: each receipt is complete and right (F9)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import PIPE, Limits, Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Conversation

FLEET: Final = 1000 if os.environ.get("CRASH_TESTS") == "full" else 100
DESCRIPTORS: Final = 12
"""More than a job has while it lives: three pipes, a pidfd, and its capture's directory and files."""
LINES: Final = 100


@pytest.fixture
def room() -> Iterator[None]:
    """Have as many descriptors as may be had, if they are enough."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < FLEET * DESCRIPTORS:
        pytest.skip("too few descriptors for so many jobs")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], FLEET * DESCRIPTORS), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.asyncio
@pytest.mark.usefixtures("room")
async def test_every_receipt_of_a_fleet_is_complete_and_right(conversation: Conversation) -> None:
    """Each has its own name in every line, and all of them live before the first one may end."""
    async with Supervisor(conversation.path, limits=Limits(conversation_bytes=1 << 30)) as supervisor:
        command = f'seq -f "$0 %g" {LINES}; read _ || :'
        starts = [supervisor.start(["sh", "-c", command, f"ship-{n}"], stdin=PIPE) for n in range(FLEET)]
        jobs = await asyncio.gather(*starts)
        assert not any(job.done for job in jobs)
        for job in jobs:
            await job.write_eof()
        receipts = [(await job.wait()).check() for job in jobs]
    for number, receipt in enumerate(receipts):
        text = "".join(f"ship-{number} {line}\n" for line in range(1, LINES + 1)).encode()
        stream = receipt.streams["stdout"]
        assert stream is not None
        assert receipt.capture.state == "complete"
        assert (stream.lines, stream.sha256) == (LINES, hashlib.sha256(text).hexdigest())
        assert conversation.text(receipt) == text
