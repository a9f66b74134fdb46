"""A job's text is read by any number of readers, each at its own pace, while it runs and ever after (E1-E3, E6)."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Cursor, CursorError, Job, Limits, Page, Supervisor, following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from conftest import Conversation, PageWithText, Until

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 60.0
LINES: Final = 600_000
"""Some 4 MiB of numbered lines: larger than every buffer between the child and its readers."""


async def text_of(pages: AsyncIterator[Page]) -> str:
    """Read to the end; the last page says so and no other does."""
    parts: list[str] = []
    eof = False
    async with asyncio.timeout(PATIENCE):
        async for page in pages:
            assert not eof
            parts.append(page.text)
            eof = page.eof
    assert eof
    return "".join(parts)


async def test_ten_followers_read_the_text_of_the_file(
    conversation: Conversation, page_with_text: PageWithText
) -> None:
    """To the byte, from any moment, in pages of any size; a slow one holds up nobody (E1)."""

    async def digest(job: Job, max_bytes: int, *, slow: bool = False) -> str:
        found = hashlib.sha256()
        async for page in job.follow("stdout", None, max_bytes):
            found.update(page.text.encode())
            if slow:
                await job.wait()  # it reads its second page when the child is gone and its file has another name
        return found.hexdigest()

    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["seq", str(LINES)])
        early = [asyncio.ensure_future(digest(job, 65536, slow=number == 0)) for number in range(6)]
        await page_with_text(job)
        later = [asyncio.ensure_future(digest(job, size)) for size in (1000, 100_001, 10_000_000)]
        receipt = await job.wait()
        after = asyncio.ensure_future(digest(job, 300_000))
        digests = await asyncio.gather(*early, *later, after)
    stdout = receipt.streams["stdout"]
    assert stdout is not None
    assert set(digests) == {stdout.sha256} == {hashlib.sha256(conversation.text(receipt)).hexdigest()}


@pytest.mark.parametrize("kept", [2000, 1500])
async def test_a_full_page_that_was_read_early_is_no_end_later(
    conversation: Conversation, kept: int, page_with_text: PageWithText
) -> None:
    """The same range read again after the text grew to its end, or to a limit, is a page with more behind it (E3)."""
    limits = Limits(conversation_bytes=kept)
    async with Supervisor(conversation.path, limits=limits) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start("printf %01000d; read _; printf %01000d; read _", shell=True, stdin=PIPE)
        await page_with_text(job)
        early = await job.read(max_bytes=1000)
        await job.write(b"\n")
        if kept == 2000:
            await job.write_eof()
            await job.wait()
        assert len(await text_of(job.follow())) == kept  # it ends at the limit, though the child goes on
        late = await job.read(max_bytes=1000)
        assert (len(early.text), late.text, late.eof) == (1000, early.text, False)


async def test_begin_and_end_of_a_large_output_are_read_by_cursor(conversation: Conversation) -> None:
    """Both ends are there, and any range between (B2, E3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(f"echo BEGIN; seq {LINES}; echo END", shell=True)
        receipt = await job.wait()
        stdout = receipt.streams["stdout"]
        assert stdout is not None
        assert stdout.committed is not None
        begin = await job.read(max_bytes=8)
        assert (begin.text, begin.eof, begin.state) == ("BEGIN\n1\n", False, "complete")
        end = await job.read(cursor=begin.cursor.at(stdout.committed - 4))
        assert (end.text, end.eof) == ("END\n", True)
        assert end.cursor.offset == stdout.committed
        assert (await job.read(cursor=end.cursor)).text == ""


async def test_a_read_never_waits_for_the_child(conversation: Conversation, page_with_text: PageWithText) -> None:
    """Nothing yet is an empty page that is not the end; the text comes from the cursor where one left off (E2)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        page = await job.read()
        assert (page.text, page.state, page.reason, page.eof) == ("", "pending", None, False)
        assert page.start == page.cursor == Cursor(job.capture_id, "stdout")
        await job.write("zwölf\n".encode())
        page = await page_with_text(job)
        assert (page.text, page.state, page.eof) == ("zwölf\n", "pending", False)
        inside = await job.read(cursor=page.start.at(3))
        assert (inside.start.offset, inside.text) == (2, "ölf\n")
        await job.write_eof()
        await job.wait()
        page = await job.read(cursor=page.cursor)
        assert (page.text, page.state, page.eof) == ("", "complete", True)


async def test_wrong_requests_are_told_apart(conversation: Conversation) -> None:
    """The caller's mistakes at once, a stale cursor with the range that there is (E3)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["echo", "one"])
        other = await supervisor.start(["true"])
        await supervisor.join()
        with pytest.raises(ValueError, match="another"):
            job.follow(cursor=Cursor(other.capture_id, "stdout"))
        with pytest.raises(ValueError, match="another"):
            await job.read("stderr", Cursor(job.capture_id, "stdout"))
        with pytest.raises(ValueError, match="max_bytes"):
            job.follow(max_bytes=3)
        for cursor in (Cursor(job.capture_id, "stdout", 1), Cursor(job.capture_id, "stdout", 0, 5)):
            with pytest.raises(CursorError) as caught:
                await job.read(cursor=cursor)
            assert (caught.value.start, caught.value.end, caught.value.generation) == (0, 4, 0)


async def test_following_ends_where_retention_ended(conversation: Conversation) -> None:
    """The child goes on, but nothing more is kept: the last page says why (B5, E3)."""
    limits = Limits(job_bytes=1_000_000)
    async with Supervisor(conversation.path, limits=limits) as supervisor:
        job = await supervisor.start("seq 1000000; exec cat", shell=True, stdin=PIPE)
        pages = [page async for page in job.follow()]
        last = pages[-1]
        assert (last.state, last.reason, last.eof) == ("partial", "job-limit", True)
        assert job.receipt.process is not None
        assert job.receipt.process.state == "running"
        await job.write_eof()
        receipt = await job.wait()
        assert "".join(page.text for page in pages).encode() == conversation.text(receipt)
        assert (await job.read(cursor=last.cursor)).state == "partial"


async def test_a_commit_wakes_a_follower_and_nothing_else_does(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """Looks are as many as commits, and a waiting follower has no timer: its latency is nobody's interval (E1)."""
    looks = 0
    real = following.read_piece

    def counted(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(following, "read_piece", counted)
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        progress = job._course.progress["stdout"]
        async with aclosing(job.follow()) as pages:
            for number in range(20):
                waiting = asyncio.ensure_future(anext(pages))
                await until(lambda: progress._next is not None)
                # uvloop does not show its timers; asyncio's own must be this test's patience alone.
                timers = getattr(asyncio.get_running_loop(), "_scheduled", ())
                assert len([timer for timer in timers if not timer.cancelled()]) <= 1
                await job.write(b"%d\n" % number)
                assert (await waiting).text == f"{number}\n"
        assert looks <= 2 * progress.count + 1
        await job.write_eof()
        await job.wait()


async def test_a_commit_between_a_look_and_its_wait_is_not_missed(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, page_with_text: PageWithText
) -> None:
    """The count is taken before the look: what was committed after it is not waited for (E1)."""
    real, committed = following.read_piece, threading.Event()
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        loop, progress = asyncio.get_running_loop(), job._course.progress["stdout"]

        async def commit() -> None:
            await job.write(b"late\n")
            await progress.beyond(progress.count)
            committed.set()

        def committing(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the call is
            piece = real(*arguments)
            if not committed.is_set():
                asyncio.run_coroutine_threadsafe(commit(), loop)
                committed.wait(PATIENCE)
            return piece

        monkeypatch.setattr(following, "read_piece", committing)
        assert (await page_with_text(job)).text == "late\n"
        await job.write_eof()
        await job.wait()


async def test_a_cancelled_follower_leaves_the_others_and_nothing_behind(
    conversation: Conversation, until: Until, page_with_text: PageWithText
) -> None:
    """While it waits and while it reads; fixtures look for tasks, threads and descriptors (E1, F5)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        progress = job._course.progress["stdout"]
        followers = [asyncio.ensure_future(text_of(job.follow())) for _ in range(3)]
        await until(lambda: progress._next is not None)
        followers[0].cancel()
        await job.write(b"text\n")
        await page_with_text(job)
        followers[1].cancel()
        await asyncio.wait(followers[:2])
        assert all(follower.cancelled() for follower in followers[:2])
        await job.write_eof()
        assert await followers[2] == "text\n"
        assert progress._next is None


async def test_a_small_run_is_read_from_its_receipt(conversation: Conversation, until: Until) -> None:
    """It has no file, and a follower that came before its end gets the text all the same (A7)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        running = asyncio.ensure_future(supervisor.run(["cat"], stdin=b"sm\xc3\xa4ll\n"))
        await until(lambda: supervisor.jobs)
        (job,) = supervisor.jobs
        follower = asyncio.ensure_future(text_of(job.follow(max_bytes=4)))
        receipt = await running
        assert await follower == await receipt.read_text("stdout") == "smäll\n"
        assert conversation.captures() == []
        assert (await job.read(cursor=Cursor(job.capture_id, "stdout", 0, 3))).text == "äll\n"
        assert (await job.read("stderr")).eof


async def test_a_large_run_is_followed_from_its_start(conversation: Conversation, until: Until) -> None:
    """Its file comes when it is worth one, and has everything from byte 0 (A7)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        running = asyncio.ensure_future(supervisor.run(["seq", str(LINES)]))
        await until(lambda: supervisor.jobs)
        text = await text_of(supervisor.jobs[0].follow())
        receipt = await running
        assert text.encode() == conversation.text(receipt)
        assert await receipt.read_text("stdout") == text


async def test_what_is_not_kept_is_an_end_with_its_state(conversation: Conversation) -> None:
    """Unavailable, disabled and merged streams end at once, while the child lives and after it (B7, B9, D1)."""
    for directory, capture, merge, stream, state, reason in (
        (None, "spool", False, "stdout", "unavailable", "no-directory"),
        (conversation.path, "none", False, "stdout", "disabled", None),
        (conversation.path, "spool", True, "stderr", "complete", None),
    ):
        async with Supervisor(directory) as supervisor, asyncio.timeout(PATIENCE):
            job = await supervisor.start(["cat"], stdin=PIPE, capture=capture, merge=merge)  # type: ignore[arg-type]
            await job.write(b"text\n")
            for settle in (False, True):
                if settle:
                    await job.terminate()
                pages = [page async for page in job.follow(stream)]  # type: ignore[arg-type]
                assert [(page.text, page.state, page.reason, page.eof) for page in pages] == [("", state, reason, True)]


async def test_a_receipt_reads_all_of_its_text(conversation: Conversation, until: Until) -> None:
    """After the supervisor is gone too; a snapshot of a live job reads what it counted (E6)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(f"seq {LINES}; echo oops >&2; exec cat", shell=True, stdin=PIPE)
        await until(lambda: job._course.pumps["stdout"].stream.ledger.committed)
        snapshot = job.receipt
        facts = snapshot.streams["stdout"]
        assert facts is not None
        assert facts.committed
        text = await snapshot.read_text("stdout")
        assert len(text) == facts.committed
        assert text.startswith("1\n2\n3\n")
        await job.write_eof()
        receipt = await job.wait()
    assert (await receipt.read_text("stdout")).encode() == conversation.text(receipt)
    assert await receipt.read_text("stderr") == "oops\n"
