"""What a command used, and who says so (A4, F10)."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from supervisor import Supervisor
from supervisor.process import status

pytestmark = pytest.mark.asyncio

BURN: Final = """
import resource, time
while time.process_time() < 0.3: pass
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""
BOOKED: Final = 0.05
"""Seconds by which the system's two clocks of processor time may differ: it books some of it by ticks."""


async def test_time_is_what_the_child_says_itself() -> None:
    """And what it does after it has said so: the end of an interpreter."""
    async with Supervisor() as supervisor:
        receipt = await supervisor.run([sys.executable, "-S", "-E", "-c", BURN])
    assert receipt.usage is not None
    assert receipt.usage.source == "rusage"
    assert receipt.usage.cpu is not None
    assert float(receipt.stdout) - BOOKED < receipt.usage.cpu < float(receipt.stdout) + 2.0


async def test_a_descendant_counts_once_it_was_waited_for() -> None:
    """A shell's foreground command is the shell's usage; its memory is that of the largest single process."""
    size = 2 * status.peak_of_host() * status.RSS_UNIT
    hungry = f"{BURN}x = b'x' * {size}"
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(["sh", "-c", '"$@"; "$@"; true', "sh", sys.executable, "-S", "-E", "-c", hungry])
    assert receipt.usage is not None
    assert receipt.usage.cpu is not None
    assert receipt.usage.cpu > sum(map(float, receipt.stdout.split())) - BOOKED
    assert receipt.usage.max_rss is not None
    assert size < receipt.usage.max_rss < size + size // 2


async def test_an_orphan_is_not_counted() -> None:
    """wait4(2) tells of a child and of whom it waited for: nobody waits for what a command leaves behind."""
    async with Supervisor() as supervisor:
        command = '"$@" & exit 0'
        receipt = await supervisor.run(
            ["sh", "-c", command, "sh", sys.executable, "-S", "-E", "-c", BURN], drain_timeout=30.0
        )
    assert float(receipt.stdout) > 0.25
    assert receipt.usage is not None
    assert receipt.usage.cpu is not None
    assert receipt.usage.cpu < 0.25
