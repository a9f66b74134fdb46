"""Reports of jobs that are evicted, told of twice or never, read away, or fed what they should not have (E5, F6-F9)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Limits, SpawnError, Supervisor, TooManyJobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

    from supervisor import Cursor

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 30.0


async def test_bug_054_descriptors_come_back(conversation: Conversation) -> None:
    """BUG-054 (NousResearch/hermes-agent#81292; vybestack/llxprt-code#1337): each job leaks some (F10)."""

    async def one(number: int) -> None:
        if number % 3 == 0:
            await supervisor.run("echo one-of-many; exit 1", shell=True)
        elif number % 3 == 1:
            await (await supervisor.start(["sleep", "300"], stdin=PIPE)).terminate()
        else:
            with pytest.raises(SpawnError):
                await supervisor.run(["/no/such/program"])

    def descriptors() -> set[str]:
        return {path.name for path in Path("/proc/self/fd").iterdir()}

    async with Supervisor(conversation.path, durability="none") as supervisor:
        for number in range(3):
            await one(number)
        before = descriptors()
        for number in range(30):
            await one(number)
        assert descriptors() == before


async def test_bug_056_children_get_three_descriptors(conversation: Conversation) -> None:
    """BUG-056 (navikt/cplt PR#329): sockets and other jobs' pipes are inherited, and held open (F7)."""
    with socket.socket() as listening:
        listening.set_inheritable(True)  # a host that was careless
        async with Supervisor(conversation.path) as supervisor:
            await supervisor.start(["sleep", "300"], stdin=PIPE)
            receipt = await supervisor.run(["sh", "-c", "ls /proc/$$/fd; true"])
    assert receipt.stdout == "0\n1\n2\n"


async def test_bug_098_stdin_and_output_go_on_together(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-098 (grantiva/cli#63; stdin writers): all of stdin is written before output is read: a deadlock (F7)."""
    data = b"0123456789abcde\n" * 65_536
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        echoed = await supervisor.run(["cat"], stdin=data)
        ignored = await supervisor.run(["true"], stdin=data)
    assert conversation.text(echoed) == data
    assert (process_of(ignored).code, ignored.capture.state) == (0, "complete")


async def test_bug_100_stdin_is_empty_unless_given(conversation: Conversation) -> None:
    """BUG-100 (anthropics/claude-code#79175): a command waits for ever for a stdin that never ends (F7)."""
    ours, theirs = os.pipe()
    before = os.dup(0)
    os.dup2(ours, 0)  # the host's own stdin never ends
    try:
        async with Supervisor(conversation.path) as supervisor:
            receipt = await supervisor.run("cat; echo got-eof", shell=True, time_limit=PATIENCE)
    finally:
        os.dup2(before, 0)
        for descriptor in (ours, theirs, before):
            os.close(descriptor)
    assert receipt.stdout == "got-eof\n"


async def test_bug_110_a_command_that_exits_takes_nothing_along(
    conversation: Conversation, process_of: Callable[..., Any]
) -> None:
    """BUG-110 (OpenHands/OpenHands#10550): `set -eu` or `exit` kills the shell of the commands that follow (A2)."""
    async with Supervisor(conversation.path) as supervisor:
        first = await supervisor.run("set -eu; cd /; false; echo never", shell=True)
        second = await supervisor.run("echo $unset; pwd; exit 0", shell=True)
    assert (process_of(first).code, first.stdout) == (1, "")
    assert (process_of(second).code, second.stdout) == (0, f"\n{Path.cwd()}\n")


async def test_bug_111_a_job_is_told_of_once(conversation: Conversation) -> None:
    """BUG-111 (NousResearch/hermes-agent PR#7124; netease-lcap/wave-agent PR#1005; anthropics/claude-code#76021)."""
    told: list[str] = []
    async with Supervisor(conversation.path, durability="none") as supervisor, asyncio.timeout(PATIENCE):
        first, second = supervisor.completions(), supervisor.completions()
        jobs = [await supervisor.start(["sh", "-c", "exit 2"]) for _ in range(10)]
        for job in jobs:
            receipts = await asyncio.gather(job.terminate(), *(job.wait() for _ in range(5)), job.terminate())
            assert all(receipt is receipts[0] for receipt in receipts)
        for _ in range(5):
            for consumer in (first, second):
                completion = await anext(consumer)
                told.append(completion.receipt.capture_id)
                await completion.acknowledge()
    assert sorted(told) == sorted(job.capture_id for job in jobs)
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        last = await supervisor.start(["true"])
        completion = await anext(supervisor.completions())
        assert (completion.receipt.capture_id, completion.redelivered) == (last.capture_id, False)


async def test_bug_112_an_end_waits_for_who_asks_late(conversation: Conversation) -> None:
    """BUG-112 (anthropics/claude-code#40235; anthropics/claude-code#20754): an unawaited notice is lost (E5)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["echo", "text"])
        receipt = await job.wait()
        assert (await job.read()).text == "text\n"
        completion = await anext(supervisor.completions())
        assert completion.receipt == receipt


async def test_bug_113_what_is_told_as_complete_is_on_disk(conversation: Conversation) -> None:
    """BUG-113 (anthropics/claude-code#81048; anthropics/claude-code#32252): the file is missing or still grows (D3)."""
    async with Supervisor(conversation.path, durability="none") as supervisor, asyncio.timeout(PATIENCE):
        consumer = supervisor.completions()
        for _ in range(10):
            await supervisor.start("head -c 300000 /dev/zero | tr '\\0' n", shell=True)
            receipt = (await anext(consumer)).receipt
            assert conversation.text(receipt) == b"n" * 300_000
            assert conversation.published(receipt) == receipt
            assert not list(conversation.captures_of(receipt).glob("*.live"))


async def test_bug_116_each_reader_has_the_whole_text(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-116 (codex unified_exec drain-on-read; coder/mux UI peek): one reader takes the text from another (E1)."""
    texts = dict.fromkeys((4, 5, 4096), "")  # by the size of the reader's pages
    cursors: dict[int, Cursor] = {}
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        for number in range(1, 9):
            await job.write(f"item {number}\n".encode())
            await until(lambda number=number: stream_of(job.receipt).committed == 7 * number)
            for size in texts:
                while (page := await job.read("stdout", cursors.get(size), size)).text:
                    texts[size] += page.text
                    cursors[size] = page.cursor
        await job.write_eof()
        await job.wait()
    assert set(texts.values()) == {"".join(f"item {number}\n" for number in range(1, 9))}


@pytest.mark.parametrize("kind", ["missing", "deleted", "file"])
async def test_bug_126_a_bad_working_directory_is_told_once(
    conversation: Conversation, tmp_path: Path, process_of: Callable[..., Any], kind: str
) -> None:
    """BUG-126 (openai/codex#44557): no event comes, and the caller waits for ever (F6)."""
    place = tmp_path / kind
    if kind == "deleted":
        place.mkdir()
        place.rmdir()
    elif kind == "file":
        place.touch()
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        with pytest.raises(SpawnError) as failure:
            await supervisor.start(["pwd"], cwd=place)
        assert supervisor.jobs == ()
    error = failure.value
    assert (error.fault, error.subject) == ("cwd", str(place))
    assert error.errno == (errno.ENOTDIR if kind == "file" else errno.ENOENT)
    assert error.receipt is not None
    assert process_of(error.receipt).state == "not-started"
    assert conversation.captures() == []


async def test_bug_128_what_cannot_be_executed_is_typed(
    conversation: Conversation, tmp_path: Path, process_of: Callable[..., Any]
) -> None:
    """BUG-128 (openai/codex#44557 family; shell 126/127 convention): an exception escapes the event flow (F6)."""
    known = {
        "noexec": (b"#!/bin/sh\n", 0o600, errno.EACCES),
        "shebang": (b"#!/no/such/interpreter\n", 0o700, errno.ENOENT),
        "noise": (b"\x01\x02 no program", 0o700, errno.ENOEXEC),
    }
    found: dict[str, int | None] = {}
    async with Supervisor(conversation.path) as supervisor:
        for name, (content, mode, _) in known.items():
            (tmp_path / name).write_bytes(content)
            (tmp_path / name).chmod(mode)
            with pytest.raises(SpawnError) as failure:
                await supervisor.run([tmp_path / name])
            found[name] = failure.value.errno
        receipt = await supervisor.run(f"{tmp_path}/noexec; echo $?; nosuchcmd_zz; echo $?", shell=True)
        other = await supervisor.run("nosuchcmd_zz", shell=True)
    assert found == {name: number for name, (_, _, number) in known.items()}
    assert receipt.stdout == "126\n127\n"
    assert (process_of(other).state, process_of(other).code) == ("exited", 127)


async def test_bug_132_a_live_job_is_never_evicted(
    conversation: Conversation, alive: Callable[[int], bool], process_of: Callable[..., Any]
) -> None:
    """BUG-132 (DSH maxConcurrentJobsPerOwner, codex 64-process prune (read in source)): an old one is killed (F9)."""
    async with Supervisor(conversation.path, limits=Limits(max_jobs=2)) as supervisor:
        jobs = [await supervisor.start(["cat"], stdin=PIPE) for _ in range(2)]
        for attempt in (supervisor.start, supervisor.run):
            with pytest.raises(TooManyJobs) as refusal:
                await attempt(["true"])
            assert refusal.value.live == 2
        assert all(job.pid is not None and alive(job.pid) for job in jobs)
        for job in jobs:
            await job.write_eof()
            assert process_of(await job.wait()).code == 0
        assert (await supervisor.run(["echo", "again"])).stdout == "again\n"


async def test_bug_104_no_command_can_eat_another_one(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-104 (gptme/gptme PR#3673): in a persistent shell a background `cat` takes the next command (A5, F7)."""
    script = "sleep 0.01 & cat; echo SECOND"
    async with Supervisor(conversation.path) as supervisor:
        fed = await supervisor.start(script, shell=True, stdin=PIPE)
        await fed.write(b"echo mine\n")
        await until(lambda: stream_of(fed.receipt).raw.observed == 10)
        others = [await supervisor.run(command, shell=True) for command in (script, "echo THIRD")]
        await fed.write_eof()
        receipt = await fed.wait()
    assert receipt.stdout == "echo mine\nSECOND\n"
    assert [other.stdout for other in others] == ["SECOND\n", "THIRD\n"]
