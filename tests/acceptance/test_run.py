"""A foreground run, end to end: what it returns and what it leaves on disk."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import JobFailed, Limits, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

SCRIPT = "echo BEGIN; seq 1 300000; echo END; echo oops >&2; exit 3"


def output_of(script: str) -> bytes:
    """Return what the script writes to stdout when nobody of ours is between."""
    return subprocess.run(["sh", "-c", script], check=False, capture_output=True).stdout


async def test_beyond_its_limit_a_job_keeps_a_prefix_its_error_and_its_code(conversation: Conversation) -> None:
    """The case that the project exists for: no limit of ours changes the exit, the last error or the end (B2, B5)."""
    async with Supervisor(conversation.path, limits=Limits(job_bytes=1_000_000)) as supervisor:
        receipt = await supervisor.run(SCRIPT, shell=True)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code, receipt.process.signal) == ("exited", 3, None)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "job-limit")
    kept = conversation.text(receipt)
    assert kept.startswith(b"BEGIN\n1\n2\n")
    assert 450_000 < len(kept) <= 500_000  # half of so small a limit is stderr's reserve
    assert conversation.text(receipt, "stderr") == b"oops\n"
    assert receipt.streams["stderr"] is not None
    assert receipt.streams["stderr"].state == "complete"
    assert receipt.stdout.endswith("300000\nEND\n")
    assert receipt.stderr == "oops\n"
    assert conversation.published(receipt) == receipt


async def test_within_its_limit_the_file_is_the_commands_own_output(conversation: Conversation) -> None:
    """Every byte arrives, in order, and the receipt's digest is that of the bytes (D3)."""
    expected = output_of(SCRIPT)
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(SCRIPT, shell=True)
    facts = receipt.streams["stdout"]
    assert facts is not None
    assert (receipt.capture.state, receipt.capture.reason) == ("complete", None)
    assert conversation.text(receipt) == expected
    assert facts.sha256 == hashlib.sha256(expected).hexdigest()
    assert (facts.raw.observed, facts.raw.accepted) == (len(expected), len(expected))
    assert (facts.raw.pending, facts.raw.discarded, facts.held, facts.uncommitted) == (0, 0, 0, 0)
    assert (facts.lines, facts.ends_with_newline) == (300_002, True)


async def test_a_small_success_leaves_no_file(conversation: Conversation) -> None:
    """Its receipt carries all of it (A7); what the supervisor needs for itself is gone with it."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", "echo out; echo err >&2"])
        assert conversation.captures() == []
    assert conversation.files() == set()
    assert (receipt.stdout, receipt.stderr) == ("out\n", "err\n")
    assert receipt.ok
    assert receipt.capture.state == "complete"
    assert {facts.access for facts in receipt.streams.values() if facts} == {"inline"}
    assert {facts.reference for facts in receipt.streams.values() if facts} == {None}


@pytest.mark.parametrize(
    ("script", "options", "state"),
    [
        pytest.param("echo first; exit 1", {}, "exited", id="failure"),
        pytest.param("echo first; kill -9 $$", {}, "exited", id="signal"),
        pytest.param("echo first; seq 1 20000", {}, "exited", id="large"),
        pytest.param("echo first; exec sleep 60", {"time_limit": 0.3}, "timeout", id="timeout"),
        pytest.param("echo first; exec sleep 60", {"idle_limit": 0.3}, "timeout", id="idle"),
    ],
)
async def test_every_other_ending_is_on_disk_from_byte_0(
    conversation: Conversation, script: str, options: dict[str, Any], state: str
) -> None:
    """What was held in memory is spilled, and the receipt published (A7)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(script, shell=True, **options)
    assert receipt.process is not None
    assert receipt.process.state == state
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt).startswith(b"first\n")
    assert conversation.published(receipt) == receipt
    names = {path.name for path in conversation.captures_of(receipt).iterdir()}
    assert names == {"launch.json", "stdout.log", "stderr.log", "receipt.json"}
    assert receipt.durability is not None
    assert receipt.durability.barrier


async def test_a_cancelled_run_is_on_disk_from_byte_0(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """Cancelling ends the tree, publishes, and only then goes on (F5)."""
    async with Supervisor(conversation.path) as supervisor:
        task = asyncio.create_task(supervisor.run(["sh", "-c", "echo first; exec sleep 60"], window_bytes=1024))
        await asyncio.sleep(0)
        assert await first_text(supervisor.jobs[0]) == "first\n"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        receipt = supervisor.jobs[0].receipt
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason, receipt.process.signal) == ("cancelled", "caller", 15)
    assert conversation.text(receipt) == b"first\n"
    assert conversation.published(receipt) == receipt


async def test_a_merged_stream_has_one_pipe_and_one_order(conversation: Conversation) -> None:
    """It is called stdout, and there is no stderr at all (B7)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo 1; echo 2 >&2; echo 3; exit 4", shell=True, merge=True)
    assert receipt.streams["stderr"] is None
    assert receipt.stdout == "1\n2\n3\n"
    assert conversation.text(receipt) == b"1\n2\n3\n"
    assert not (conversation.captures_of(receipt) / "stderr.log").exists()


@pytest.mark.parametrize("script", ["echo hidden-$((6*7)); exit 3", "seq 1 100000; echo hidden-$((6*7)); exit 3"])
async def test_without_capture_no_text_is_kept_anywhere(conversation: Conversation, script: str) -> None:
    """Neither file nor preview holds any; the counts and the exit are still there (B9)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(script, shell=True, capture="none")
        started = await job.wait()
        run = await supervisor.run(script, shell=True, capture="none")
    assert conversation.holding(b"hidden-42") == []
    for receipt in (started, run):
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert (receipt.capture.state, facts.state, facts.preview) == ("disabled", "disabled", None)
        assert (facts.representation, facts.lines, facts.redactions, facts.sha256) == (None, None, None, None)
        assert b"hidden-42" not in receipt.to_json()
        assert receipt.process is not None
        assert receipt.process.code == 3
        assert facts.raw.observed == facts.raw.discarded
        assert facts.raw.observed is not None
        assert facts.raw.observed >= len("hidden-42\n")
    assert conversation.captures() == []


async def test_without_a_directory_the_previews_are_all_there_is() -> None:
    """Capture is unavailable and says why; the command runs all the same (D1)."""
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(SCRIPT, shell=True)
        small = await (await supervisor.start(["echo", "small"])).wait()
    assert receipt.process is not None
    assert receipt.process.code == 3
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "no-directory")
    assert receipt.conversation is None
    assert receipt.stdout.startswith("BEGIN\n1\n")
    assert receipt.stdout.endswith("END\n")
    assert receipt.stderr == "oops\n"
    assert (small.capture.reason, small.stdout) == ("no-directory", "small\n")


@pytest.mark.parametrize(("number", "script"), [(9, "kill -9 $$"), (15, "kill -15 $$"), (11, "kill -11 $$")])
async def test_death_by_signal_has_a_signal_and_no_code(conversation: Conversation, number: int, script: str) -> None:
    """The two facts are apart (A2), also for one that looks like our own TERM: nobody asked for it, so it exited."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["sh", "-c", script])
        shell = await supervisor.run(["sh", "-c", f"sh -c '{script}'; exit $?"])
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code, receipt.process.signal) == ("exited", None, number)
    assert shell.process is not None
    assert (shell.process.code, shell.process.signal) == (128 + number, None)  # a shell's word for it is only a code
    with pytest.raises(JobFailed) as failure:
        receipt.check()
    assert failure.value.receipt is receipt


async def test_an_early_end_of_output_is_not_the_exit(
    conversation: Conversation, program: Callable[..., list[str]]
) -> None:
    """A child that closes its output goes on until it exits, and its code is kept (F1)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(program("early_close"), stdin=b"something to wait for")
    assert receipt.process is not None
    assert receipt.process.code == 7
    assert receipt.capture.state == "complete"
    assert receipt.stdout == "closing\n"
