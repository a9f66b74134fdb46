"""The ends of pipes by themselves: they wait without a loop of their own, and close under whoever waits."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from supervisor.testing import pipes
from supervisor.testing.pipes import ReadEnd, WriteEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.asyncio

FULL = b"x" * 1_000_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Return the two ends of a pipe; the test closes them through what it makes of them."""
    ends = os.pipe()
    yield ends
    for descriptor in ends:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def ends_of(pipe: tuple[int, int]) -> tuple[ReadEnd, WriteEnd]:
    """Return them as ends."""
    loop = asyncio.get_running_loop()
    return ReadEnd(loop, pipe[0]), WriteEnd(loop, pipe[1])


async def test_all_that_is_written_is_read_up_to_the_end(pipe: tuple[int, int]) -> None:
    """More than the pipe holds, in pieces of any size, and less than was asked for only at the end."""
    reading, writing = ends_of(pipe)
    task = asyncio.create_task(writing.write(FULL))
    assert await reading.read(0) == b""
    parts = [await reading.read(size) for size in (1, 70_000, 3)]
    assert [len(part) for part in parts] == [1, 70_000, 3]
    rest = asyncio.create_task(reading.read(None))
    await task
    writing.close(RuntimeError("closed"))
    assert b"".join(parts) + await rest == FULL == bytes(reading.received)
    assert await reading.read(10) == b""
    reading.close(RuntimeError("closed"))


async def test_whoever_waits_does_not_try_again_and_again(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full pipe costs two tries: what went in, and what did not; and nothing is watched afterwards."""
    real, tries = pipes.write_without_sigpipe, 0

    def counted(descriptor: int, data: bytearray) -> int:
        nonlocal tries
        tries += 1
        return real(descriptor, data)

    monkeypatch.setattr(pipes, "write_without_sigpipe", counted)
    reading, writing = ends_of(pipe)
    task = asyncio.create_task(writing.write(b"x" * 100_000))
    for _ in range(100):
        await asyncio.sleep(0)
    assert tries == 2
    assert len(await reading.read(100_000)) == 100_000
    await task
    loop = asyncio.get_running_loop()
    assert not loop.remove_writer(pipe[1])
    assert not loop.remove_reader(pipe[0])
    for end in (reading, writing):
        end.close(RuntimeError("closed"))


async def test_closing_wakes_whoever_waits(pipe: tuple[int, int]) -> None:
    """All of them, with the reason of the first `close`, in an exception of their own."""
    reading, writing = ends_of(pipe)
    tasks = [asyncio.create_task(writing.write(FULL)) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writing.closed
    writing.close(BrokenPipeError("over"))
    writing.close(RuntimeError("later"))
    assert writing.closed
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [(type(outcome), str(outcome)) for outcome in outcomes] == [(BrokenPipeError, "over")] * 2
    assert outcomes[0] is not outcomes[1]
    waiting = asyncio.create_task(reading.read(len(FULL)))
    await waiting
    reading.close(RuntimeError("read"))
    with pytest.raises(RuntimeError, match="read"):
        await reading.read(1)


async def test_writing_to_nobody_is_a_broken_pipe(pipe: tuple[int, int]) -> None:
    """The system's own answer, for one that waits already and for the next one."""
    reading, writing = ends_of(pipe)
    task = asyncio.create_task(writing.write(FULL))
    for _ in range(10):
        await asyncio.sleep(0)
    reading.close(RuntimeError("read"))
    async with asyncio.timeout(10):
        with pytest.raises(BrokenPipeError):
            await task
        with pytest.raises(BrokenPipeError):
            await writing.write(b"x")
    writing.close(RuntimeError("closed"))
