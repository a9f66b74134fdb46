"""What a reader inside the process is told without a file; the whole way is tested in tests/acceptance (A7)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from supervisor import StorageError, following
from supervisor.sansio.receipt import CaptureFacts, PreviewFacts, Receipt, StreamFacts

CAPTURE = "20260101T000000000000Z-" + "0" * 32


@pytest.mark.asyncio
async def test_a_clipped_inline_text_is_never_passed_off_as_the_whole() -> None:
    """A receipt that had to be trimmed does not carry its text, and no file does (E6)."""
    facts = StreamFacts(state="complete", access="inline", preview=PreviewFacts(state="clipped", head="be", tail="nd"))
    streams: dict[Any, StreamFacts | None] = {"stdout": facts, "stderr": None}
    settled = asyncio.get_running_loop().create_future()
    settled.set_result(Receipt(capture_id=CAPTURE, capture=CaptureFacts(state="complete"), streams=streams))
    course: Any = SimpleNamespace(capture_id=CAPTURE, settled=settled)
    with pytest.raises(StorageError, match="whole text"):
        await following.read(course, "stdout", None, 100)
