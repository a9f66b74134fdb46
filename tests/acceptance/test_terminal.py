"""A command on a terminal: one stream, input as it is typed, sizes, keys, and the same honest end (B7, F1-F6)."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final

import pytest

from supervisor import PIPE, ChildLimits, SpawnError, Supervisor, Terminal
from supervisor.process import native, terminal

if TYPE_CHECKING:
    from conftest import Conversation

    from supervisor import Job

pytestmark = pytest.mark.asyncio

PATIENCE: Final = 30.0
"""Seconds after which a test gives up; nothing waits for it to pass."""
SHELL: Final = ("bash", "--norc", "--noprofile", "--noediting", "-i")
"""A shell with job control, without anybody's settings."""
LINES: Final = b"".join(b"%07d\n" % number for number in range(12_000))
"""96 kB: many times what a terminal holds."""


async def shown(job: Job, text: str) -> None:
    """Return when the text is there, in an unfinished line too."""
    await job.wait_for(text, timeout=PATIENCE)


async def test_it_is_a_terminal_of_that_size_and_controls_its_session(conversation: Conversation) -> None:
    """All three descriptors, `/dev/tty`, the foreground group, nothing else open; the exit code is the command's."""
    script = (
        "test -t 0 && test -t 1 && test -t 2 && stty size && (exec 3</dev/tty) && echo out && echo err >&2; "
        'echo $(ps -o pgid=,tpgid=,sid= -p $$); ls /proc/self/fd | tr "\\n" " "; exit 7'
    )
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(script, shell=True, pty=Terminal(rows=33, columns=99))
        receipt = await job.wait()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 7)
    assert conversation.text(receipt).decode() == f"33 99\nout\nerr\n{job.pid} {job.pid} {job.pid}\n0 1 2 3 "
    assert receipt.streams["stderr"] is None
    assert receipt.capture.state == "complete"
    assert receipt.limitations == ()


async def test_limits_leave_it_the_terminal(conversation: Conversation) -> None:
    """What sets them starts on the terminal, and becomes the command there."""
    async with Supervisor(conversation.path) as supervisor:
        limits = ChildLimits(nice=os.nice(0) + 1)
        receipt = await supervisor.run("stty size </dev/tty; nice", shell=True, pty=Terminal(), child_limits=limits)
    assert receipt.stdout == f"24 80\n{os.nice(0) + 1}\n"


async def test_a_new_size_is_told(conversation: Conversation) -> None:
    """The foreground group gets SIGWINCH; after the end it is no error."""
    script = "trap 'stty size; exit 4' WINCH; echo ready; sleep 60 & wait"
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(script, shell=True, pty=Terminal(24, 80))
        await shown(job, "ready\n")
        with pytest.raises(ValueError, match="rows"):
            await job.resize(0, 80)
        await job.resize(50, 132)
        receipt = await job.wait()
        await job.resize(24, 80)
    assert receipt.stdout == "ready\n50 132\n"
    assert receipt.process is not None
    assert receipt.process.code == 4


async def test_a_prompt_is_there_before_the_answer(conversation: Conversation) -> None:
    """An unfinished line, which a pipe would have kept in the command's buffer; the answer is echoed."""
    program = [sys.executable, "-S", "-c", "print(input('name? ')[::-1])"]
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(program, stdin=PIPE, pty=Terminal())
        await shown(job, "name? ")
        await job.write(b"abc\n")
        receipt = await job.wait()
    assert receipt.stdout == "name? abc\ncba\n"


async def test_bytes_are_typed_and_their_end_is_an_end_of_file(conversation: Conversation) -> None:
    """Also where the last line is unfinished: that one is submitted first."""
    async with Supervisor(conversation.path) as supervisor:
        for given in (b"one\ntwo", b"one\ntwo\n", b""):
            receipt = await supervisor.run("stty -echo -F /dev/tty; exec cat", shell=True, stdin=given, pty=Terminal())
            assert receipt.ok
            assert receipt.stdout.endswith(given.decode())


async def test_an_end_of_file_ends_one_reading(conversation: Conversation) -> None:
    """The terminal stays open, and what reads next can be written to."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("cat; echo next; cat", shell=True, stdin=PIPE, pty=Terminal())
        await job.write(b"one\n")
        await job.write_eof()
        await shown(job, "next\n")
        await job.write(b"two")
        await job.write_eof()
        await job.write_eof()
        receipt = await job.wait()
        with pytest.raises(BrokenPipeError):
            await job.write(b"three\n")
    assert receipt.ok
    assert receipt.stdout == "one\none\nnext\ntwotwo"


async def test_much_input_and_output_go_through_unchanged(conversation: Conversation) -> None:
    """Neither direction waits for the other for ever, and no line is lost."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("stty -echo; echo go; exec cat", shell=True, stdin=PIPE, pty=Terminal())
        await shown(job, "go\n")
        await job.write(LINES)
        await job.write_eof()
        receipt = await job.wait()
    assert receipt.capture.state == "complete"
    assert conversation.text(receipt) == b"go\n" + LINES


async def test_without_input_a_command_waits(conversation: Conversation) -> None:
    """Nobody types: there is no end of file as there is at the null device; a limit ends it."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start("test -t 0 && echo ready && read x", shell=True, pty=Terminal())
        await shown(job, "ready\n")
        with pytest.raises(ValueError, match="PIPE"):
            await job.write(b"x\n")
        receipt = await job.terminate()
    assert receipt.process is not None
    assert receipt.process.reason == "caller"


async def test_ctrl_c_ends_the_foreground_and_not_the_background(conversation: Conversation) -> None:
    """Under a shell with job control, whose own exit code is the receipt's."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(SHELL, stdin=PIPE, pty=Terminal())
        await job.write(b"sleep 100 & sh -c 'echo st\"\"arted; exec sleep 200'\n")
        await shown(job, "started\n")
        await job.write(b"\x03")
        await job.write(b'echo co""de=$?; kill -0 $! && echo al""ive; kill $!; wait; exit 5\n')
        receipt = await job.wait()
    text = conversation.text(receipt).decode()
    assert "code=130\n" in text
    assert "alive\n" in text
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 5)
    assert receipt.capture.state == "complete"


async def test_ending_reaches_every_group_of_the_session(conversation: Conversation) -> None:
    """A shell with job control takes no TERM, and its jobs have groups of their own."""
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(SHELL, stdin=PIPE, pty=Terminal(), kill_after=0.2)
        await job.write(b'sleep 100 & sh -c \'trap "" TERM HUP; echo st""arted; while :; do sleep 100; done\'\n')
        await shown(job, "started\n")
        receipt = await job.terminate()
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.forced, receipt.process.kill_confirmed) == ("cancelled", True, True)
    assert receipt.process.survivors == ()
    assert receipt.capture.state == "complete"


async def test_who_holds_the_terminal_delays_nothing_beyond_the_drain(conversation: Conversation) -> None:
    """The exit does not wait for the end of the output; the holder is named (F2)."""
    async with Supervisor(conversation.path) as supervisor:
        script = "trap '' HUP; sleep 100 & echo $!; exit 3"
        receipt = await supervisor.run(script, shell=True, pty=Terminal(), drain_timeout=0.05)
    holder = int(receipt.stdout)
    os.kill(holder, signal.SIGKILL)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.code) == ("exited", 3)
    assert receipt.process.holders == receipt.process.survivors == (holder,)
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "drain-timeout")


async def test_what_is_left_running_can_print_within_the_drain(conversation: Conversation) -> None:
    """The leader's exit takes nothing back, and the end is the last holder's."""
    async with Supervisor(conversation.path) as supervisor:
        script = "trap '' HUP; (until grep -q ') Z' /proc/$$/stat; do :; done; echo late) & exit 3"
        receipt = await supervisor.run(script, shell=True, pty=Terminal(), drain_timeout=PATIENCE)
    assert receipt.stdout == "late\n"
    assert receipt.capture.state == "complete"


async def test_a_command_that_cannot_be_started_leaves_nothing(conversation: Conversation) -> None:
    """The error is that of any command, and the terminal is closed."""
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(SpawnError) as missing:
            await supervisor.start(["/nonexistent/program"], pty=Terminal(), stdin=PIPE)
        with pytest.raises(SpawnError) as nowhere:
            await supervisor.run(["true"], cwd="/nonexistent", pty=Terminal())
    assert (missing.value.fault, nowhere.value.fault) == ("program", "cwd")


@pytest.mark.parametrize("lacking", ["device", "library"])
async def test_where_there_is_no_terminal_the_error_says_so(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    """No device, or a C library that cannot give it to a child; commands without one run all the same."""
    if lacking == "device":
        monkeypatch.setattr(terminal, "MASTER", "/nonexistent/ptmx")
    else:
        monkeypatch.setattr(native, "available", lambda: False)
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(SpawnError, match="no terminal") as raised:
            await supervisor.start(["true"], pty=Terminal())
        assert (await supervisor.run(["true"])).ok
    assert raised.value.fault == "terminal"
    assert raised.value.receipt is not None


async def test_a_secret_that_is_typed_is_masked_in_the_echo(conversation: Conversation) -> None:
    """What is typed comes back as output, and passes the same redactor."""
    async with Supervisor(conversation.path, secrets={"KEY": "kestrel-4711-marigold"}) as supervisor:
        receipt = await supervisor.run(["head", "-n", "1"], stdin=b"kestrel-4711-marigold\n", pty=Terminal())
    assert receipt.stdout == "[REDACTED:KEY]\n[REDACTED:KEY]\n"


async def test_a_job_without_a_terminal_has_no_size(conversation: Conversation) -> None:
    """Asking for it is the caller's mistake, and so is a size that is none."""
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(TypeError, match="pty"):
            await supervisor.run(["true"], pty=(24, 80))  # type: ignore[arg-type]
        job = await supervisor.start(["true"])
        with pytest.raises(ValueError, match="pty"):
            await job.resize(24, 80)
        await job.wait()
