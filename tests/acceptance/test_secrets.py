"""A secret that a child prints is never on disk: not whole, not in part, not for a moment (C1-C8)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

SECRET: Final = "kT9vQ2xLmW4zR7pB" + "nY5cJ8hF3sD6gA1e"
NAME: Final = "ACCEPTANCE_API_KEY"
HALVES: Final = (SECRET[:16].encode(), SECRET[16:].encode())
SCAN_SECONDS: Final = 0.01


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the secret into our environment, where the supervisor and its children find it."""
    monkeypatch.setenv(NAME, SECRET)
    return SECRET


def leaks(conversation: Conversation) -> list[str]:
    """Return the files that hold the secret or one of its halves now."""
    return [f"{half!r} in {path}" for half in HALVES for path in conversation.holding(half)]


@pytest.mark.asyncio
async def test_halves_that_come_some_time_apart_are_on_disk_at_no_time(
    conversation: Conversation, secret: str, program: Callable[..., list[str]], until: Callable[..., Any]
) -> None:
    """The first half is held while the pipe is quiet, and the file is looked at all the while (C1, C3)."""
    del secret
    found: list[str] = []
    scans = 0

    async def scan() -> None:
        nonlocal scans
        while True:
            found.extend(leaks(conversation))
            scans += 1
            await asyncio.sleep(SCAN_SECONDS)

    async with Supervisor(conversation.path) as supervisor:
        scanning = asyncio.create_task(scan())
        job = await supervisor.start(program("split_secret", NAME), stdin=PIPE)
        await until(lambda: (facts := job.receipt.streams["stdout"]) and facts.held == 16)
        assert job.receipt.stdout == "value: "  # what can be decided is, at once
        enough = scans + 10
        await until(lambda: scans >= enough)
        await job.write(b"go on\n")
        receipt = await job.wait()
        final = scans + 2
        await until(lambda: scans >= final)
        scanning.cancel()
        await asyncio.wait({scanning})
    assert found == []
    assert leaks(conversation) == []
    assert not any(half in receipt.to_json() for half in HALVES)
    assert conversation.text(receipt) == f"value: [REDACTED:{NAME}]\n[REDACTED:{NAME}]".encode()
    assert receipt.streams["stdout"] is not None
    assert receipt.streams["stdout"].redactions == {NAME: 2}
    assert receipt.capture.state == "complete"


@pytest.mark.parametrize("moment", ["held", "later"])
def test_a_supervisor_that_is_killed_leaves_no_part_of_it(
    conversation: Conversation,
    secret: str,
    program: Callable[..., list[str]],
    host_program: Callable[..., list[str]],
    loop_module: str,
    moment: str,
) -> None:
    """What is undecided is in memory only, so it goes with the process (C2, D6)."""
    del secret
    command = host_program("leaking_host", loop_module, str(conversation.path), *program("split_secret", NAME))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        child = int(host.stdout.readline())
        try:
            if moment == "later":
                for _ in range(10):
                    assert leaks(conversation) == []
                    time.sleep(SCAN_SECONDS)
        finally:
            host.kill()
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
    assert leaks(conversation) == []
    (capture,) = conversation.captures()
    assert (capture / "stdout.live").read_bytes() == b"value: "
    assert not (capture / "receipt.json").exists()


@pytest.mark.asyncio
async def test_labels_arguments_and_errors_pass_the_same_redactor(conversation: Conversation, secret: str) -> None:
    """Every text of the receipt and the launch record does (C8)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "exit 1", secret], label=f"with {secret}", call_id=secret)
        receipt = await job.wait()
    marker = f"[REDACTED:{NAME}]"
    assert receipt.command is not None
    assert (receipt.command[-1], receipt.label, receipt.call_id) == (marker, f"with {marker}", marker)
    assert leaks(conversation) == []


@pytest.mark.asyncio
async def test_values_of_the_child_and_of_the_caller_are_found_too(conversation: Conversation) -> None:
    """By variable of the child alone, by the caller's word, and in an encoding (C5)."""
    theirs, given = "child-only-" + SECRET[::-1], "callers-own-" + SECRET[3:]
    environment = {"PATH": os.environ["PATH"], "SERVICE_TOKEN": theirs}
    script = f'echo "$SERVICE_TOKEN"; printf %s "$SERVICE_TOKEN" | base64 -w0; echo; echo {given}; exit 1'
    async with Supervisor(conversation.path, secrets={"caller": given}) as supervisor:
        receipt = await supervisor.run(script, shell=True, env=environment)
    text = conversation.text(receipt)
    assert text.startswith(b"[REDACTED:SERVICE_TOKEN]\n")
    assert text.endswith(b"[REDACTED:caller]\n")
    for value in (theirs, given, base64.b64encode(theirs.encode()).decode()):
        assert conversation.holding(value[:20].encode()) == []
        assert value.encode() not in receipt.to_json()


@pytest.mark.asyncio
async def test_a_cut_stream_leaves_no_beginning_of_a_secret(
    conversation: Conversation, secret: str, program: Callable[..., list[str]]
) -> None:
    """A forced ending decides nothing in the secret's favour: the held rest becomes a marker (C7)."""
    del secret
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("split_secret", NAME), stdin=PIPE, time_limit=0.5)
    assert receipt.process is not None
    assert receipt.process.reason == "time-limit"
    assert conversation.text(receipt) == b"value: [REDACTED:undecided]"
    assert receipt.streams["stdout"] is not None
    assert (receipt.streams["stdout"].omitted, receipt.streams["stdout"].held) == (16, 0)
    assert leaks(conversation) == []


@pytest.mark.asyncio
async def test_escapes_inside_a_secret_do_not_hide_it(conversation: Conversation, secret: str) -> None:
    """Controls are taken out before the search (facts 4), and counted."""
    coloured = secret[:10] + "\x1b[31m" + secret[10:20] + "\x00" + secret[20:]
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("cat; exit 1", shell=True, stdin=coloured.encode())
    assert conversation.text(receipt) == f"[REDACTED:{NAME}]".encode()
    assert receipt.streams["stdout"] is not None
    assert receipt.streams["stdout"].controls_removed == 6


@pytest.mark.asyncio
async def test_redaction_none_keeps_the_text_and_says_so(conversation: Conversation, secret: str) -> None:
    """It is the caller's choice, and the receipt's policy tells the reader (A1)."""
    async with Supervisor(conversation.path, redaction="none") as supervisor:
        receipt = await supervisor.run(f'echo "${NAME}"; exit 1', shell=True)
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert conversation.text(receipt) == secret.encode() + b"\n"
    assert (facts.policy, facts.representation) == ("none", "decoded")
    with pytest.raises(ValueError, match="redaction"):
        Supervisor(redaction="some")  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_no_directory_means_no_secret_in_a_preview_either(secret: str) -> None:
    """Previews and files come from the same text (C2)."""
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(f'echo "<${NAME}>"', shell=True)
    assert receipt.stdout == f"<[REDACTED:{NAME}]>\n"
    assert secret not in json.dumps(receipt.model_dump(mode="json"))


def test_the_halves_are_what_is_looked_for(conversation: Conversation) -> None:
    """The search of these tests finds what it has to: a test that cannot fail is a defect."""
    for half in HALVES:
        (conversation.path / "planted").write_bytes(b"x" + half)
        assert len(leaks(conversation)) == 1
