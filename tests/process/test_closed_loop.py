"""A host that closed its loop over a living child: what is left is still given back (contract F6, F10)."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop

from supervisor.process import Launch, spawn

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def descriptors() -> set[str]:
    """This process's open descriptors, each with what it is."""
    found: set[str] = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own
            found.add(f"{link.name} {link.readlink()}")
    return found


@pytest.mark.parametrize("new_loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("reading", [False, True], ids=["paused", "reading"])
def test_closing_a_child_after_its_loop_kills_it_and_closes_everything(
    new_loop: Callable[[], asyncio.AbstractEventLoop], *, reading: bool
) -> None:
    """A child that is collected with its loop gone leaves no descriptor, and no process that writes into nothing."""
    before = descriptors()
    loop = new_loop()
    child = loop.run_until_complete(spawn(asyncio.SubprocessProtocol(), Launch(("sleep", "60"), stdin="pipe")))
    if reading:
        for reader in child.readers.values():
            reader.resume_reading()
    loop.close()
    try:
        child.close()
        assert descriptors() <= before
        with suppress(ChildProcessError):  # it was quick, and reaped
            assert os.waitid(os.P_PID, child.get_pid(), os.WEXITED | os.WNOWAIT)
    finally:
        with suppress(ProcessLookupError):
            os.kill(child.get_pid(), signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child.get_pid(), 0)
