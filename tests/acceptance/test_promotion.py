"""Promotion: who waits changes, and nothing else does [F8].

A foreground wait that gives up is `asyncio.timeout()` around `Job.wait`. Whatever the moment, the job has one
completion, its text comes once and whole, its code is the command's, and what was settled is never changed again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Supervisor
from supervisor.testing import FakeChildren, VirtualClock, assert_receipt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from conftest import Conversation

    from supervisor import Completion, Job, Receipt
    from supervisor.sansio.words import StreamName

    NextOf = Callable[[AsyncIterator[Completion]], Awaitable[Completion]]

pytestmark = pytest.mark.asyncio

SECRET: Final = "Vq7Zt2mXw9LcR4bKd8Hs3NfJ6yPgT5uE"
PATIENCE: Final = 30.0
CUTS: Final = {
    "border of a line": (b"one\n", b"two\n", "one\ntwo\n"),
    "inside a character of two bytes": (b"caf\xc3", b"\xa9\n", "café\n"),
    "inside a character of four bytes": (b"\xf0\x9f\x98", b"\x80 end", "😀 end"),
    "inside a character that never ends": (b"before \xe2\x82", b"", "before \N{REPLACEMENT CHARACTER}"),
    "inside an escape sequence": (b"\x1b[3", b"1mred\x1b[0m\n", "red\n"),
    "inside a secret": (f"key {SECRET[:9]}".encode(), f"{SECRET[9:]}!\n".encode(), "key [REDACTED:TOKEN]!\n"),
    "before anything": (b"", b"late\n", "late\n"),
    "after everything": (b"early\n", b"", "early\n"),
}
"""What was written before and after the wait gave up, and the text."""


async def give_up(job: Job, patience: float = 0) -> None:
    """Wait in the foreground, and give up; with no patience in the loop's next turn."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(patience):
            await job.wait()


async def followed(job: Job, stream: StreamName) -> str:
    """Return the text that a follower is given, from the beginning on."""
    async with asyncio.timeout(PATIENCE), aclosing(job.follow(stream)) as pages:
        return "".join([page.text async for page in pages])


async def read_on(job: Job, stream: StreamName, before: Any) -> str:  # noqa: ANN401 - a page
    """Return the text of a page that was read before, and all that follows it."""
    async with asyncio.timeout(PATIENCE), aclosing(job.follow(stream, before.cursor)) as pages:
        return before.text + "".join([page.text async for page in pages])


async def only_completion(supervisor: Supervisor, job: Job, next_of: NextOf) -> Receipt:
    """Return the receipt of the job's completion, after checking that there is one: that of the next job follows it."""
    completions = supervisor.completions()
    told = await next_of(completions)
    await told.acknowledge()
    last = await supervisor.start(["last"] if job.pid is not None and job.pid >= 1 << 30 else ["true"])
    assert (await next_of(completions)).receipt.capture_id == last.capture_id
    assert told.receipt.capture_id == job.capture_id
    return told.receipt


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("cut", CUTS)
async def test_a_wait_that_gives_up_in_the_middle_of_the_output(
    conversation: Conversation, next_of: NextOf, cut: str, stream: StreamName
) -> None:
    """The text comes once and whole, for who followed all the time and for who reads on from what was there."""
    first, second, text = CUTS[cut]
    clock, children = VirtualClock(), FakeChildren()
    child = children.expect(["played"])
    children.expect(["last"]).exit()
    options: Any = {"spawn": children.spawn, "clock": clock, "durability": "none", "secrets": {"TOKEN": SECRET}}
    async with Supervisor(conversation.path, **options) as supervisor:
        job = await supervisor.start(["played"], time_limit=3600)
        following = asyncio.create_task(followed(job, stream))
        await child.feed(first, stream)
        await clock.settle()
        await give_up(job)
        before = await job.read(stream)
        await child.feed(second, stream)
        await clock.advance(3599)
        child.exit(7)
        receipt = await job.wait()
        assert receipt is await job.wait()
        assert await only_completion(supervisor, job, next_of) == receipt == conversation.published(receipt)
        assert await following == await read_on(job, stream, before) == text
        assert len(children.started) == 2  # promoted, not run again
    assert_receipt(receipt, process="exited", code=7, signal=None, reason=None, capture="complete", **{stream: text})
    assert conversation.text(receipt, stream) == text.encode()
    other: StreamName = "stderr" if stream == "stdout" else "stdout"
    assert conversation.text(receipt, other) == b""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_real_child_is_promoted_in_the_middle_of_a_character(
    conversation: Conversation, next_of: NextOf, until: Callable[..., Any], stream: StreamName
) -> None:
    """The same with a process: it writes the second byte when it is told to, long after the wait gave up."""
    script = "printf 'caf\\303'; read word; printf '\\251\\n'; exit 7"
    if stream == "stderr":
        script = f"{{ {script}; }} >&2"

    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", script], stdin=PIPE)

        def observed() -> int | None:
            facts = job.receipt.streams[stream]
            assert facts is not None
            return facts.raw.observed

        await until(lambda: observed() == 4)
        await give_up(job, 0.001)
        before = await job.read(stream)
        assert not job.done
        await job.write(b"on\n")
        receipt = await job.wait()
        assert await only_completion(supervisor, job, next_of) == receipt == conversation.published(receipt)
        assert await read_on(job, stream, before) == await followed(job, stream) == "café\n"
    assert_receipt(receipt, process="exited", code=7, reason=None, capture="complete", **{stream: "café\n"})


@pytest.mark.parametrize("first", ["exit", "kill"])
async def test_a_kill_that_races_with_the_exit_of_a_promoted_job(
    conversation: Conversation, next_of: NextOf, first: str
) -> None:
    """Both come in one turn of the loop, while the wait gives up: one end, the command's code, the first cause."""
    clock, children = VirtualClock(), FakeChildren()
    child = children.expect(["played"])
    child.ignore(signal.SIGTERM)
    children.expect(["last"]).exit()
    options: Any = {"spawn": children.spawn, "clock": clock, "durability": "none"}
    async with Supervisor(conversation.path, **options) as supervisor:
        job = await supervisor.start(["played"])
        await child.feed(b"all of it\n")
        await clock.settle()
        waiting = asyncio.create_task(give_up(job))
        if first == "exit":
            child.exit(4)
        ending = asyncio.create_task(job.terminate())
        await waiting
        if first == "kill":
            child.exit(4)
        receipts = await asyncio.gather(ending, job.wait(), job.terminate())
        receipt = await only_completion(supervisor, job, next_of)
    assert all(one is receipts[0] for one in receipts)
    assert receipt == receipts[0] == conversation.published(receipt)
    if first == "exit":
        assert_receipt(receipt, process="exited", reason=None)
    else:
        assert_receipt(receipt, process="cancelled", reason="caller")
    assert_receipt(receipt, code=4, signal=None, stdout="all of it\n", capture="complete", survivors=())


async def test_a_kill_that_races_with_the_exit_of_a_real_child(conversation: Conversation, next_of: NextOf) -> None:
    """Whoever wins at each of a few moments, there is one end, and it is a code or a signal that really came."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        for turns in range(0, 60, 4):
            job = await supervisor.start(["sh", "-c", "printf 'caf\\303\\251'; read word; exit 4"], stdin=PIPE)
            await give_up(job)
            await job.write(b"on\n")
            for _ in range(turns):
                await asyncio.sleep(0)
            ended, again = await asyncio.gather(job.terminate(), job.wait())
            receipt = await only_completion(supervisor, job, next_of)
            assert ended is again
            assert receipt == ended == conversation.published(ended)
            process = receipt.process
            assert process is not None
            assert (process.code, process.signal) in {(4, None), (None, signal.SIGTERM)}
            assert (process.state, process.reason) in {("cancelled", "caller"), ("exited", None)}
            assert process.state == "cancelled" or process.code == 4
            if process.code == 4:
                assert (receipt.stdout, receipt.capture.state) == ("café", "complete")
            await (await supervisor.start(["true"])).acknowledge()


def files_of(conversation: Conversation, receipt: Receipt) -> dict[str, bytes]:
    """Return what is settled of a capture: its texts and its receipt, not the marker of its delivery."""
    place = conversation.captures_of(receipt)
    return {path.name: path.read_bytes() for path in place.iterdir() if path.suffix == ".log"} | {
        "receipt": (place / "receipt.json").read_bytes()
    }


async def test_settled_evidence_is_not_changed_by_anything_that_comes_later(
    conversation: Conversation, program: Callable[..., list[str]], next_of: NextOf, until: Callable[..., Any]
) -> None:
    """A descendant writes after the end; somebody waits again, terminates, acknowledges: object and files stay."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program("descendant"), drain_timeout=0.05)
        await give_up(job, 0.001)
        receipt = await job.wait()
        told, files = receipt.to_json(), files_of(conversation, receipt)
        assert_receipt(receipt, process="exited", code=3, capture="partial", capture_reason="drain-timeout")
        descendant = int(receipt.stdout)
        try:
            os.kill(descendant, signal.SIGUSR1)  # it writes a line, and has nobody any more who reads it
            await until(lambda: not is_running(descendant))
        finally:
            with suppress(ProcessLookupError):
                os.kill(descendant, signal.SIGKILL)
        assert await job.wait() is receipt
        assert await job.terminate() is receipt
        assert job.receipt is receipt
        assert await only_completion(supervisor, job, next_of) == receipt
        await job.acknowledge()
        assert await followed(job, "stdout") == f"{descendant}\n"
        assert (receipt.to_json(), files_of(conversation, receipt)) == (told, files)
    assert (receipt.to_json(), files_of(conversation, receipt)) == (told, files)
    assert set(files) == {"receipt", "stdout.log", "stderr.log"}


def is_running(pid: int) -> bool:
    """Return whether a process lives, zombies not being alive (proc_pid_stat(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - no more than a look
            return file.read().rpartition(b") ")[2][:1] not in {b"Z", b"X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_output_after_the_exit_counts_up_to_the_cut_and_not_after_it(
    conversation: Conversation, next_of: NextOf
) -> None:
    """A descendant of a promoted command writes inside the drain window, half a character; then it is cut off."""
    clock, children = VirtualClock(), FakeChildren()
    child = children.expect(["played"])
    children.expect(["last"]).exit()
    options: Any = {"spawn": children.spawn, "clock": clock, "durability": "none"}
    async with Supervisor(conversation.path, **options) as supervisor:
        job = await supervisor.start(["played"], drain_timeout=1)
        await child.feed(b"caf")
        await clock.settle()
        await give_up(job)
        child.exit(3, hold_pipes=True)
        await clock.advance(0.5)
        await child.feed(b"\xc3")
        await clock.advance(0.6)
        receipt = await job.wait()
        told, files = receipt.to_json(), files_of(conversation, receipt)
        with pytest.raises(BrokenPipeError):
            await child.feed(b"\xa9 late\n")
        assert await job.wait() is receipt
        assert await only_completion(supervisor, job, next_of) == receipt
        assert (receipt.to_json(), files_of(conversation, receipt)) == (told, files)
    assert_receipt(receipt, process="exited", code=3, capture="partial", capture_reason="drain-timeout")
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert (conversation.text(receipt), facts.raw.accepted, facts.omitted) == (b"caf", 4, 1)  # nobody knows the rest
