"""A wait for what a command prints ends with the match, or as soon as it can be known that none comes (E1, E3, F5)."""

from __future__ import annotations

import asyncio
import math
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Cursor, CursorError, Limits, NeverReady, Supervisor
from supervisor.testing import FakeChild, VirtualClock

if TYPE_CHECKING:
    from conftest import Conversation, PageWithText, Until

    from supervisor.sansio.words import StreamName

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 60.0
NEVER: Final = 3600.0
"""Seconds that no test waits for: a wait that ended did not end by this clock."""


async def test_a_conversation_with_a_command_goes_on_from_match_to_match(conversation: Conversation) -> None:
    """A prompt without a line end, then a line with a group; each match says where it was, for every other reader."""
    script = "printf 'zwölf> '; read -r name; echo \"hello $name\"; echo '> '"
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(script, shell=True, stdin=PIPE)
        prompt = await job.wait_for("f> ")
        assert (prompt.text, prompt.groups) == ("f> ", ())
        assert (prompt.start, prompt.cursor) == tuple(Cursor(job.capture_id, "stdout", 0, at) for at in (5, 8))
        await job.write(b"you\n")
        hello = await job.wait_for(re.compile(r"^hello (\w+)( twice)?$"), cursor=prompt.cursor)
        assert (hello.text, hello.groups) == ("hello you", ("you", None))
        await job.wait()
        assert await job.wait_for("f> ") == prompt  # what was printed before is there ever after
        assert (await job.wait_for("> ", cursor=prompt.cursor)).start.offset == 18
        assert (await job.read(cursor=hello.start)).text == "hello you\n> \n"


async def test_a_match_over_pieces_is_found_when_its_line_is_whole(
    conversation: Conversation, page_with_text: PageWithText, until: Until
) -> None:
    """Half of a number is no number; a literal is there with its last character. On a fake child."""
    child = FakeChild()
    async with Supervisor(conversation.path, spawn=child.spawn) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["served"])
        number = asyncio.ensure_future(job.wait_for(re.compile(r"port (\d+)"), "stderr"))
        literal = asyncio.ensure_future(job.wait_for("rt 8", "stderr"))
        await child.feed(b"on po", "stderr")
        await child.feed(b"stdout is another stream: port 1\n")
        await page_with_text(job)
        await child.feed(b"rt 80", "stderr")
        assert (await literal).start.offset == 5
        await until(lambda: job._course.pumps["stderr"].stream.ledger.committed == 10)
        assert not number.done()
        await child.feed(b"80\n", "stderr")
        assert (await number).groups == ("8080",)
        child.exit(0)


async def test_a_long_output_is_searched_to_its_end(conversation: Conversation) -> None:
    """By any number of waiters at once, in lines and in one that has no end."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start("seq 20000; head -c 300000 /dev/zero | tr '\\0' x; printf ready", shell=True)
        found = await asyncio.gather(
            job.wait_for("\n19999\n"), job.wait_for(re.compile("^1777.$")), job.wait_for(re.compile("x(ready)$"))
        )
        text = conversation.text(await job.wait())
    assert [match.start.offset for match in found] == [
        text.index(b"\n19999\n"),
        text.index(b"17770\n"),
        len(text) - len("xready"),
    ]


async def test_an_end_without_a_match_is_told_with_nothing_of_the_output(conversation: Conversation) -> None:
    """Neither before the last text was searched nor by a timeout."""
    async with Supervisor(conversation.path, secrets={"TOKEN": "cabbage-and-leeks"}) as supervisor:
        job = await supervisor.start("echo the cabbage-and-leeks; printf unfinished", shell=True)
        async with asyncio.timeout(PATIENCE):
            for pattern in ("cabbage", re.compile("leeks")):  # it is masked before anybody can look at it
                with pytest.raises(NeverReady) as caught:
                    await job.wait_for(pattern, timeout=NEVER)
                error = caught.value
                assert (error.ended, error.state, error.reason) == (True, "complete", None)
                assert str(error) == "the job has ended without a match in stdout (complete)"
            assert (await job.wait_for(re.compile("unfinished$"))).text == "unfinished"


@pytest.mark.parametrize(
    ("kept", "options", "stream", "state", "reason"),
    [
        (True, {}, "stdout", "partial", "job-limit"),
        (True, {"capture": "none"}, "stdout", "disabled", None),
        (True, {"merge": True}, "stderr", "complete", None),
        (False, {}, "stdout", "unavailable", "no-directory"),
    ],
)
async def test_where_nothing_more_is_kept_the_wait_ends_while_the_command_runs(
    conversation: Conversation,
    *,
    kept: bool,
    options: dict[str, Any],
    stream: StreamName,
    state: str,
    reason: str | None,
) -> None:
    """At once: what is not kept has no cursor, so it is not found (B5, B9)."""
    limits = Limits(job_bytes=7, stderr_reserve_bytes=0)
    async with Supervisor(conversation.path if kept else None, limits=limits) as supervisor:
        job = await supervisor.start("echo port 1234; exec cat", shell=True, stdin=PIPE, **options)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(NeverReady) as caught:
                # The limit has cut the line: what is left of the number is not the number.
                await job.wait_for(re.compile(r"port \d+"), stream)
        assert (caught.value.ended, caught.value.state, caught.value.reason) == (False, state, reason)
        assert not job.done
        if state == "partial":
            assert (await job.wait_for("port 12")).cursor.offset == 7
        await job.terminate()


async def test_the_time_of_a_wait_is_the_jobs_and_its_end_leaves_the_job(conversation: Conversation) -> None:
    """By the supervisor's clock; no timer is left when the match came first."""
    child, clock = FakeChild(), VirtualClock()
    async with Supervisor(conversation.path, spawn=child.spawn, clock=clock) as supervisor:
        job = await supervisor.start(["served"])
        waiting = asyncio.ensure_future(job.wait_for("ready", timeout=NEVER))
        await clock.advance(NEVER - 1)
        assert not waiting.done()
        await clock.advance(1)
        with pytest.raises(TimeoutError, match="within 3600 seconds"):
            await waiting
        with pytest.raises(TimeoutError):
            await job.wait_for("ready", timeout=0)
        assert not job.done
        waiting = asyncio.ensure_future(job.wait_for("ready", timeout=NEVER))
        await child.feed(b"ready\n")
        assert (await waiting).text == "ready"
        assert (await job.wait_for("ready", timeout=math.inf)).text == "ready"
        child.exit(0)
        assert (await job.wait()).ok


async def test_a_cancelled_wait_leaves_the_job_and_nothing_behind(conversation: Conversation, until: Until) -> None:
    """With a timeout and without one; the other waits go on (F5)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        waits = [asyncio.ensure_future(job.wait_for("text", timeout=seconds)) for seconds in (None, NEVER, NEVER)]
        await until(lambda: job._course.progress["stdout"]._next is not None)
        before = len(asyncio.all_tasks())
        for waiting in waits[:2]:
            waiting.cancel()
        await asyncio.wait(waits[:2])
        assert len(asyncio.all_tasks()) == before - 3  # the two, and what one of them ran
        assert all(waiting.cancelled() for waiting in waits[:2])
        await job.write(b"text\n")
        assert (await waits[2]).text == "text"
        await job.write_eof()
        assert (await job.wait()).ok


async def test_what_a_foreground_run_keeps_in_memory_is_found_at_its_end(
    conversation: Conversation, until: Until
) -> None:
    """It has no file, and so no cursor that others could use before (A7)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        running = asyncio.ensure_future(supervisor.run("echo one; echo two", shell=True))
        await until(lambda: supervisor.jobs)
        match = await supervisor.jobs[0].wait_for(re.compile("^two"))
        assert match.start.offset == 4
        assert (await running).ok
        assert conversation.captures() == []


async def test_wrong_arguments_are_refused_before_anything_is_waited_for(conversation: Conversation) -> None:
    """Each with the error of its kind, though nothing was printed yet."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        other = Cursor("20260101T000000000000Z-" + "0" * 32, "stdout")
        wrong: list[tuple[type[Exception], dict[str, Any]]] = [
            (ValueError, {"pattern": ""}),
            (ValueError, {"pattern": re.compile("x?")}),
            (TypeError, {"pattern": b"x"}),
            (TypeError, {"pattern": re.compile(b"x")}),
            (ValueError, {"timeout": -1}),
            (ValueError, {"timeout": math.nan}),
            (TypeError, {"timeout": "1"}),
            (TypeError, {"timeout": True}),
            (ValueError, {"stream": "stdin"}),
            (ValueError, {"cursor": other}),
            (CursorError, {"cursor": Cursor(job.capture_id, "stdout", 0, 5)}),
        ]
        async with asyncio.timeout(PATIENCE):
            for error, arguments in wrong:
                with pytest.raises(error):
                    await job.wait_for(**{"pattern": "x", **arguments})
        await job.terminate()


async def test_the_age_of_the_last_output_is_told(conversation: Conversation) -> None:
    """Of either stream, by a clock that does not jump; it stands still at the exit."""
    child, clock = FakeChild(), VirtualClock()
    async with Supervisor(conversation.path, spawn=child.spawn, clock=clock) as supervisor:
        await clock.advance(100)
        job = await supervisor.start(["served"])
        start = job.receipt.started_at
        assert start is not None
        await clock.advance(10)
        assert (job.last_output_at, job.idle_for, job.receipt.last_output_at) == (None, 10, None)
        await child.feed(b"text\n", "stderr")
        await clock.advance(5)
        expected = start + timedelta(seconds=10)
        assert (job.last_output_at, job.idle_for, job.receipt.last_output_at) == (expected, 5, expected)
        child.exit(0, hold_pipes=True)
        await clock.settle()
        await child.feed(b"late\n")
        await clock.advance(60)
        receipt = await job.wait()
        assert (job.last_output_at, job.idle_for) == (start + timedelta(seconds=15), 0)
        assert receipt.last_output_at == conversation.published(receipt).last_output_at == job.last_output_at
