"""The checks of the contract suite: what every child must show through the public API, whoever plays it.

Each is given a stage, plays one or more children on it, and raises an AssertionError that says what was found. Texts
are compared by what lies on the disk at the end.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import signal
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from ..errors import SpawnError
from ..request import PIPE
from ..sansio.receipt import Receipt
from .stage import expect, facts, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from .stage import Stage

LONG: Final = 60.0
"""Seconds that no check waits for."""
KILL_AFTER: Final = 1.0
"""Seconds within which a busy machine lets a process report a signal."""
DRAIN: Final = 0.1
"""Seconds."""
LARGE: Final = b"".join(b"line %07d\n" % number for number in range(80_000))
"""A megabyte: more than a pipe holds, at first or grown."""
TURNS: Final = (0, 1, 2, 3, 5, 10, 30, 100)
"""How many turns of the loop after it was begun a start is cancelled: a process takes milliseconds, a fake one turn."""


async def output_can_be_read_while_the_child_lives(stage: Stage) -> None:
    """What it wrote is there to be read though it goes on [E1, E2]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command)
        await child.feed(b"ready\n")
        async with aclosing(job.follow("stdout")) as pages:
            page = await anext(pages)
        expect("the text of a live child", page.text, "ready\n")
        expect("its state", facts(job.receipt).state, "running")
        await child.exit(0)
        await job.wait()


async def exit_is_seen_while_a_descendant_holds_the_pipes(stage: Stage) -> None:
    """Exit and end of file are two facts: the code is known before the pipes end, and what comes then counts [F1]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, drain_timeout=LONG)
        await child.feed(b"before\n")
        await child.exit(3, hold_pipes=True)
        await until(lambda: facts(job.receipt).code == 3)  # noqa: PLR2004 - as told above
        expect("the capture while the pipes are open", job.receipt.capture.state, "pending")
        await child.feed(b"after\n")
        await child.close("stdout")
        await child.close("stderr")
        receipt = await job.wait()
        expect("the text", await receipt.read_text("stdout"), "before\nafter\n")
        expect("the exit", _exit(receipt), ("exited", 3, None))
        expect("the capture", receipt.capture.state, "complete")


async def end_of_output_does_not_end_the_job(stage: Stage) -> None:
    """A child that closed its outputs still runs, and its exit is waited for [F1]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, stdin=PIPE)
        await child.feed(b"last\n")
        await child.close("stdout")
        await child.close("stderr")
        await job.write(b"x")
        expect("what it reads after it closed its outputs", await child.read_stdin(1), b"x")
        expect("its state", facts(job.receipt).state, "running")
        await child.exit(4)
        receipt = await job.wait()
        expect("the exit", _exit(receipt), ("exited", 4, None))
        expect("the text", await receipt.read_text("stdout"), "last\n")


async def a_held_pipe_costs_one_drain_window(stage: Stage) -> None:
    """All that was in the pipe at the exit is kept, then the window runs, and whoever holds the pipe is named [F2]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, drain_timeout=DRAIN)
        await child.feed(LARGE)
        await child.exit(0, hold_pipes=True)
        receipt = await job.wait()
        expect("the exit", _exit(receipt), ("exited", 0, None))
        expect("the capture", (receipt.capture.state, receipt.capture.reason), ("partial", "drain-timeout"))
        expect("the text is whole", (await receipt.read_text("stdout")).encode() == LARGE, wanted=True)
        expect("a survivor is named", len(facts(receipt).survivors or ()), 1)


async def output_before_the_exit_is_complete(stage: Stage) -> None:
    """Nothing that was written before the exit is missing, and every byte is accounted for [B6, D3]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command)
        await child.feed(LARGE)
        await child.exit(0)
        receipt = await job.wait()
        expect("the capture", receipt.capture.state, "complete")
        expect("the text is whole", (await receipt.read_text("stdout")).encode() == LARGE, wanted=True)
        stream = receipt.streams["stdout"]
        assert stream is not None, "there is no stdout"
        counts = stream.raw
        expect("raw bytes", (counts.observed, counts.accepted, counts.pending), (len(LARGE), len(LARGE), 0))


async def stdout_and_stderr_are_apart(stage: Stage) -> None:
    """Each has its own text in its own order [B7]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command)
        for number in range(10):
            await child.feed(b"out %d\n" % number)
            await child.feed(b"err %d\n" % number, "stderr")
        await child.exit(0)
        receipt = await job.wait()
        for stream, word in (("stdout", "out"), ("stderr", "err")):
            text = "".join(f"{word} {number}\n" for number in range(10))
            expect(stream, await receipt.read_text("stdout" if stream == "stdout" else "stderr"), text)


async def merged_streams_share_one_pipe(stage: Stage) -> None:
    """One pipe carries both, in the order of writing, until both are closed [B7]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, merge=True)
        await child.feed(b"out\n")
        await child.feed(b"err\n", "stderr")
        await child.close("stdout")
        await child.feed(b"more\n", "stderr")
        await child.exit(0)
        receipt = await job.wait()
        expect("the text", await receipt.read_text("stdout"), "out\nerr\nmore\n")
        expect("stderr", receipt.streams["stderr"], None)


async def a_child_that_obeys_term_gets_no_kill(stage: Stage) -> None:
    """It is ended by TERM alone, and what it wrote is kept [F3, F4]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, kill_after=LONG)
        await child.feed(b"kept\n")
        receipt = await job.terminate()
        expect("the exit", _exit(receipt), ("cancelled", None, signal.SIGTERM))
        expect("forced", facts(receipt).forced, wanted=False)
        expect("the text", await receipt.read_text("stdout"), "kept\n")


async def a_child_that_ignores_term_is_killed(stage: Stage) -> None:
    """TERM, then CONT, and KILL after `kill_after`; the end is confirmed [F3]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, kill_after=KILL_AFTER)
        await child.ignore(signal.SIGTERM, signal.SIGCONT)
        ending = asyncio.create_task(job.terminate())
        await child.received(signal.SIGTERM)
        await child.received(signal.SIGCONT)
        expect("its state after TERM", facts(job.receipt).signal, None)
        receipt = await ending
        expect("the signals, KILL aside", [*child.signals][:2], [signal.SIGTERM, signal.SIGCONT])
        expect("the exit", _exit(receipt), ("cancelled", None, signal.SIGKILL))
        process = facts(receipt)
        found = (process.reason, process.forced, process.kill_confirmed, process.survivors)
        expect("reason, forced, confirmed, survivors", found, ("caller", True, True, ()))


async def a_descendant_is_ended_with_the_tree(stage: Stage) -> None:
    """Ending a job in its drain window ends whoever holds the pipes; the exit that was seen stays [F3, F5]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, drain_timeout=LONG, kill_after=LONG)
        await child.feed(b"kept\n")
        await child.exit(5, hold_pipes=True)
        await until(lambda: facts(job.receipt).code is not None)
        receipt = await job.terminate()
        expect("the exit", _exit(receipt), ("exited", 5, None))
        expect("survivors", facts(receipt).survivors, ())
        expect("the text", await receipt.read_text("stdout"), "kept\n")


async def code_and_signal_are_told_as_they_are(stage: Stage) -> None:
    """A code without a signal, or a signal without a code; neither is an exception or a cancellation [A2]."""
    for code, number in ((0, None), (1, None), (255, None), (None, signal.SIGUSR1), (None, signal.SIGKILL)):
        async with stage.play() as (child, supervisor):
            job = await supervisor.start(child.command)
            await child.exit(code, signal=number)
            receipt = await job.wait()
            expect("the exit", _exit(receipt), ("exited", code, number))
            expect("reason and force", (facts(receipt).reason, facts(receipt).forced), (None, False))


async def a_signal_to_the_leader_is_the_childs_affair(stage: Stage) -> None:
    """It takes it, or ends by it, and nothing was cancelled."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command)
        await child.ignore(signal.SIGUSR1)
        await job.send_signal(signal.SIGUSR1)
        await child.received(signal.SIGUSR1)
        await job.send_signal(signal.SIGUSR2)
        receipt = await job.wait()
        expect("the exit", _exit(receipt), ("exited", None, signal.SIGUSR2))


async def stdin_goes_round(stage: Stage) -> None:
    """What is written arrives, in order, more than a pipe holds, and so does its end [F7]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command, stdin=PIPE)
        await job.write(b"one\n")
        expect("the first line", await child.read_stdin(4), b"one\n")
        writing = asyncio.create_task(job.write(LARGE))
        expect("a megabyte arrives", await child.read_stdin(len(LARGE)) == LARGE, wanted=True)
        await writing
        await job.write_eof()
        expect("after the end", await child.read_stdin(), b"")
        await child.exit(0)
        await job.wait()
        try:
            await job.write(b"late")
        except BrokenPipeError:
            return
        raise AssertionError("a child that has ended took stdin")


async def without_stdin_there_is_nothing_to_read(stage: Stage) -> None:
    """It is at its end at once [F7]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command)
        expect("stdin", await child.read_stdin(), b"")
        await child.exit(0)
        await job.wait()


async def a_failed_start_is_one_typed_error(stage: Stage) -> None:
    """It carries a settled receipt, and leaves no capture and no job [F6]."""
    async with stage.play() as (child, supervisor):
        await child.fail_to_spawn()
        try:
            await supervisor.start(child.command)
        except SpawnError as error:
            expect("fault and number", (error.fault, error.errno), ("program", errno.ENOENT))
            expect("the process", _exit(error.receipt), ("not-started", None, None))
            expect("pid", facts(error.receipt).pid, None)
        else:
            raise AssertionError("the start did not fail")
        expect("captures and jobs", (len(stage.captures()), len(supervisor.jobs)), (0, 0))


async def it_settles_once_in_every_order_of_ends(stage: Stage) -> None:
    """Whether exit or end of file comes first, there is one receipt, the same for all, and the one on the disk [D3]."""
    steps: dict[str, Callable[[Any], Awaitable[None]]] = {
        "exit": lambda child: child.exit(6, hold_pipes=True),
        "stdout": lambda child: child.close("stdout"),
        "stderr": lambda child: child.close("stderr"),
    }
    for order in itertools.permutations(steps):
        async with stage.play() as (child, supervisor):
            job = await supervisor.start(child.command, drain_timeout=LONG)
            waits = [asyncio.create_task(job.wait()) for _ in range(3)]
            for step in order:
                if step == "exit" and order.index(step) == len(order) - 1:
                    await child.exit(6)
                else:
                    await steps[step](child)
            receipts = [*await asyncio.gather(*waits), await job.wait(), await job.terminate(), job.receipt]
            expect(f"one receipt after {order}", [receipt is receipts[0] for receipt in receipts], [True] * 6)
            expect(f"the exit after {order}", _exit(receipts[0]), ("exited", 6, None))
            expect(f"the capture after {order}", receipts[0].capture.state, "complete")
            expect(f"the published receipt after {order}", _published(stage), [receipts[0]])


async def a_cancelled_run_leaves_nothing(stage: Stage) -> None:
    """However often it is cancelled, the child is ended, and the receipt says so [F5]."""
    async with stage.play() as (child, supervisor):
        running = asyncio.create_task(supervisor.run(child.command))
        await until(lambda: supervisor.jobs and facts(supervisor.jobs[0].receipt).pid)
        await child.feed(b"kept\n")
        await _cancel(running)
        (receipt,) = _published(stage)
        expect("the exit", _exit(receipt), ("cancelled", None, signal.SIGTERM))
        expect("reason", facts(receipt).reason, "caller")


async def a_start_that_is_cancelled_leaves_nothing(stage: Stage) -> None:
    """Wherever in the start that happens [F5]."""
    for turns in TURNS:
        async with stage.play() as (child, supervisor):
            starting = asyncio.create_task(supervisor.start(child.command))
            await stage.spawning.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            if not starting.done():
                await _cancel(starting)
                (receipt,) = _published(stage)
                expect(f"the state after {turns} turns", facts(receipt).state, "cancelled")


async def leaving_the_block_ends_the_child(stage: Stage) -> None:
    """What still runs when the supervisor closes is ended and settled [F10]."""
    async with stage.play() as (child, supervisor):
        job = await supervisor.start(child.command)
        await child.feed(b"kept\n")
        await supervisor.__aexit__(None, None, None)
        expect("the exit", _exit(job.receipt), ("cancelled", None, signal.SIGTERM))
        expect("reason", facts(job.receipt).reason, "supervisor-shutdown")


def _exit(receipt: Receipt | None) -> tuple[str, int | None, int | None]:
    process = facts(receipt)
    return process.state, process.code, process.signal


def _published(stage: Stage) -> list[Receipt]:
    return [Receipt.parse((capture / "receipt.json").read_bytes()) for capture in stage.captures()]


async def _cancel(task: asyncio.Task[Any]) -> None:
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    expect("the cancellation goes on", task.cancelled(), wanted=True)
