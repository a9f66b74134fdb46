"""A fake child where the program under test asks for a terminal."""

from __future__ import annotations

import pytest

from supervisor import PIPE, Supervisor, Terminal
from supervisor.testing import FakeChild


@pytest.mark.asyncio
async def test_a_fake_child_has_merged_pipes_in_its_place() -> None:
    """One stream, without echo or line ends; a size is asked for and told to nobody."""
    child = FakeChild()
    async with Supervisor(spawn=child.spawn) as supervisor:
        job = await supervisor.start(["program"], pty=Terminal(50, 132), stdin=PIPE)
        assert (await child.started()).pty == Terminal(50, 132)
        await job.write(b"typed\n")
        assert await child.read_stdin(6) == b"typed\n"
        await job.resize(24, 80)
        await child.feed(b"out\n")
        await child.feed(b"err\n", "stderr")
        child.exit(0)
        receipt = await job.wait()
    assert receipt.stdout == "out\nerr\n"
    assert receipt.streams["stderr"] is None
