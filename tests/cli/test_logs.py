"""`logs`: the kept text, byte for byte, whole, from its end, from a cursor, and while it grows."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor import Cursor, Page
from supervisor.cli import main, tail
from supervisor.cli.tail import start_of_last_lines

if TYPE_CHECKING:
    from conftest import CommandLine

ID = f"20260131T235959000000Z-{'0' * 32}"


def capture(spoolvisor: CommandLine, script: str) -> str:
    """Run a shell script and return the id of what was kept of it."""
    spoolvisor("run", "-q", "--durability", "none", "--", "sh", "-c", script)
    return spoolvisor.captures()[-1].name


def test_each_stream_comes_out_of_its_own_descriptor_as_it_is_stored(spoolvisor: CommandLine) -> None:
    """Longer than a page, with characters across its borders, and without a last line feed."""
    text = "ä€𐍈x" * 60_000
    (spoolvisor.place / "text").write_text(text)
    capture_id = capture(spoolvisor, "cat text; printf err >&2")
    done = spoolvisor("logs", capture_id)
    assert (done.code, done.err) == (0, "err")
    assert done.out == text == spoolvisor.text("stdout").decode()
    done = spoolvisor("logs", "--stream", "stderr", capture_id)
    assert (done.code, done.out, done.err) == (0, "err", "")


def test_the_last_lines_and_what_came_after_a_cursor(spoolvisor: CommandLine) -> None:
    """The cursor is said last, and is good for the next call."""
    capture_id = capture(spoolvisor, "seq 100000")
    done = spoolvisor("logs", "-n", "2", "--stream", "stdout", "--show-cursor", capture_id)
    end = f"{capture_id}:stdout:0:{len(spoolvisor.text('stdout'))}"
    assert (done.code, done.out, done.err) == (0, "99999\n100000\n", f"-- cursor: {end}\n")
    cursor = f"{capture_id}:stdout:0:588882"
    done = spoolvisor("logs", "--after-cursor", cursor, "--show-cursor", capture_id)
    assert (done.out, done.err) == ("99999\n100000\n", f"-- cursor: {end}\n")
    done = spoolvisor("logs", "--after-cursor", end, "-f", "--show-cursor", capture_id)
    assert (done.code, done.out, done.err) == (0, "", f"-- cursor: {end}\n")


def test_mistakes_are_told_in_one_line(spoolvisor: CommandLine, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit 2; a cursor outside the text says what there is [E3]."""
    capture_id = capture(spoolvisor, "echo x")
    far, other = f"{capture_id}:stdout:0:999", f"{ID}:stdout:0:0"
    mistakes = {
        ("-n", "1"): "need --stream",
        ("--show-cursor",): "need --stream",
        ("-n", "1", "--after-cursor", far): "exclude each other",
        ("--stream", "stderr", "--after-cursor", far): "the cursor is of stdout",
        ("--after-cursor", "far"): "no cursor",
        ("--after-cursor", other): "of another capture",
        ("--after-cursor", far): "outside the retained range 0-2",
    }
    for arguments, said in mistakes.items():
        with pytest.raises(SystemExit) as ended:
            main(["logs", "--dir", str(spoolvisor.kept), *arguments, capture_id])
        out, err = capfd.readouterr()
        assert (ended.value.code, out, len(err.splitlines())) == (2, "", 1), arguments
        assert said in err


def test_following_goes_with_the_run_of_another_terminal_to_its_end(spoolvisor: CommandLine, tmp_path: Path) -> None:
    """From the files alone: what is there, then each line as it comes, then the end [E4]."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    run = spoolvisor.start("run", "--", "sh", "-c", f"echo one; cat {fifo}; echo end >&2; exit 3")
    assert run.stdout.readline() == b"one\n"
    logs = spoolvisor.start("logs", "--follow", spoolvisor.captures()[0].name)
    assert logs.stdout.readline() == b"one\n"
    with fifo.open("w") as writer:
        writer.write("two\n")
        writer.flush()
        assert logs.stdout.readline() == b"two\n"
        writer.write("three")
    ran, done = spoolvisor.finish(run), spoolvisor.finish(logs)
    assert (ran.code, done.code) == (3, 0)
    assert (done.out, done.err) == ("three", "end\n")
    assert spoolvisor.text("stdout") == b"one\ntwo\nthree"


def test_what_grows_is_shown_as_far_as_it_is_kept(spoolvisor: CommandLine) -> None:
    """Without -f nothing is waited for; with it Ctrl-C ends the showing alone, and the cursor says where."""
    run = spoolvisor.start("run", "--", "sh", "-c", "echo one; exec sleep 1000")
    assert run.stdout.readline() == b"one\n"
    capture_id = spoolvisor.captures()[0].name
    logs = spoolvisor.start("logs", "-f", "--stream", "stdout", "--show-cursor", capture_id)
    assert logs.stdout.readline() == b"one\n"  # it is committed now
    assert spoolvisor("logs", capture_id).out == "one\n"
    logs.send_signal(signal.SIGINT)
    done = spoolvisor.finish(logs)
    assert (done.code, done.err) == (130, f"-- cursor: {capture_id}:stdout:0:4\n")
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    assert spoolvisor.finish(run).code == 130


def test_ctrl_c_ends_it_while_nobody_reads(spoolvisor: CommandLine) -> None:
    """A pipe that is full blocks a thread, not the end."""
    capture_id = capture(spoolvisor, "seq 200000")
    logs = spoolvisor.start("logs", capture_id)
    assert logs.stdout.readline() == b"1\n"
    logs.send_signal(signal.SIGINT)
    assert logs.wait(timeout=60) == 130


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_a_reader_that_has_seen_enough_is_no_fault(spoolvisor: CommandLine, follow: tuple[str, ...]) -> None:
    """`| head` ends quietly."""
    capture_id = capture(spoolvisor, "seq 200000; echo err >&2")
    logs = spoolvisor.start("logs", *follow, capture_id)
    assert logs.stdout.readline() == b"1\n"
    logs.stdout.close()
    err = logs.stderr.read()
    assert (logs.wait(timeout=60), err.replace(b"err\n", b"")) == (0, b"")


def test_a_full_disk_under_stdout_is_named(spoolvisor: CommandLine) -> None:
    """It is a fault, not the text's end."""
    capture_id = capture(spoolvisor, "echo x")
    with Path("/dev/full").open("wb") as full:
        done = spoolvisor("logs", capture_id, stdout=full)
    assert done.code == 125
    assert done.errors == ["spoolvisor: the text cannot be written any more: No space left on device"]


def test_one_terminal_under_both_descriptors_keeps_the_cursor_on_a_fresh_line(spoolvisor: CommandLine) -> None:
    """The text has no last line feed."""
    capture_id = capture(spoolvisor, "printf abc")
    done = spoolvisor("logs", "--stream", "stdout", "--show-cursor", capture_id, stderr=subprocess.STDOUT)
    assert done.out == f"abc\n-- cursor: {capture_id}:stdout:0:3\n"


@given(
    text=st.text(st.sampled_from("a\näß𐍈"), max_size=40),
    count=st.integers(0, 12),
    step=st.integers(1, 9),
)
@example(text="𐍈\naaa", count=1, step=3)  # a line feed at the end of a page that was moved back
def test_the_last_lines_are_those_that_splitting_gives(text: str, count: int, step: int) -> None:
    """Whatever the pages' borders cut: characters, lines, nothing."""
    data = text.encode()

    async def read(_: Path, __: str, stream: str, *, cursor: Cursor, max_bytes: int) -> Page:
        assert stream == "stderr"
        first = cursor.offset
        while first < len(data) and data[first] & 0xC0 == 0x80:
            first -= 1
        last = min(len(data), first + max_bytes)
        while last < len(data) and data[last] & 0xC0 == 0x80:
            last -= 1
        return Page(data[first:last].decode(), cursor.at(first), cursor.at(last), "complete", None, eof=True)

    lines = data.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "read_capture", read)
        end = Cursor(ID, "stderr", offset=len(data))
        start = asyncio.run(start_of_last_lines(Path(), end, count, step=step))
    assert data[start.offset :] == b"".join(ended[len(ended) - min(count, len(ended)) :])
