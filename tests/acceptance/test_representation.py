"""What a stream's text is of its bytes: a label that settles at the end and changes no text (B8)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from supervisor import PIPE, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

    from supervisor import Receipt
    from supervisor.sansio.receipt import StreamFacts

SECRET: Final = "rE7pR3s3nT4t" + "I0nQ5wZ8kV2m"
Redaction = Literal["default", "none"]


def facts_of(receipt: Receipt) -> StreamFacts:
    """Return what the receipt says of stdout."""
    facts = receipt.streams["stdout"]
    assert facts is not None
    return facts


@pytest.mark.asyncio
@pytest.mark.parametrize("redaction", ["default", "none"])
@pytest.mark.parametrize(
    ("raw", "text", "binary", "encoding"),
    [
        (b"plain\n", "plain\n", False, "utf-8"),
        ("密码 é\r\n".encode(), "密码 é\n", False, "utf-8"),
        ("密码 é 😀\r\nx".encode("utf-16"), "密码 é 😀\nx", False, "utf-16-le"),
        ("\ufeff密码 😀".encode("utf-16-be"), "密码 😀", False, "utf-16-be"),
        (b"\xff\xfea\0b", "a\ufffd", True, "utf-16-le"),
        ("no mark".encode("utf-16-le"), "no mark", True, "utf-8"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), "ELF", True, "utf-8"),
        (b"caf\xe9", "caf\ufffd", True, "utf-8"),
        (b"a banner that is text\n" * 10 + b"\xe9", "a banner that is text\n" * 10 + "\ufffd", False, "utf-8"),
        (b"", "", False, "utf-8"),
    ],
)
async def test_the_label_of_a_real_childs_output(
    conversation: Conversation, redaction: Redaction, raw: bytes, text: str, encoding: str, *, binary: bool
) -> None:
    """Binary, or else redacted or decoded by the policy; the encoding of the bytes; the text is what it is."""
    code = f"import sys; sys.stdout.buffer.write({raw!r}); sys.exit(1)"
    async with Supervisor(conversation.path, redaction=redaction) as supervisor:
        receipt = await supervisor.run([sys.executable, "-S", "-c", code])
    facts = facts_of(receipt)
    plain = "redacted" if redaction == "default" else "decoded"
    assert (facts.representation, facts.encoding) == ("binary" if binary else plain, encoding)
    assert conversation.text(receipt).decode() == receipt.stdout == text
    assert facts.raw.observed == len(raw)


@pytest.mark.asyncio
async def test_it_is_not_told_before_the_end_and_may_turn_at_it(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """A stream that began as text and went on as rubbish; what was committed by then stays as it is (C2)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(b"a banner\n")
        await until(lambda: facts_of(job.receipt).committed == 9)
        assert facts_of(job.receipt).representation is None
        await job.write(b"\xff" * 100)
        await job.write_eof()
        receipt = await job.wait()
    assert facts_of(receipt).representation == "binary"
    assert conversation.text(receipt).decode() == "a banner\n" + "\ufffd" * 100


@pytest.mark.asyncio
async def test_a_secret_in_utf_16_is_found_whatever_the_chunks(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """Byte by byte, its halves in different reads, and beside characters outside the basic plane (C1, facts 4)."""
    raw = f"😀{SECRET}密\n".encode("utf-16")
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        for count in range(len(raw)):
            await job.write(raw[count : count + 1])
            await until(lambda count=count: facts_of(job.receipt).raw.observed == count + 1)
        await job.write_eof()
        receipt = await job.wait()
    assert conversation.text(receipt).decode() == "😀[REDACTED:key]密\n"
    assert facts_of(receipt).redactions == {"key": 1}
    assert conversation.holding(SECRET.encode()) == conversation.holding(SECRET.encode("utf-16-le")) == []


@pytest.mark.asyncio
async def test_no_text_is_kept_means_no_label(conversation: Conversation) -> None:
    """There is nothing that it could be said of (B9)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["echo", "text"], capture="none")
    assert (facts_of(receipt).representation, facts_of(receipt).encoding) == (None, None)


@pytest.mark.asyncio
@pytest.mark.parametrize("kept", [True, False])
async def test_a_progress_bar_is_a_line_for_each_state_on_disk_and_one_in_the_preview(
    conversation: Conversation,
    kept: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    """Also where all of it would fit the receipt: what the preview leaves out is in a file, and the receipt says so."""
    script = r"printf 'get\n10%%\r20%%\r'; sleep 0.01; printf '100%%\r\ndone\n'"
    async with Supervisor(conversation.path) as supervisor:
        if kept:
            receipt = await (await supervisor.start(script, shell=True)).wait()
        else:
            receipt = await supervisor.run(script, shell=True)
    facts = facts_of(receipt)
    assert facts.preview is not None
    assert conversation.text(receipt) == b"get\n10%\n20%\n100%\ndone\n"
    assert (facts.preview.state, facts.preview.head, facts.preview.tail) == ("clipped", "get\n100%\ndone\n", "")
    assert (facts.preview.frames_dropped, facts.preview.omitted_bytes, facts.lines) == (2, 8, 5)
    assert "[8 bytes omitted, with 2 overwritten states of a line]" in receipt.render()
    assert (facts.access, receipt.capture.state) == ("local", "complete")
