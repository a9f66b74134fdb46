"""A child has its three descriptors and none of its siblings' or of the host's (F10)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from supervisor import PIPE, Supervisor
from supervisor.process import native

if TYPE_CHECKING:
    from conftest import Conversation

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("way", ["subprocess", "native"])
async def test_no_descriptor_leaks_into_a_child_however_many_start(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Also where the host has left some inheritable by mistake. `ls` has one more for what it lists."""
    monkeypatch.setattr(native, "signal_oddities", lambda: ("ignored-signals",) if way == "native" else ())
    with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as other:
        for file in (one, other):
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - the system's own signature
        high = os.dup2(one.fileno(), 200, inheritable=True)
        try:
            async with Supervisor(conversation.path) as supervisor:
                living = [await supervisor.start(["cat"], stdin=PIPE) for _ in range(3)]
                lists = [supervisor.run(["ls", "/proc/self/fd"], merge=number % 2 == 0) for number in range(12)]
                texts = [receipt.stdout for receipt in await asyncio.gather(*lists)]
                for job in living:
                    await job.write_eof()
                await supervisor.join()
        finally:
            os.close(high)
    assert texts == ["0\n1\n2\n3\n"] * 12
    assert all(job.receipt.ok for job in living)  # nobody else held their stdin open
