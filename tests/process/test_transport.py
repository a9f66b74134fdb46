"""One child: what its protocol hears, and how it ends (contract F1-F3, F7)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from supervisor.sansio.exits import Exited, Signalled

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Start

pytestmark = pytest.mark.asyncio

PATIENCE = 30.0
BOTH_LOST = (("lost", 1, None), ("lost", 2, None))


async def test_output_exit_and_release_are_told_once_each(start_both: Start) -> None:
    """Streams stay apart, the code is exact, and connection_lost comes last, only after release()."""
    child, heard = await start_both("sh", "-c", "echo out; echo err >&2; exit 3")
    await heard.heard("exited", *BOTH_LOST)
    assert heard.data == {1: b"out\n", 2: b"err\n"}
    assert child.exit == Exited(3)
    assert child.get_returncode() == 3
    assert ("gone", None) not in heard.events
    child.release()
    child.release()
    await heard.heard(("gone", None))
    assert sorted(map(str, heard.events)) == sorted(map(str, ["made", "exited", *BOTH_LOST, ("gone", None)]))
    assert heard.events[-1] == ("gone", None)


async def test_readers_are_paused_until_resumed(start_both: Start) -> None:
    """The launch record comes before the first byte (contract A7), so nothing may be read by itself."""
    child, heard = await start_both("sh", "-c", "echo out", reading=False)
    await heard.heard("exited")
    assert heard.data[1] == b""
    assert child.unread(1) == 4
    assert ("lost", 1, None) not in heard.events
    child.readers[1].resume_reading()
    await heard.heard(("lost", 1, None))
    assert heard.data[1] == b"out\n"
    assert child.unread(1) == 0


async def test_merged_output_has_one_pipe_in_the_order_of_writing(start_both: Start) -> None:
    """One pipe really carries both, and there is no second reader (contract B7)."""
    child, heard = await start_both("sh", "-c", "echo 1; echo 2 >&2; echo 3", merge=True)
    await heard.heard("exited", ("lost", 1, None))
    assert heard.data == {1: b"1\n2\n3\n", 2: b""}
    assert child.get_pipe_transport(2) is None
    assert child.get_pipe_transport(0) is None
    assert child.unread(2) == 0


async def test_burst_at_exit_is_read_whole(start_both: Start, program: Callable[..., tuple[str, ...]]) -> None:
    """What was written before the exit is all there, however late it is read."""
    child, heard = await start_both(*program("burst", str(1 << 20)))
    await heard.heard("exited", *BOTH_LOST)
    assert len(heard.data[1]) == 1 << 20
    assert child.exit == Exited(4)


async def test_end_of_output_is_not_the_exit(start_both: Start, program: Callable[..., tuple[str, ...]]) -> None:
    """A child that closes its output early is running, and its code is its own (field reports BUG-075, H5-007)."""
    child, heard = await start_both(*program("early_close"), stdin="pipe")
    await heard.heard(*BOTH_LOST)
    assert child.exit is None
    assert child.get_returncode() is None
    assert child.group_members() == (child.get_pid(),)
    assert child.stdin is not None
    child.stdin.write_eof()
    await heard.heard("exited", ("lost", 0, None))
    assert child.exit == Exited(7)


async def test_exit_is_known_while_a_grandchild_holds_the_pipe(
    start_both: Start, program: Callable[..., tuple[str, ...]]
) -> None:
    """The exit waits for no end of output; the member can be found and ended afterwards (contract F1, F3)."""
    child, heard = await start_both(*program("descendant"))
    pid = int(await heard.line())
    await heard.heard("exited")
    assert child.exit == Exited(3)
    assert ("lost", 1, None) not in heard.events
    assert child.group_members() == (pid,)
    assert child.signal_group(signal.SIGKILL)
    await heard.heard(*BOTH_LOST)
    async with asyncio.timeout(PATIENCE):
        while child.group_members():  # noqa: ASYNC110 - a dying process closes its files a moment before it counts as dead
            await asyncio.sleep(0)


async def test_daemon_that_left_the_session_is_heard_after_the_exit(
    start_both: Start, program: Callable[..., tuple[str, ...]]
) -> None:
    """Its bytes arrive as long as nobody closes the pipe, and it is a member of the tree (contract F3)."""
    child, heard = await start_both(*program("descendant", "daemon"))
    pid = int(await heard.line())
    await heard.heard("exited")
    assert child.group_members() == (pid,)
    os.kill(pid, signal.SIGUSR1)
    await heard.until(lambda: b"late\n" in heard.data[1])
    assert ("lost", 1, None) not in heard.events
    os.kill(pid, signal.SIGKILL)
    await heard.heard(*BOTH_LOST)


async def test_closing_a_held_pipe_is_told_without_waiting_for_its_holder(
    start_both: Start, program: Callable[..., tuple[str, ...]]
) -> None:
    """release() gives the pipes up, so that a silent holder delays nothing (contract F1)."""
    child, heard = await start_both(*program("descendant", "daemon"))
    pid = int(await heard.line())
    await heard.heard("exited")
    child.release()
    await heard.heard(("gone", None), *BOTH_LOST)
    os.kill(pid, signal.SIGKILL)


async def test_survivors_are_known_after_the_release(
    start_both: Start, program: Callable[..., tuple[str, ...]]
) -> None:
    """A member that outlives the released leader is still found by the group's number, which stays taken."""
    child, heard = await start_both(*program("descendant"))
    pid = int(await heard.line())
    await heard.heard("exited")
    child.release()
    assert child.survivors() == (pid,)
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        while child.survivors():  # noqa: ASYNC110 - it is no child of this process
            await asyncio.sleep(0)


async def test_signals_end_the_leader_and_are_its_exit(
    start_both: Start, program: Callable[..., tuple[str, ...]]
) -> None:
    """TERM is ignored by this child, KILL is not; afterwards a signal is ProcessLookupError (BUG-137)."""
    child, heard = await start_both(*program("stubborn"))
    await heard.line()
    child.terminate()
    child.kill()
    await heard.heard("exited")
    assert child.exit == Signalled(signal.SIGKILL)
    assert child.get_returncode() == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        child.terminate()


async def test_signalling_the_group_reaches_every_member(
    start_both: Start, program: Callable[..., tuple[str, ...]]
) -> None:
    """Two members, both seen, both ended by one signal."""
    child, heard = await start_both(*program("stubborn", "group"))
    await heard.until(lambda: heard.data[1].count(b"\n") == 2)
    members = set(map(int, heard.data[1].split()))
    assert child.get_pid() in members
    assert set(child.group_members() or ()) == members
    assert child.signal_group(signal.SIGKILL)
    await heard.heard("exited", *BOTH_LOST)


async def test_close_kills_the_group_and_releases(start_both: Start, program: Callable[..., tuple[str, ...]]) -> None:
    """After close() everything comes to its end by itself; the group cannot be signalled any more (contract F10)."""
    child, heard = await start_both(*program("stubborn", "group"))
    await heard.until(lambda: heard.data[1].count(b"\n") == 2)
    child.close()
    child.close()
    assert child.is_closing()
    await heard.heard("exited", ("gone", None))
    assert child.exit == Signalled(signal.SIGKILL)
    assert not child.signal_group(signal.SIGTERM)
    assert child.group_members() is None


async def test_child_leads_its_own_session(start_both: Start) -> None:
    """Session, group and pid are one number (contract F7)."""
    child, heard = await start_both("cat", "/proc/self/stat")
    await heard.heard("exited", *BOTH_LOST)
    fields = heard.data[1].split(b") ")[1].split()
    assert [int(fields[2]), int(fields[3])] == [child.get_pid()] * 2


async def test_child_gets_no_other_descriptors(start: Start) -> None:
    """Neither the host's inheritable descriptors nor another child's pipes (contract F7, BUG-056)."""
    await start("cat", stdin="pipe")
    inheritable = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inheritable, True)  # noqa: FBT003
    try:
        _child, heard = await start("ls", "/proc/self/fd")
        await heard.heard("exited", *BOTH_LOST)
    finally:
        os.close(inheritable)
    assert heard.data[1].split() == [b"0", b"1", b"2", b"3"]  # the last is the listing's own


async def test_stdin_is_the_null_device_unless_asked_for(start_both: Start) -> None:
    """A child that reads it sees the end at once (BUG-100, BUG-101)."""
    _child, heard = await start_both("sh", "-c", "readlink /proc/self/fd/0; cat; echo end")
    await heard.heard("exited", *BOTH_LOST)
    assert heard.data[1] == b"/dev/null\nend\n"


async def test_a_pipe_is_a_pipe_that_can_be_reopened(start: Start) -> None:
    """No socket in its place: `> /dev/stdout` works."""
    _child, heard = await start("sh", "-c", "echo again > /dev/stdout")
    await heard.heard("exited", *BOTH_LOST)
    assert heard.data == {1: b"again\n", 2: b""}


async def test_environment_and_directory_are_as_given(start_both: Start, tmp_path: os.PathLike[str]) -> None:
    """`env` replaces, `cwd` is entered."""
    _child, heard = await start_both("/bin/sh", "-c", 'echo "$ONE:$HOME"; pwd', env={"ONE": "1 é"}, cwd=str(tmp_path))
    await heard.heard("exited", *BOTH_LOST)
    assert heard.data[1].decode() == f"1 é:\n{tmp_path}\n"


async def test_megabyte_through_cat_and_back(start_both: Start) -> None:
    """More than all buffers together, both ways at once, without a deadlock, in order, with flow control."""
    data = os.urandom(1 << 20)
    child, heard = await start_both("cat", stdin="pipe")
    assert child.stdin is not None
    child.stdin.write(data)
    child.stdin.write_eof()
    await heard.heard("exited", ("lost", 0, None), *BOTH_LOST)
    assert heard.data[1] == data
    assert heard.events.index("pause") < heard.events.index("resume")


async def test_child_that_never_reads_its_stdin_is_no_error(start_both: Start) -> None:
    """EPIPE closes stdin quietly; the exit is the child's own."""
    child, heard = await start_both("sh", "-c", "exec <&-; echo closed; read x; exit 5", stdin="pipe")
    assert await heard.line() == "closed"
    assert child.stdin is not None
    child.stdin.write(b"nobody reads this")
    await heard.heard("exited", ("lost", 0, BrokenPipeError))
    assert child.exit == Exited(5)


async def test_protocol_that_raises_is_reported_and_goes_on(start_both: Start) -> None:
    """Each callback's exception goes to the loop's handler; data, ends and exit still arrive (contract B5)."""
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(str(context["exception"])))
    child, heard = await start_both("sh", "-c", "echo out; read x; exit 6", stdin="pipe")

    class Broken(asyncio.SubprocessProtocol):
        def pipe_data_received(self, fd: int, data: bytes) -> None:
            heard.pipe_data_received(fd, data)
            raise RuntimeError("data")

        def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
            heard.pipe_connection_lost(fd, exc)
            raise RuntimeError("lost")

        def process_exited(self) -> None:
            heard.process_exited()
            raise RuntimeError("exited")

        def connection_lost(self, exc: Exception | None) -> None:
            heard.connection_lost(exc)
            raise RuntimeError("gone")

    child.set_protocol(Broken())
    assert isinstance(child.get_protocol(), Broken)
    await heard.line()
    assert child.stdin is not None
    child.stdin.write(b"\n")
    await heard.heard("exited", *BOTH_LOST)
    child.release()
    await heard.heard(("gone", None), ("lost", 0, None))
    assert sorted(reported) == ["data", "exited", "gone", "lost", "lost", "lost"]
    assert child.exit == Exited(6)


async def test_hundred_quick_children_leave_nothing(start_both: Start) -> None:
    """All at once; the fixture that looks for leftovers is the assertion, with the codes."""
    started = await asyncio.gather(*(start_both("sh", "-c", f"echo {n}; exit {n}") for n in range(100)))
    for number, (child, heard) in enumerate(started):
        await heard.heard("exited", *BOTH_LOST)
        assert (child.exit, heard.data[1]) == (Exited(number), f"{number}\n".encode())
        child.release()


@pytest.mark.parametrize(
    ("loop_name", "preparation"),
    # libuv itself aborts when its own descriptors get the numbers 0 to 2
    [("asyncio", "thread"), ("asyncio", "closed"), ("asyncio", "plain"), ("uvloop", "thread"), ("uvloop", "plain")],
)
async def test_host_of_any_shape_gets_output_and_exit(
    host_program: Callable[..., tuple[str, ...]], loop_name: str, preparation: str
) -> None:
    """A loop off the main thread, and a host without stdin and stderr whose numbers the pipes then take."""
    command = host_program("host", loop_name, preparation, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    result = subprocess.run(command, stdout=subprocess.PIPE, timeout=30, check=False)  # noqa: ASYNC221
    assert (result.returncode, sorted(result.stdout.splitlines())) == (0, [b"Exited(code=3)", b"err", b"out"])


@pytest.mark.parametrize("loop_name", ["asyncio", "uvloop"])
async def test_host_with_deadly_sigpipe_survives_a_child_that_stopped_reading(
    host_program: Callable[..., tuple[str, ...]], loop_name: str
) -> None:
    """Command-line programs make SIGPIPE deadly again; a write of ours must not end them."""
    command = host_program("host", loop_name, "sigpipe", "--", "sh", "-c", "echo out")
    result = subprocess.run(command, stdout=subprocess.PIPE, timeout=30, check=False)  # noqa: ASYNC221
    assert (result.returncode, result.stdout) == (0, b"out\nExited(code=0)\n")
