"""The public API as its user sees it: type-checked by mypy and pyright, never run.

Each function shows one use of the design's "The public API"; `assert_type` states what a caller may rely on.
"""

from __future__ import annotations

import asyncio
import math
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, assert_type

from supervisor import (
    PIPE,
    Cursor,
    CursorError,
    Job,
    JobFailed,
    Limits,
    Match,
    NeverReady,
    OpenCapture,
    Page,
    Receipt,
    SpawnError,
    StorageError,
    Supervisor,
    SupervisorError,
    UnknownCapture,
    export_captures,
    follow_capture,
    open_capture,
    publish_text,
    read_capture,
    resolve,
    share_capture,
)


async def opens_with_nothing_or_with_everything(directory: Path) -> None:
    """All arguments have defaults; a directory is text or a path."""
    async with Supervisor() as supervisor:
        assert_type(supervisor, Supervisor)
    async with Supervisor("conversation") as _:
        pass
    limits = Limits(job_bytes=math.inf, stall_timeout=1.5, max_jobs=8, digest=None)
    async with Supervisor(
        directory,
        limits=limits,
        admission="queue",
        secrets={"API_KEY": "value"},
        redaction="default",
        durability="none",
    ) as _:
        pass


async def starts_and_waits(supervisor: Supervisor, directory: Path) -> Receipt:
    """Every option of a command, by keyword."""
    job = await supervisor.start(
        ["pytest", Path("tests")],
        cwd=directory,
        env={"PATH": "/usr/bin"},
        stdin=None,
        shell=False,
        label="tests",
        call_id="call-1",
        record_command=True,
        time_limit=60,
        idle_limit=None,
        kill_after=5.0,
        drain_timeout=1.0,
        merge=False,
        capture="spool",
        keep="raw",
    )
    assert_type(job, Job)
    assert_type(supervisor.add_secret("API_KEY", "value"), None)
    assert_type(job.id, str)
    assert_type(job.capture_id, str)
    assert_type(job.receipt, Receipt)
    pid: int | None = job.pid
    assert pid is None or pid > 0
    return assert_type(await job.wait(), Receipt)


async def runs_in_the_foreground(supervisor: Supervisor) -> None:
    """A string goes through a shell; without one it is a list."""
    assert_type(await supervisor.run("make test | tail", shell=True, merge=True), Receipt)
    assert_type(await supervisor.run(("true",), capture="none"), Receipt)
    command: Sequence[str] = ["true"]
    environment: Mapping[str, str] = {}
    await supervisor.run(command, env=environment)


async def promotes_by_waiting_less(supervisor: Supervisor) -> Job | Receipt:
    """Cancelling a wait leaves the job alone (contract F5), so a timeout around it is all that promotion takes."""
    job = await supervisor.start(["make"])
    try:
        async with asyncio.timeout(120):
            return await job.wait()
    except TimeoutError:
        return job


async def feeds_and_signals(supervisor: Supervisor) -> None:
    """Bytes at once, bytes over time, or an open pipe."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"one\n"

    await supervisor.run(["cat"], stdin=b"all of it")
    await supervisor.run(["cat"], stdin=parts())
    job = await supervisor.start(["cat"], stdin=PIPE)
    await job.write(b"line\n")
    await job.write_eof()
    await job.send_signal(signal.SIGUSR1)
    await job.terminate(reason="caller")
    await job.terminate()


async def finds_jobs(supervisor: Supervisor) -> None:
    """The live ones by iteration, any by its id."""
    for job in supervisor.jobs:
        assert_type(job, Job)
    assert_type(supervisor.job("1"), Job)
    await supervisor.join()


async def reads_and_follows(job: Job, directory: Path) -> str:
    """From the job itself, or from the files alone; a cursor of one is good for the other."""
    page = assert_type(await job.read("stdout", cursor=None, max_bytes=65536), Page)
    text: str = page.text
    assert_type((page.start, page.cursor, page.eof), tuple[Cursor, Cursor, bool])
    async for following in job.follow("stdout", cursor=page.cursor):
        text += following.text
    elsewhere = await read_capture(directory, job.capture_id, "stderr", cursor=None, max_bytes=1024)
    assert_type(elsewhere.state, Literal["pending", "complete", "partial", "failed", "disabled", "unavailable"])
    async for outside in follow_capture(str(directory), job.capture_id, cursor=page.cursor):
        assert_type(outside, Page)
    return text


async def waits_until_it_is_ready(job: Job, directory: Path) -> None:
    """By output, port and file; it may never come."""
    try:
        match = assert_type(await job.wait_for(re.compile("port (.*)"), timeout=30), Match)
        assert_type(match.groups, tuple[str | None, ...])
        await job.wait_for("> ", stream="stderr", cursor=None)
        await job.wait_for(match.text, cursor=match.cursor)
        assert_type(await job.wait_for_port(8080, host="localhost", timeout=1.5), None)
        assert_type(await job.wait_for_file(directory / "ready", timeout=1), None)
    except NeverReady as error:
        assert_type(error.ended, bool)
    assert_type((job.last_output_at, job.idle_for), tuple[datetime | None, float | None])


def reads_the_facts(receipt: Receipt) -> None:
    """Exit, capture and text are told apart; unknown is None."""
    assert_type(receipt.capture_id, str)
    assert_type(receipt.job_id, str | None)
    assert_type(receipt.command, tuple[str, ...] | None)
    assert_type(receipt.started_at, datetime | None)
    assert_type(receipt.duration, float | None)
    assert_type(receipt.limitations, tuple[str, ...])
    process = receipt.process
    if process is not None:
        assert_type(process.code, int | None)
        assert_type(process.signal, int | None)
        assert_type(process.survivors, tuple[int, ...] | None)
        state: Literal["not-started", "running", "exited", "cancelled", "timeout", "unknown"] = process.state
        assert state
    capture: Literal["pending", "complete", "partial", "failed", "disabled", "unavailable"] = receipt.capture.state
    assert capture
    stdout = receipt.streams["stdout"]
    if stdout is not None:
        assert_type(stdout.raw.observed, int | None)
        assert_type(stdout.committed, int | None)
        assert_type(stdout.retained.end, int | None)
        assert_type(stdout.sha256, str | None)
        assert_type(stdout.redactions, Mapping[str, int] | None)
    if receipt.durability is not None:
        assert_type(receipt.durability.barrier, bool)


async def shows_and_keeps_a_receipt(receipt: Receipt) -> None:
    """As text, as JSON, for somebody else, and the whole of a stream."""
    assert_type(receipt.stdout, str)
    assert_type(receipt.stderr, str)
    assert_type(await receipt.read_text("stdout"), str)
    assert_type(receipt.render(2_000), str)
    assert_type(receipt.render(), str)
    assert_type(receipt.model_dump_json(), str)
    assert_type(receipt.for_sharing(), Receipt)
    assert_type(receipt.check(), Receipt)


async def handles_each_error(supervisor: Supervisor) -> Receipt | None:
    """Typed, with fields; one root for what is the world's fault."""
    try:
        return (await supervisor.run(["make"])).check()
    except SpawnError as error:
        assert_type(error.errno, int | None)
        return assert_type(error.receipt, Receipt | None)
    except JobFailed as error:
        return assert_type(error.receipt, Receipt)
    except CursorError as error:
        assert_type((error.start, error.end, error.generation), tuple[int, int, int])
    except StorageError as error:
        reason: str = error.reason
        assert reason
    except UnknownCapture as error:
        lookup: LookupError = error
        assert str(lookup)
    except SupervisorError:
        pass
    return None


async def publishes_what_no_command_printed(directory: Path) -> None:
    """A finished text, or what arrives in parts; its end is the producer's to tell."""
    assert_type(await publish_text(directory, "text"), Receipt)
    assert_type(await publish_text(None, b"bytes", kind="browser", upstream="unknown", label="a page"), Receipt)
    async with open_capture("talk", source="browser", secrets={"NAME": "value"}, limits=Limits()) as capture:
        assert_type(capture, OpenCapture)
        await capture.write("text")
        await capture.write(b"bytes")
        capture.truncate()
        assert_type(capture.capture_id, str)
    assert_type(capture.receipt, Receipt)


async def hands_captures_on(directory: Path, receipt: Receipt) -> None:
    """By copy, to somebody else or to another conversation."""
    assert_type(await export_captures(directory, [receipt.capture_id], "out"), list[Receipt])
    assert_type(await share_capture("talk", receipt.capture_id, directory, limits=Limits()), Receipt)
    assert_type(await resolve(receipt), Receipt)
    assert_type(await resolve(receipt, directory), Receipt)


def keeps_a_cursor(text: str) -> str:
    """A cursor is a value that goes to text and back."""
    cursor = assert_type(Cursor.parse(text), Cursor)
    assert_type(cursor.offset, int)
    return str(cursor)
