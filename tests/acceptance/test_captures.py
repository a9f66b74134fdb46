"""Captures are read and followed from their files alone, by any process (E2-E4, D6)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import (
    PIPE,
    Cursor,
    CursorError,
    Page,
    StorageError,
    Supervisor,
    UnknownCapture,
    captures,
    follow_capture,
    read_capture,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 60.0
ABSENT: Final = "20260101T000000000000Z-" + "0" * 32
LINES: Final = 600_000


class Host:
    """Another process that supervises a live capture."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.capture_id = self.hear()

    def say(self, line: str) -> None:
        """Tell it what to do."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """Return what it says next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def host(conversation: Conversation, host_program: Callable[..., list[str]]) -> Callable[[], Iterator[Host]]:
    """Return a block in which another process has a live capture in the conversation."""

    @contextmanager
    def run() -> Iterator[Host]:
        command = host_program("capture_host", "asyncio", str(conversation.path))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Host(process)
            finally:
                process.kill()

    return run  # type: ignore[return-value]


async def until_eof(pages: AsyncIterator[Page]) -> list[Page]:
    """Return all pages; the last one says that it is, and no other does."""
    async with asyncio.timeout(PATIENCE):
        found = [page async for page in pages]
    assert [page.eof for page in found] == [False] * (len(found) - 1) + [True]
    return found


def text_of(pages: list[Page]) -> str:
    """Return the text of all pages."""
    return "".join(page.text for page in pages)


async def test_a_live_capture_of_another_process_is_followed_to_its_end(
    conversation: Conversation, host: Callable[[], contextmanager[Host]]
) -> None:
    """Pending while it lives, its receipt's state at the end, across the renaming of its file (E2, E4)."""
    with host() as other:
        page = await read_capture(conversation.path, other.capture_id)
        assert (page.text, page.state, page.eof) == ("begin\n", "pending", False)
        pages = follow_capture(conversation.path, other.capture_id, cursor=page.cursor)
        async with asyncio.timeout(PATIENCE):
            for _ in range(3):
                other.say("more")
                assert (await anext(pages)).text == "more\n"
            other.say("more")
            other.say("end")
            rest = [page async for page in pages]
        assert text_of(rest) == "more\n"
        assert (rest[-1].state, rest[-1].eof) == ("complete", True)
        assert other.hear() == "published"
        other.say("")


async def test_a_capture_whose_owner_is_killed_is_partial_and_whole_up_to_there(
    conversation: Conversation, host: Callable[[], contextmanager[Host]]
) -> None:
    """A follower that waits is told, one that comes later reads the same, and nothing is written (D6, E4).

    That another supervisor of the conversation lives is no matter: the launch record names the owner.
    """
    async with Supervisor(conversation.path):
        await read_what_is_left(conversation, host)


async def read_what_is_left(conversation: Conversation, host: Callable[[], contextmanager[Host]]) -> None:
    """Kill a host under a follower, and read its capture."""
    with host() as other:
        follower = asyncio.ensure_future(until_eof(follow_capture(conversation.path, other.capture_id)))
        other.say("more")
        async with asyncio.timeout(PATIENCE), aclosing(follow_capture(conversation.path, other.capture_id)) as pages:
            text = ""
            while text != "begin\nmore\n":
                text += (await anext(pages)).text
        os.kill(other.process.pid, signal.SIGKILL)
        other.process.wait()
        files = conversation.files()
        for found in (await follower, await until_eof(follow_capture(conversation.path, other.capture_id))):
            assert text_of(found) == "begin\nmore\n"
            assert (found[-1].state, found[-1].reason) == ("partial", "supervisor-lost")
        page = await read_capture(conversation.path, other.capture_id, cursor=Cursor(other.capture_id, "stdout", 0, 6))
        assert (page.text, page.state, page.eof) == ("more\n", "partial", True)
        assert conversation.files() == files


async def test_a_cursor_goes_as_text_to_another_process(conversation: Conversation) -> None:
    """It is a value: whoever has it and the directory reads on from there (E1)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["printf", "vorher\nnachher ü\n"])
        await job.wait()
        cursor = (await job.read(max_bytes=7)).cursor
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import asyncio, supervisor\n"
        "cursor = supervisor.Cursor.parse(sys.argv[2])\n"
        "page = asyncio.run(supervisor.read_capture(sys.argv[1], cursor.capture_id, cursor=cursor))\n"
        "sys.stdout.buffer.write(f'{page.text}{page.state} {page.eof}'.encode())\n"
    )
    done = subprocess.run(  # noqa: ASYNC221 - nothing else is on this test's loop
        [sys.executable, "-c", code, str(conversation.path), str(cursor)], capture_output=True, check=True
    )
    assert done.stdout.decode() == "nachher ü\ncomplete True"


@pytest.mark.parametrize("inotify", [True, False])
async def test_followers_of_files_get_the_text_of_the_file(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, *, inotify: bool
) -> None:
    """Beside a busy writer, from the start and from the middle, with and without inotify (E3, E4)."""
    if not inotify:
        monkeypatch.setattr(captures, "open_watch", lambda *_: None)
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["seq", str(LINES)])
        followers = [
            asyncio.ensure_future(until_eof(follow_capture(conversation.path, job.capture_id, max_bytes=size)))
            for size in (65536, 10_001)
        ]
        receipt = await job.wait()
        whole = conversation.text(receipt).decode()
        for follower in followers:
            assert text_of(await follower) == whole
        middle = Cursor(job.capture_id, "stdout", 0, 1000)
        pages = await until_eof(follow_capture(conversation.path, job.capture_id, cursor=middle))
        assert text_of(pages) == whole[1000:]
        assert pages[-1].cursor.offset == len(whole)


async def test_a_merged_or_unkept_stream_ends_at_once(conversation: Conversation) -> None:
    """No stderr where one pipe carried both; no capture where none was wanted (B7, B9)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE, merge=True)
        (page,) = await until_eof(follow_capture(conversation.path, job.capture_id, "stderr"))
        assert (page.text, page.state) == ("", "complete")
        await job.terminate()
        (page,) = await until_eof(follow_capture(conversation.path, job.capture_id, "stderr"))
        assert (page.text, page.state) == ("", "complete")
        unkept = await supervisor.start(["true"], capture="none")
        with pytest.raises(UnknownCapture):
            await read_capture(conversation.path, unkept.capture_id)


@pytest.mark.parametrize("capture_id", ["../x", "", ".", "a/b", ABSENT + "\n"])
async def test_an_unsafe_id_is_refused_before_any_file_is_touched(capture_id: str, conversation: Conversation) -> None:
    """No directory is needed to tell, so a missing one is no matter (D2)."""
    for call in (read_capture, follow_capture):
        with pytest.raises(ValueError, match="cursor"):
            await call(conversation.path / "nowhere", capture_id)  # type: ignore[misc]


async def test_what_is_not_there_is_told_apart(conversation: Conversation) -> None:
    """No capture, and no conversation (E7)."""
    with pytest.raises(UnknownCapture):
        await read_capture(conversation.path, ABSENT)
    with pytest.raises(UnknownCapture):
        await anext(follow_capture(conversation.path, ABSENT))
    with pytest.raises(StorageError) as caught:
        await read_capture(conversation.path / "nowhere", ABSENT)
    assert caught.value.reason == "no-directory"


async def test_a_file_in_the_place_of_another_is_never_read(conversation: Conversation) -> None:
    """A symlink is refused as unsafe (D2)."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["echo", "text"])
        receipt = await job.wait()
        log = conversation.captures_of(receipt) / "stdout.log"
        log.rename(conversation.path / "elsewhere")
        log.symlink_to(conversation.path / "elsewhere")
        with pytest.raises(StorageError) as caught:
            await read_capture(conversation.path, job.capture_id)
        assert caught.value.reason == "unsafe-directory"


@pytest.mark.parametrize("how", ["shrink", "replace", "remove"])
async def test_a_live_file_that_is_changed_under_a_follower_is_an_error(conversation: Conversation, how: str) -> None:
    """Whoever follows is told at once, in this process and in others (E3)."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(b"0123456789\n")
        inside, outside = job.follow(), follow_capture(conversation.path, job.capture_id)
        for pages in (inside, outside):
            assert (await anext(pages)).text == "0123456789\n"
        live = conversation.captures()[0] / "stdout.live"
        if how == "shrink":
            os.truncate(live, 5)
        else:
            live.rename(conversation.path / "elsewhere")
        if how == "replace":
            live.write_bytes(b"something else, and longer\n")
            live.chmod(0o600)
        for pages in (outside, inside):
            with pytest.raises(CursorError if how == "shrink" else StorageError) as caught:
                await anext(pages)
        if isinstance(caught.value, CursorError):
            assert (caught.value.start, caught.value.end) == (0, 5)


async def test_a_follower_that_is_left_or_cancelled_leaves_nothing(
    conversation: Conversation, host: Callable[[], contextmanager[Host]]
) -> None:
    """While it waits and between two pages; fixtures look for tasks, threads and descriptors (E1)."""
    with host() as other:
        async with asyncio.timeout(PATIENCE):
            async with aclosing(follow_capture(conversation.path, other.capture_id)) as pages:
                page = await anext(pages)
            waiting = asyncio.ensure_future(
                until_eof(follow_capture(conversation.path, other.capture_id, cursor=page.cursor))
            )
            for _ in range(20):
                await read_capture(conversation.path, other.capture_id)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait({waiting})
            assert waiting.cancelled()


async def test_what_comes_between_a_look_and_its_wait_is_not_missed(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are drained before the look, so a change after it ends the wait at once; no re-check is near (E4)."""
    if sys.platform != "linux":
        pytest.skip("no inotify here")
    real = captures.look
    late = [b"late\n"]

    def changing(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the call is
        seen = real(*arguments)
        if not seen.piece.data and late:
            with (conversation.captures()[0] / "stdout.live").open("ab") as live:
                live.write(late.pop())
        return seen

    monkeypatch.setattr(captures, "look", changing)
    monkeypatch.setattr(captures, "RECHECK_SECONDS", 1000.0)
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        async with aclosing(follow_capture(conversation.path, job.capture_id)) as pages:
            assert (await anext(pages)).text == "late\n"


@pytest.mark.realtime
async def test_an_owner_that_tells_nobody_is_noticed(
    conversation: Conversation, host: Callable[[], contextmanager[Host]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without inotify the re-check finds a dead owner (E4)."""
    monkeypatch.setattr(captures, "open_watch", lambda *_: None)
    monkeypatch.setattr(captures, "RECHECK_SECONDS", 0.01)
    with host() as other:
        follower = asyncio.ensure_future(until_eof(follow_capture(conversation.path, other.capture_id)))
        for _ in range(3):
            await read_capture(conversation.path, other.capture_id)
        assert not follower.done()
        other.process.kill()
        assert (await follower)[-1].reason == "supervisor-lost"
