"""Output that arrives in parts: readable while it comes, and complete only if its producer ends it well."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from supervisor import Limits, Receipt, follow_capture, list_captures, open_capture, read_capture, recover, resolve

if TYPE_CHECKING:
    from conftest import Conversation

KILLED = """
import asyncio, sys
sys.path[:] = {path!r}
from supervisor import open_capture

async def main():
    async with open_capture({directory!r}, source="browser") as capture:
        await capture.write("so far\\n")
        while not capture.receipt.streams["stdout"].committed:
            await asyncio.sleep(0)
        print(capture.capture_id, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.asyncio
async def test_what_arrives_can_be_followed_from_its_files(conversation: Conversation) -> None:
    """By its id, while it is written; before the end all say `pending`, after it nobody does [E2, E4]."""
    pages: list[str] = []

    async def follow(capture_id: str) -> None:
        async for page in follow_capture(conversation.path, capture_id):
            pages.append(page.text)
            seen.set()

    seen = asyncio.Event()
    async with open_capture(conversation.path, source="browser") as capture:
        await capture.write("one\n")
        follower = asyncio.create_task(follow(capture.capture_id))
        await seen.wait()
        assert capture.receipt.capture.state == "pending"
        (listed,) = await list_captures(conversation.path)
        assert (listed.capture.state, listed.process, listed.source) == ("pending", None, "browser")
        assert (await read_capture(conversation.path, capture.capture_id)).state == "pending"
        await capture.write(b"tw\xc3")
        await capture.write(b"\xb6\n")
    await follower
    assert "".join(pages) == "one\ntwö\n"
    assert conversation.text(capture.receipt).decode() == "one\ntwö\n"
    assert capture.receipt.capture.state == "complete"
    assert capture.receipt.ended_at is not None


@pytest.mark.asyncio
async def test_a_text_larger_than_every_buffer_arrives_whole(conversation: Conversation) -> None:
    """One write of text, one of bytes, from two tasks: each stays together, and the writer waits for the pump [B3]."""
    limits = Limits(queue_bytes=64 * 1024)
    text = "".join(f"line {number} ä\n" for number in range(150_000))
    async with open_capture(conversation.path, source="browser", limits=limits) as capture:
        await asyncio.gather(capture.write(text), capture.write(b"end\n"))
    assert conversation.text(capture.receipt).decode() == text + "end\n"
    assert capture.receipt.capture.state == "complete"


@pytest.mark.asyncio
async def test_a_producer_that_learns_of_its_cut_can_say_so(conversation: Conversation) -> None:
    """Whatever it said at first."""
    async with open_capture(conversation.path, source="browser", upstream="complete") as capture:
        await capture.write("one\n")
        capture.truncate()
    assert (capture.receipt.capture.state, capture.receipt.upstream) == ("partial", "truncated")


@pytest.mark.asyncio
async def test_an_error_of_the_producer_cuts_its_text(conversation: Conversation) -> None:
    """What came is published as partial, and the error goes on."""
    capture = open_capture(conversation.path, source="browser")

    async def produce() -> None:
        async with capture:
            await capture.write("one\n")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await produce()
    receipt = capture.receipt
    assert (receipt.capture.state, receipt.upstream, conversation.text(receipt)) == ("partial", "truncated", b"one\n")
    assert await list_captures(conversation.path) == [receipt]


@pytest.mark.asyncio
async def test_a_cancellation_is_settled_before_it_goes_on(conversation: Conversation) -> None:
    """A second one changes nothing [F5]."""
    began = asyncio.Event()

    async def produce() -> None:
        async with capture:
            await capture.write("one\n")
            began.set()
            await asyncio.Event().wait()

    capture = open_capture(conversation.path, source="browser")
    task = asyncio.create_task(produce())
    await began.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (capture.receipt.capture.state, capture.receipt.upstream) == ("partial", "truncated")
    assert await list_captures(conversation.path) == [capture.receipt]


@pytest.mark.asyncio
async def test_a_write_that_was_cancelled_left_a_hole(conversation: Conversation) -> None:
    """The block goes on, and its text is not complete."""
    limits = Limits(queue_bytes=1000)
    async with open_capture(conversation.path, source="browser", limits=limits) as capture:
        first = asyncio.create_task(capture.write("x" * 3_000_000))
        second = asyncio.create_task(capture.write("lost\n"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({first, second})
    assert (capture.receipt.capture.state, capture.receipt.upstream) == ("partial", "truncated")


@pytest.mark.asyncio
async def test_a_capture_is_used_inside_its_block_once(conversation: Conversation) -> None:
    """Before it there is nothing to write to and no receipt; after it nothing can be added."""
    capture = open_capture(conversation.path, source="browser")
    with pytest.raises(RuntimeError, match="inside its"):
        await capture.write("x")
    with pytest.raises(RuntimeError, match="from its"):
        capture.receipt  # noqa: B018 - it is asked for
    async with capture:
        with pytest.raises(TypeError):
            await capture.write(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="inside its"):
        await capture.write("x")
    with pytest.raises(RuntimeError, match="once"):
        async with capture:
            pass
    assert capture.receipt.capture.state == "complete"


@pytest.mark.asyncio
async def test_a_cancelled_opening_leaves_nothing(conversation: Conversation) -> None:
    """At whichever step it is met."""
    for turns in range(12):
        task = asyncio.create_task(open_capture(conversation.path, source="browser").__aenter__())
        for _ in range(turns * turns):
            await asyncio.sleep(0)
        if task.done():
            await (await task).__aexit__(None, None, None)
            continue
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert {capture.capture.state for capture in await list_captures(conversation.path)} <= {"complete"}


@pytest.mark.asyncio
async def test_a_producer_that_was_killed_leaves_a_leftover(conversation: Conversation) -> None:
    """Partial, whatever there is of it; recovered, its receipt still names the producer and no process [D6]."""
    code = KILLED.format(path=sys.path, directory=str(conversation.path))
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else is to happen meanwhile
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as producer:
        assert producer.stdout is not None
        capture_id = producer.stdout.readline().strip()
        producer.send_signal(signal.SIGKILL)
    (listed,) = await list_captures(conversation.path)
    assert (listed.capture.state, listed.capture.reason) == ("partial", "supervisor-lost")
    (receipt,) = await recover(conversation.path)
    assert (receipt.capture_id, receipt.process, receipt.source) == (capture_id, None, "browser")
    assert (receipt.capture.state, conversation.text(receipt)) == ("partial", b"so far\n")
    assert json.loads((conversation.of(receipt) / "receipt.json").read_bytes())["process"] is None


@pytest.mark.asyncio
async def test_a_directory_that_vanishes_costs_the_capture_only(conversation: Conversation) -> None:
    """The preview has the text; the receipt leads nowhere, and says so [D1, E7]."""
    async with open_capture(conversation.path, source="browser") as capture:
        await capture.write("one\n")
        shutil.rmtree(conversation.path)
        await capture.write("two\n")
    facts = conversation.stdout(capture.receipt)
    assert (capture.receipt.capture.state, capture.receipt.stdout) == ("partial", "one\ntwo\n")
    assert (facts.reference, facts.path, facts.access) == (None, None, "unavailable")


@pytest.mark.asyncio
async def test_a_reference_given_out_early_resolves_to_the_final_name(conversation: Conversation) -> None:
    """The snapshot leads to the live file; resolved later, it leads to where that is then [E2]."""
    async with open_capture(conversation.path, source="browser") as capture:
        await capture.write("one\n")
        early = Receipt.parse(capture.receipt.to_json())
    assert str(conversation.stdout(early).path).endswith(".live")
    assert conversation.text(await resolve(capture.receipt)) == b"one\n"
    path = conversation.stdout(await resolve(early)).path
    assert path == conversation.stdout(capture.receipt).path
