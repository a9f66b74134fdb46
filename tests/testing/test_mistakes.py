"""A test that is written wrongly does not pass: each slip is told where it stands, in words."""

from __future__ import annotations

import asyncio
import errno
import math
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Supervisor
from supervisor.testing import (
    FailingStorage,
    FakeChild,
    FakeChildren,
    UnexpectedCommand,
    VirtualClock,
    assert_receipt,
    delay,
    exit_with,
    ignore,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio

PATIENCE = 10.0
"""Seconds after which a test gives up; nothing waits for it to pass."""


async def test_a_child_writes_bytes_to_stdout_or_stderr() -> None:
    """Told before the start too, which such a step does not wait for."""
    child: Any = FakeChild()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(TypeError, match="writes bytes, not str"):
            await child.feed("text")
        with pytest.raises(ValueError, match="stdout or stderr, not 'stdotu'"):
            await child.feed(b"text", "stdotu")
    with pytest.raises(ValueError, match="stdout or stderr, not 'stdin'"):
        child.close("stdin")


@pytest.mark.parametrize("code", ["0", 256, -1, 1.5])
async def test_a_code_is_a_small_number(code: Any) -> None:  # noqa: ANN401 - what it may not be
    """What it was instead is shown."""
    with pytest.raises(ValueError, match=f"0 to 255, not {code!r}"):
        FakeChild().exit(code)


@pytest.mark.parametrize("reaction", [exit_with, ignore, None, 3])
async def test_a_reaction_is_made_by_a_call(reaction: Any) -> None:  # noqa: ANN401 - as above
    """One that was not called would otherwise be none, and the signal ignored."""
    with pytest.raises(TypeError, match="by calling"):
        FakeChild().on_signal(signal.SIGTERM, reaction)
    if reaction is not None:
        with pytest.raises(TypeError, match="by calling"):
            delay(1, reaction)


async def test_a_signal_that_does_not_exist_is_not_waited_for() -> None:
    """Nor one that has no number."""
    child: Any = FakeChild()
    for wrong in (999, "SIGTERM"):
        with pytest.raises(ValueError, match=str(wrong)):
            await child.received(wrong)


async def test_a_signal_that_cannot_come_any_more_is_not_waited_for(play: Callable[..., Any]) -> None:
    """The child has ended: by the supervisor, or by its script; a signal that it took is there all the same."""
    async with play() as (child, job):
        waiting = asyncio.create_task(child.received(signal.SIGUSR1))
        await job.terminate()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(BrokenPipeError, match="ended by signal 15"):
                await waiting
        await child.received(signal.SIGTERM)
    async with play() as (child, job):
        waiting = asyncio.create_task(child.received(signal.SIGTERM))
        await asyncio.sleep(0)
        child.exit(0)
        async with asyncio.timeout(PATIENCE):
            for step in (waiting, child.received(signal.SIGTERM)):
                with pytest.raises(RuntimeError, match="ended by its script, with code 0"):
                    await step
        await job.wait()


async def test_a_start_fails_with_an_error_that_has_a_number(play: Callable[..., Any]) -> None:
    """And not after it has succeeded."""
    child: Any = FakeChild()
    with pytest.raises(TypeError, match="an OSError or a SpawnError, not int"):
        child.fail_to_spawn(2)
    with pytest.raises(TypeError, match="not the class FileNotFoundError"):
        child.fail_to_spawn(FileNotFoundError)
    with pytest.raises(ValueError, match="has a number"):
        child.fail_to_spawn(FileNotFoundError("no number"))
    async with play(child) as (_, job):
        with pytest.raises(RuntimeError, match="started already"):
            child.fail_to_spawn(FileNotFoundError(errno.ENOENT, "too late"))
        child.exit(0)
        await job.wait()


async def test_a_script_is_an_async_function() -> None:
    """One that is not has done all its steps at once, and the test still hears of it."""
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)
    script: Any = lambda child: child.exit(0)  # noqa: E731 - what is wrong with it
    children = FakeChildren()
    children.expect(script=script)
    async with Supervisor(spawn=children.spawn) as supervisor:
        assert_receipt(await supervisor.run(["x"]), code=0)
    with pytest.raises(TypeError, match="is an async function"):
        children.check()


async def test_what_a_script_finds_wrong_fails_the_test() -> None:
    """Though the code under test took the child's end for an outcome."""
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)

    async def look(child: FakeChild) -> None:
        assert (await child.started()).cwd == "/elsewhere", "in the wrong place"

    children = FakeChildren()
    children.expect(script=look)
    async with Supervisor(spawn=children.spawn) as supervisor:
        await supervisor.run(["x"])
    with pytest.raises(AssertionError, match="in the wrong place"):
        children.check()


async def test_who_feeds_a_child_that_does_not_come_is_told() -> None:
    """Something else was started instead, so it would wait for ever; a child that comes all the same can be fed."""
    children = FakeChildren()
    child = children.expect(["right"])
    feeding = asyncio.create_task(child.feed(b"x"))
    async with Supervisor(spawn=children.spawn) as supervisor:
        with pytest.raises(UnexpectedCommand):
            await supervisor.run(["wrong"])
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(UnexpectedCommand, match="not expected:\n  wrong"):
                await feeding
        job = await supervisor.start(["right"])
        await child.feed(b"y")
        child.exit(0)
        assert_receipt(await job.wait(), stdout="y")


async def test_a_command_is_a_list_of_texts_and_paths(tmp_path: Path) -> None:
    """A path is what the child gets of it; a number would never be equal to anything."""
    children: Any = FakeChildren()
    for wrong in (5, b"x", {"git"}):
        with pytest.raises(TypeError, match="a list of arguments"):
            children.expect(wrong)
    for wrong in (["sleep", 3], [b"ls"]):
        with pytest.raises(TypeError, match="an argument is text"):
            children.expect(wrong)
    children.expect([tmp_path, ...]).exit(0)
    children.expect([Path("never")])
    async with Supervisor(spawn=children.spawn) as supervisor:
        assert_receipt(await supervisor.run([tmp_path, "x"]), code=0)
    with pytest.raises(AssertionError, match="  never\n"):
        children.check()
    for wrong in ("ls -l", ["sleep", 3], ["git", ...]):
        with pytest.raises(TypeError, match=r"a list of arguments|an argument is text"):
            await record(wrong)  # type: ignore[arg-type] # what is wrong with it


async def test_a_fault_that_a_disk_has_not_is_refused() -> None:
    """It would otherwise be set and never come."""
    disk: Any = FailingStorage()
    with pytest.raises(ValueError, match="text, receipt, directory, not 'texts'"):
        disk.fail_sync("texts")
    for wrong in (-1, math.nan):
        with pytest.raises(ValueError, match="no time at least"):
            disk.write_slowly(wrong)


async def test_time_neither_ends_nor_jumps_twice() -> None:
    """Neither could be taken back."""
    clock = VirtualClock()
    with pytest.raises(ValueError, match="to an end"):
        await clock.advance(math.inf)
    with pytest.raises(ValueError, match="does not go back"):
        await clock.advance(math.nan)
    async with clock.jumping():
        with pytest.raises(RuntimeError, match="jumps already"):
            async with clock.jumping():
                pass
        await clock.sleep(5)
    assert clock.now() == 5


async def test_only_a_receipt_is_looked_at(play: Callable[..., Any]) -> None:
    """Its job, or the wait for it, is none; and a list is as good as the tuple that it has."""
    async with play() as (child, job):
        with pytest.raises(TypeError, match="a Receipt, not at a Job"):
            assert_receipt(job, code=0)
        child.exit(0)
        receipt = await job.wait()
    assert_receipt(receipt, command=["played"], survivors=[])
    with pytest.raises(AssertionError, match=r"the command is \('played',\), not \('other',\)"):
        assert_receipt(receipt, command=["other"])
