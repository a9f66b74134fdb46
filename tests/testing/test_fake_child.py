"""The fake child by itself: what its script may do, what it may not, and that nothing real is touched."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import PIPE
from supervisor.process import Launch
from supervisor.sansio import lifecycle
from supervisor.testing import FakeChild

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Listener

    from supervisor import Receipt
    from supervisor.sansio.receipt import ProcessFacts

COMMAND = Launch(("played",))
MORE_THAN_A_PIPE = b"x" * 3_000_000
PATIENCE = 10.0
"""Seconds after which a test gives up; nothing waits for it to pass."""


def facts(receipt: Receipt) -> ProcessFacts:
    """Return what the receipt says of its process."""
    assert receipt.process is not None
    return receipt.process


async def turns(count: int = 20) -> None:
    """Let everything run that can."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_no_process_can_have_its_pid() -> None:
    """Neither its nor its descendant's: a signal that goes there by mistake reaches nobody."""
    children = [FakeChild() for _ in range(3)]
    pids = {child.pid for child in children} | {child.pid + 1 for child in children}
    assert len(pids) == 6
    for pid in pids:
        assert pid > int(Path("/proc/sys/kernel/pid_max").read_text())
        assert pid < 2**31  # pid_t
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(ProcessLookupError):
            os.killpg(pid, 0)


@pytest.mark.asyncio
async def test_no_real_process_is_signalled_or_waited_for(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a whole escalation not one system call names a process."""

    def refuse(*arguments: object) -> None:
        raise AssertionError(f"a real process was meant: {arguments}")

    for module, name in (
        *((os, name) for name in ("kill", "killpg", "waitpid", "wait4", "waitid", "pidfd_open")),
        (signal, "pidfd_send_signal"),
    ):
        monkeypatch.setattr(module, name, refuse)
    async with play(kill_after=0.05) as (child, job):
        child.ignore(signal.SIGTERM)
        await job.send_signal(signal.SIGWINCH)
        receipt = await job.terminate()
    assert facts(receipt).signal == signal.SIGKILL
    assert child.signals == [signal.SIGWINCH, signal.SIGTERM, signal.SIGCONT, signal.SIGKILL]


@pytest.mark.asyncio
async def test_by_default_term_ends_it_and_nothing_more_is_taken(play: Callable[..., Any]) -> None:
    """The CONT that follows finds only a zombie, as with a process."""
    async with play() as (child, job):
        receipt = await job.terminate()
    assert child.signals == [signal.SIGTERM]
    assert (facts(receipt).state, facts(receipt).signal, facts(receipt).forced) == ("cancelled", signal.SIGTERM, False)
    assert facts(receipt).pid == child.pid == job.pid


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD, signal.SIGURG])
async def test_signals_that_end_no_process_do_not_end_it(play: Callable[..., Any], number: int) -> None:
    """They are taken all the same (signal(7))."""
    async with play() as (child, job):
        await job.send_signal(number)
        await child.received(number)
        child.exit(2)
        receipt = await job.wait()
    assert facts(receipt).code == 2
    assert child.signals == [number]


@pytest.mark.asyncio
async def test_a_child_that_cannot_be_killed_is_an_outcome(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up, named as a survivor, and its descriptors are closed [F3]."""
    monkeypatch.setattr(lifecycle, "CONFIRM_SECONDS", 0.05)
    async with play(kill_after=0, drain_timeout=0) as (child, job):
        child.ignore(signal.SIGTERM, signal.SIGKILL)
        receipt = await job.terminate()
        with pytest.raises(BrokenPipeError):
            await child.feed(b"x")
        child.exit(0)  # too late for anybody
    assert (facts(receipt).kill_confirmed, facts(receipt).survivors) == (False, (child.pid,))


@pytest.mark.asyncio
async def test_feeding_waits_for_room_and_blocks_nobody(listener: Listener) -> None:
    """A full pipe holds up the script, not the loop, until somebody reads."""
    child = FakeChild()
    transport = await child.spawn(listener, COMMAND)
    feeding = asyncio.create_task(child.feed(MORE_THAN_A_PIPE))
    await turns()
    assert not feeding.done()
    assert transport.unread(1) == 64 * 1024
    for reader in transport.readers.values():
        reader.resume_reading()
    async with asyncio.timeout(PATIENCE):
        await feeding
        child.exit(0)
        assert "exited" not in listener.events  # it is told from the loop, never from within the call
        await listener.over.wait()
        transport.release()
        await listener.gone.wait()
    assert listener.data == MORE_THAN_A_PIPE
    assert listener.events[0] == "made"
    assert listener.events[-1] == "gone"
    assert sorted(listener.events) == sorted(["made", "lost 1", "lost 2", "exited", "gone"])


@pytest.mark.asyncio
async def test_two_tasks_that_feed_take_turns(play: Callable[..., Any]) -> None:
    """What one call writes is in one piece, even if the pipe was full in the middle of it."""
    async with play() as (child, job):
        await asyncio.gather(child.feed(b"a" * 300_000), child.feed(b"b" * 300_000))
        child.exit(0)
        receipt = await job.wait()
        text = await receipt.read_text("stdout")
    assert text == "a" * 300_000 + "b" * 300_000


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "options", [{"code": 1, "signal": 9}, {"code": 256}, {"code": -9}, {"signal": 0}, {"signal": 999}, {"signal": 18}]
)
async def test_an_end_that_no_process_can_have_is_refused(options: dict[str, int]) -> None:
    """At once, and it then has not ended."""
    child = FakeChild()
    with pytest.raises(ValueError, match=r"code|[Ss]ignal"):
        child.exit(**options)
    child.exit(0)


@pytest.mark.asyncio
async def test_what_no_process_can_do_is_a_mistake_of_the_script(play: Callable[..., Any]) -> None:
    """Exiting twice, writing after the exit, or to a stream that it closed."""
    async with play() as (child, job):
        child.close("stderr")
        child.close("stderr")
        with pytest.raises(RuntimeError, match="stderr"):
            await child.feed(b"x", "stderr")
        await child.feed(b"")
        child.exit(3)
        with pytest.raises(RuntimeError, match="already, with code 3"):
            child.exit(3)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="ended by its script"):
                await child.feed(b"x")
        with pytest.raises(RuntimeError, match="ended by its script"):
            await child.read_stdin()
        await job.wait()
    closed = FakeChild()
    closed.close("stdout")
    closed.close("stderr")
    with pytest.raises(RuntimeError, match="no pipe"):
        closed.exit(0, hold_pipes=True)


@pytest.mark.asyncio
async def test_what_the_supervisor_does_breaks_the_pipe_of_the_next_step(play: Callable[..., Any]) -> None:
    """A script that writes until it is ended can expect that, while it waits for room too."""
    async with play() as (child, job):

        async def write_for_ever() -> None:
            while True:
                await child.feed(MORE_THAN_A_PIPE)

        writing = asyncio.create_task(write_for_ever())
        reading = asyncio.create_task(child.received(signal.SIGTERM))
        await turns()
        receipt = await job.terminate()
        await reading
        with pytest.raises(BrokenPipeError, match="signal 15"):
            await writing
        with pytest.raises(RuntimeError, match="already, by SIGTERM"):
            child.exit(0)
    assert facts(receipt).state == "cancelled"
    assert receipt.stdout.startswith("xxx")


@pytest.mark.asyncio
async def test_a_script_that_waits_for_room_is_woken_when_the_pipe_is_cut(play: Callable[..., Any]) -> None:
    """The drain window is over and nobody reads any more: EPIPE, as for a process."""
    async with play(drain_timeout=0.05) as (child, job):
        await child.feed(b"before\n")
        child.exit(0, hold_pipes=True)

        async def write_for_ever() -> None:
            while True:
                await child.feed(b"more\n")
                await asyncio.sleep(0)

        writing = asyncio.create_task(write_for_ever())
        receipt = await job.wait()
        with pytest.raises(BrokenPipeError):
            await writing
    assert receipt.capture.reason == "drain-timeout"
    assert facts(receipt).survivors == (child.pid + 1,)


@pytest.mark.asyncio
async def test_a_descendant_ends_with_its_second_stream(play: Callable[..., Any]) -> None:
    """It is then no survivor; with one of them closed it still holds the other."""
    async with play(drain_timeout=PATIENCE, stdin=PIPE) as (child, job):
        child.exit(1, hold_pipes=True)
        child.close("stdout")
        await child.feed(b"still here\n", "stderr")
        await job.write(b"x")
        assert await child.read_stdin(1) == b"x"
        child.close("stderr")
        receipt = await job.wait()
    assert receipt.stderr == "still here\n"
    assert (facts(receipt).code, facts(receipt).survivors, receipt.capture.state) == (1, (), "complete")


@pytest.mark.asyncio
async def test_a_descendant_that_ignores_term_is_killed(play: Callable[..., Any]) -> None:
    """It takes the signals to the group, though its leader is gone [F3]."""
    async with play(drain_timeout=PATIENCE, kill_after=0.05) as (child, job):
        child.ignore(signal.SIGTERM)
        child.exit(1, hold_pipes=True)
        await turns()
        receipt = await job.terminate()
    assert child.signals == [signal.SIGTERM, signal.SIGCONT, signal.SIGKILL]
    assert (facts(receipt).code, facts(receipt).forced, facts(receipt).survivors) == (1, True, ())


@pytest.mark.asyncio
async def test_stdin_is_read_only_when_the_script_reads(play: Callable[..., Any]) -> None:
    """A child that does not read lets its pipe fill, and holds the writer up [B3]."""
    async with play(stdin=PIPE) as (child, job):
        writing = asyncio.create_task(job.write(MORE_THAN_A_PIPE))
        _, pending = await asyncio.wait({writing}, timeout=0.05)
        assert pending
        assert child.stdin_received == b""
        assert await child.read_stdin(3) == b"xxx"
        await job.write_eof()
        rest = await child.read_stdin()
        await writing
        assert b"xxx" + rest == MORE_THAN_A_PIPE == child.stdin_received
        assert await child.read_stdin(1) == b""
        child.exit(0)
        await job.wait()
    assert child.stdin_received == MORE_THAN_A_PIPE


@pytest.mark.asyncio
async def test_a_cancelled_read_loses_nothing(play: Callable[..., Any]) -> None:
    """What was read is in `stdin_received`, and the next read goes on there."""
    async with play(stdin=PIPE) as (child, job):
        reading = asyncio.create_task(child.read_stdin(10))
        await job.write(b"abc")
        while child.stdin_received != b"abc":  # noqa: ASYNC110 - what a cancelled read has read, nobody is told
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled()
        await job.write(b"def")
        assert await child.read_stdin(3) == b"def"
        child.exit(0)
        await job.wait()
