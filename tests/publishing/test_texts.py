"""Finished texts get the receipt of any other output, and only a whole one is complete [D3]."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Limits, Receipt, Supervisor, list_captures, publish_text, read_capture

if TYPE_CHECKING:
    from conftest import Conversation

SECRET = "kestrel-4711-marigold"


@pytest.mark.asyncio
async def test_a_text_has_the_receipt_of_any_other_output(conversation: Conversation) -> None:
    """Published, synced, found by listing and reading; of no process, and its producer is named [E8]."""
    receipt = await publish_text(conversation.path, "one\ntwo\n", kind="browser", label="a page", call_id="call-1")
    facts = conversation.stdout(receipt)
    assert (receipt.capture.state, receipt.capture.reason, facts.access) == ("complete", None, "local")
    assert (receipt.source, receipt.upstream, receipt.process) == ("browser", "complete", None)
    assert (receipt.label, receipt.call_id, receipt.command, receipt.job_id) == ("a page", "call-1", None, None)
    assert (facts.lines, facts.raw.observed, facts.representation) == (2, 8, "redacted")
    assert (receipt.durability is not None, receipt.ok) == (True, True)
    assert conversation.text(receipt) == b"one\ntwo\n"
    assert Receipt.parse((conversation.of(receipt) / "receipt.json").read_bytes()) == receipt
    assert await list_captures(conversation.path) == [receipt]
    assert (await read_capture(conversation.path, receipt.capture_id)).text == "one\ntwo\n"
    assert await receipt.read_text("stdout") == "one\ntwo\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("upstream", ["truncated", "unknown"])
async def test_a_text_that_may_have_been_cut_is_never_complete(
    conversation: Conversation,
    upstream: Any,  # noqa: ANN401 - a parameter's literal
) -> None:
    """Not even a short one that was kept whole; what its end leaves undecided may be half a secret [C7]."""
    text = f"ends in {SECRET[:5]}"
    receipt = await publish_text(conversation.path, text, upstream=upstream, secrets={"KEY": SECRET})
    assert (receipt.capture.state, receipt.capture.reason, receipt.upstream) == ("partial", None, upstream)
    assert SECRET[:5].encode() not in conversation.text(receipt)
    assert Receipt.parse((conversation.of(receipt) / "receipt.json").read_bytes()).capture.state == "partial"
    whole = await publish_text(conversation.path, text, secrets={"KEY": SECRET})
    assert (whole.capture.state, conversation.text(whole)) == ("complete", text.encode())


@pytest.mark.asyncio
async def test_a_text_is_sanitised_before_it_is_kept(conversation: Conversation) -> None:
    """So are label and call id; an escape sequence is removed, a byte order mark heeded [C2, C8]."""
    receipt = await publish_text(
        conversation.path, f"\x1b[1mx {SECRET}\n", label=SECRET, call_id=SECRET, secrets={"KEY": SECRET}
    )
    assert conversation.text(receipt) == b"x [REDACTED:KEY]\n"
    assert (receipt.label, receipt.call_id) == ("[REDACTED:KEY]",) * 2
    for path in conversation.path.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    wide = await publish_text(conversation.path, "ä\n".encode("utf-16"))
    assert conversation.text(wide) == "ä\n".encode()
    plain = await publish_text(conversation.path, SECRET, secrets={"KEY": SECRET}, redaction="none")
    assert (conversation.text(plain), conversation.stdout(plain).representation) == (SECRET.encode(), "decoded")


@pytest.mark.asyncio
async def test_an_empty_text_is_complete(conversation: Conversation) -> None:
    """And is in a file, as every published text is."""
    receipt = await publish_text(conversation.path, "")
    assert (receipt.capture.state, conversation.text(receipt)) == ("complete", b"")


@pytest.mark.asyncio
async def test_calls_of_the_same_moment_have_their_own_captures(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty at once, with one clock that stands still; equal texts are not merged [A6]."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr("supervisor.clock.SystemClock.wall", lambda _: moment)
    texts = ["same\n" if number % 2 else f"text {number}\n" for number in range(30)]
    receipts = await asyncio.gather(*(publish_text(conversation.path, text) for text in texts))
    assert len({receipt.capture_id for receipt in receipts}) == 30
    assert [conversation.text(receipt).decode() for receipt in receipts] == texts
    assert {receipt.capture.state for receipt in receipts} == {"complete"}
    assert len(conversation.captures()) == 30


@pytest.mark.parametrize("kind", ["../x", "a/b", "", "x" * 65, "Browser", "x\n", "process", ".", 3])
def test_a_kind_that_is_no_plain_word_is_refused_at_once(conversation: Conversation, kind: Any) -> None:  # noqa: ANN401
    """Nobody may make a path of it, and nobody claims to be a command of ours; nothing was written."""
    with pytest.raises(ValueError, match="word such as"):
        asyncio.run(publish_text(conversation.path, "x", kind=kind))
    assert list(conversation.path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"upstream": "whole"}, ValueError),
        ({"redaction": "some"}, ValueError),
        ({"durability": "some"}, ValueError),
        ({"label": 3}, TypeError),
        ({"call_id": 3}, TypeError),
        ({"call_id": "x" * 201}, ValueError),
    ],
)
def test_other_arguments_are_checked_at_once(
    conversation: Conversation, options: dict[str, Any], error: type[Exception]
) -> None:
    """Nothing was written."""
    with pytest.raises(error):
        asyncio.run(publish_text(conversation.path, "x", **options))
    assert list(conversation.path.iterdir()) == []


@pytest.mark.asyncio
async def test_a_file_that_is_there_is_neither_opened_up_nor_replaced(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 0400 under the name that the next capture takes: that capture is unavailable, the file as it was [D2]."""
    first = await publish_text(conversation.path, "x")
    name = f"{first.capture_id[:-32]}{'0' * 32}"
    existing = conversation.path / "tool-outputs" / "captures" / name
    existing.write_text("theirs")
    existing.chmod(0o400)
    monkeypatch.setattr("supervisor.publishing.new_capture_id", lambda *_: name)
    receipt = await publish_text(conversation.path, "y")
    assert (receipt.capture.state, conversation.stdout(receipt).path) == ("unavailable", None)
    assert receipt.stdout == "y"
    assert (existing.read_text(), stat.S_IMODE(existing.stat().st_mode)) == ("theirs", 0o400)


@pytest.mark.asyncio
async def test_limits_hold_as_for_a_command(conversation: Conversation) -> None:
    """The job's own, without a part for stderr; then the conversation's, which all share [D5]."""
    limits = Limits(job_bytes=100, conversation_bytes=150)
    first = await publish_text(conversation.path, "x" * 200, limits=limits)
    assert (first.capture.state, first.capture.reason) == ("partial", "job-limit")
    assert len(conversation.text(first)) == 100
    second = await publish_text(conversation.path, "x" * 80, limits=limits)
    assert (second.capture.state, second.capture.reason) == ("partial", "conversation-limit")
    assert len(conversation.text(second)) == 50


@pytest.mark.asyncio
async def test_without_a_directory_the_receipt_says_so(conversation: Conversation) -> None:
    """None, one that is missing, one that is everybody's: the text is in the preview alone [D1, D2]."""
    open_to_all = conversation.path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for directory, reason in (
        (None, "no-directory"),
        (conversation.path / "missing", "no-directory"),
        (open_to_all, "unsafe-directory"),
    ):
        receipt = await publish_text(directory, "x\n")
        assert (receipt.capture.state, receipt.capture.reason, receipt.stdout) == ("unavailable", reason, "x\n")
        assert (receipt.durability, conversation.stdout(receipt).access) == (None, "unavailable")


@pytest.mark.asyncio
async def test_a_text_beside_jobs_shares_their_allowance_and_owes_no_completion(conversation: Conversation) -> None:
    """A supervisor of the same directory goes on; the next one offers the job's end alone."""
    limits = Limits(conversation_bytes=1000)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        job = await supervisor.start(["true"])
        receipt = await publish_text(conversation.path, "x" * 900, limits=limits)
        assert receipt.capture.state == "complete"
        late = await supervisor.start(["seq", "1000"])
        assert (await late.wait()).capture.reason == "conversation-limit"
        await late.acknowledge()
        await job.wait()
    async with Supervisor(conversation.path) as supervisor:
        completions = supervisor.completions()
        assert (await anext(completions)).receipt.capture_id == job.capture_id
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anext(completions)


@pytest.mark.asyncio
async def test_a_value_that_cannot_be_searched_for_is_named(conversation: Conversation) -> None:
    """In the limitations, as for a command [C5]."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        receipt = await publish_text(conversation.path, "x", secrets={"PIN": "4711"}, durability="none")
    assert "secret-not-searched:PIN" in receipt.limitations
    assert receipt.durability is not None
    assert not receipt.durability.barrier
    record = json.loads((conversation.of(receipt) / "launch.json").read_bytes())
    assert (record["kept"], record["owner"]["pid"]) == (False, os.getpid())
