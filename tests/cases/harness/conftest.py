"""What the agent harnesses' reports share: facts without an Optional, leftovers that are ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor import Receipt
    from supervisor.sansio.receipt import ProcessFacts, StreamFacts


@pytest.fixture
def process_of() -> Callable[[Receipt], ProcessFacts]:
    """Return a function that gives the facts about the process of a receipt."""

    def process(receipt: Receipt) -> ProcessFacts:
        assert receipt.process is not None
        return receipt.process

    return process


@pytest.fixture
def stream_of() -> Callable[..., StreamFacts]:
    """Return a function that gives the facts about a stream of a receipt."""

    def stream(receipt: Receipt, name: str = "stdout") -> StreamFacts:
        facts = receipt.streams[name]  # type: ignore[index]
        assert facts is not None
        return facts

    return stream


@pytest.fixture
def end_leftovers() -> Callable[[Receipt], None]:
    """Return a function that kills what a receipt names as left alive, as its reader would."""

    def end(receipt: Receipt) -> None:
        assert receipt.process is not None
        for pid in {*(receipt.process.survivors or ()), *(receipt.process.holders or ())}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    return end


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Return a function that tells whether a process lives; a zombie does not."""

    def lives(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return stat[stat.rindex(b")") + 2 :][:1] not in b"ZXx"

    return lives
