"""A wait for a port or a file ends when it is there, or when the job has ended without it (F5)."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, NeverReady, StorageError, Supervisor, waiting
from supervisor.testing import FakeChild, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Conversation, Until

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 60.0
NEVER: Final = 3600.0
SERVER: Final = """
import socket, sys
place = socket.socket()
place.bind(("127.0.0.1", 0))
print("port", place.getsockname()[1], flush=True)
for line in sys.stdin:
    place.listen()
"""


@pytest.fixture
def place() -> Iterator[tuple[socket.socket, int]]:
    """Return a socket that has a port and does not listen yet, and the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken, taken.getsockname()[1]


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """Return a port where a connection is neither accepted nor refused: the queue is full (listen(2))."""
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            client = sockets.enter_context(socket.socket())
            client.settimeout(0)
            with suppress(BlockingIOError):
                client.connect(server.getsockname())
        yield server.getsockname()[1]


async def test_a_server_is_ready_when_it_listens(conversation: Conversation) -> None:
    """Not when it has its port, or says so; and it goes on when nobody waits any more."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start([sys.executable, "-S", "-E", "-c", SERVER], stdin=PIPE)
        port = int((await job.wait_for(re.compile(r"port (\d+)"))).groups[0] or 0)
        with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
            await job.wait_for_port(port, timeout=0.2)
        ready = asyncio.ensure_future(job.wait_for_port(port))
        await job.write(b"listen\n")
        await ready
        await job.wait_for_port(port, "localhost", timeout=NEVER)
        await job.write_eof()
        assert (await job.wait()).ok


async def test_a_job_that_ends_is_not_waited_for(conversation: Conversation, place: tuple[socket.socket, int]) -> None:
    """Nor is the port of somebody else, which is there all the same, taken for its own afterwards."""
    taken, port = place
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        waits = [
            asyncio.ensure_future(job.wait_for_port(port, timeout=NEVER)),
            asyncio.ensure_future(job.wait_for_file("never")),
        ]
        await asyncio.sleep(0)
        await job.write_eof()
        await job.wait()
        taken.listen()
        for wait in (*waits, job.wait_for_port(port)):
            with pytest.raises(NeverReady, match="ended before") as caught:
                await wait
            assert (caught.value.ended, caught.value.state, caught.value.reason) == (True, None, None)


async def test_a_connection_to_itself_is_nobody_who_listens(place: tuple[socket.socket, int]) -> None:
    """It comes about by chance when a port of the ephemeral range is tried again and again (RFC 9293, 3.5)."""
    taken, port = place
    taken.close()
    assert not await waiting.accepts("127.0.0.1", port, local=("127.0.0.1", port))
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))  # and the port is free again, without a TIME_WAIT
        server.listen()
        assert await waiting.accepts("127.0.0.1", port)


async def test_a_connection_that_hangs_is_given_up_and_tried_again(
    deaf_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost packet must not cost the wait its other tries."""
    monkeypatch.setattr(waiting, "CONNECT_SECONDS", 0.05)
    async with asyncio.timeout(10):
        assert not await waiting.accepts("127.0.0.1", deaf_port)


async def test_a_wait_that_is_cancelled_while_it_connects_leaves_no_socket(
    conversation: Conversation, deaf_port: int, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """Nor does it end the job; a fixture looks for descriptors (F5)."""
    monkeypatch.setattr(waiting, "CONNECT_SECONDS", PATIENCE)

    def connecting() -> bool:
        there = f"{socket.inet_aton('127.0.0.1')[::-1].hex().upper()}:{deaf_port:04X}"
        return Path("/proc/net/tcp").read_text().count(f" {there} 02 ") > before

    before = -1
    while connecting():
        before += 1
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        wait = asyncio.ensure_future(job.wait_for_port(deaf_port, timeout=NEVER))
        await until(connecting)
        wait.cancel()
        await asyncio.wait({wait})
        assert wait.cancelled()
        await job.write_eof()
        assert (await job.wait()).ok


async def test_a_file_is_looked_for_where_the_command_runs(conversation: Conversation, tmp_path: Path) -> None:
    """It may be the last thing that the command makes, and what it is does not matter."""
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start("read -r _; mkdir ready", shell=True, stdin=PIPE, cwd=tmp_path)
        wait = asyncio.ensure_future(job.wait_for_file("ready", timeout=NEVER))
        with pytest.raises(TimeoutError):
            await job.wait_for_file("ready/not", timeout=0.1)
        assert not wait.done()
        await job.write(b"\n")
        await wait
        await job.wait()
        await job.wait_for_file(tmp_path / "ready")
        with pytest.raises(NeverReady):
            await job.wait_for_file("ready/not")


async def test_a_place_that_cannot_be_looked_at_is_an_error(conversation: Conversation, tmp_path: Path) -> None:
    """Waiting would not help it."""
    (tmp_path / "loop").symlink_to("loop")
    async with Supervisor(conversation.path) as supervisor, asyncio.timeout(PATIENCE):
        job = await supervisor.start(["cat"], stdin=PIPE)
        with pytest.raises(StorageError, match="looking for the file"):
            await job.wait_for_file(tmp_path / "loop" / "ready")
        await job.write_eof()


async def test_looks_are_as_many_as_the_clock_says(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty in a second of the supervisor's clock, none between them; the end of the job is not waited for."""
    child, clock, looks = FakeChild(), VirtualClock(), 0
    real = waiting._is_there

    def counted(path: Path) -> bool:
        nonlocal looks
        looks += 1
        return real(path)

    monkeypatch.setattr(waiting, "_is_there", counted)
    async with Supervisor(conversation.path, spawn=child.spawn, clock=clock) as supervisor:
        job = await supervisor.start(["served"])
        wait = asyncio.ensure_future(job.wait_for_file(conversation.path / "ready", timeout=NEVER))
        await clock.advance(1)
        assert 20 <= looks <= 21
        child.exit(0)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(NeverReady):
                await wait


async def test_wrong_arguments_are_refused_before_anything_is_tried(conversation: Conversation) -> None:
    """Each with the error of its kind."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        ports: list[tuple[type[Exception], Any, Any, Any]] = [
            (ValueError, 0, "127.0.0.1", 1),
            (ValueError, 65536, "127.0.0.1", 1),
            (TypeError, "80", "127.0.0.1", 1),
            (TypeError, True, "127.0.0.1", 1),
            (ValueError, 80, "", 1),
            (ValueError, 80, "a\0b", 1),
            (ValueError, 80, "a" * 64 + ".example", 1),
            (TypeError, 80, b"127.0.0.1", 1),
            (ValueError, 80, "127.0.0.1", -1),
        ]
        for error, port, host, seconds in ports:
            with pytest.raises(error):
                await job.wait_for_port(port, host, seconds)
        paths: list[tuple[type[Exception], Any, Any]] = [
            (ValueError, "", 1),
            (ValueError, "a\0b", 1),
            (TypeError, b"a", 1),
            (TypeError, None, 1),
            (ValueError, "a", math.nan),
        ]
        for error, path, seconds in paths:
            with pytest.raises(error):
                await job.wait_for_file(path, seconds)
        await job.terminate()
