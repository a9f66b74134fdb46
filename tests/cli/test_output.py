"""Slow, broken and missing readers: they cost what they miss, never the job."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine, Program

GAP = re.compile(rb"^\[([0-9]+) bytes not shown\]\n", re.MULTILINE)


def test_a_slow_reader_misses_nothing_that_is_kept(spoolvisor: CommandLine, program: Program, tmp_path: Path) -> None:
    """8 MiB come to their end while nobody reads; then all of it is shown, from the file [E1]."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = spoolvisor.start("run", "--", *program("flood", 2**20, fifo))
    fifo.read_bytes()  # returns when the child has written all of it
    done = spoolvisor.finish(process)
    assert done.out.encode() == spoolvisor.text("stdout") == b"".join(b"%07d\n" % number for number in range(2**20))
    assert "capture complete: all output is accounted for" in done.errors
    # All was seen: the preview would only repeat it.
    assert not any(line.startswith("| ") for line in done.errors)


def test_a_slow_reader_makes_a_counted_gap_in_what_is_not_kept(
    spoolvisor: CommandLine, program: Program, tmp_path: Path
) -> None:
    """The text to the limit and the newest text are shown, what is missing is counted, nothing stalls.

    Text that is still being decided when the reader comes back may leave a second gap.
    """
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = spoolvisor.start("run", "--job-bytes", "3MiB", "--", *program("flood", 2**20, fifo))
    fifo.read_bytes()
    done = spoolvisor.finish(process)
    shown = done.out.encode()
    gaps = list(GAP.finditer(shown))
    assert shown[: gaps[0].start()] == spoolvisor.text("stdout")
    total = len(GAP.sub(b"", shown)) + sum(int(gap[1]) for gap in gaps)
    assert 0 <= total - 2**23 < len(gaps)  # a later one may begin in the middle of a line, which is ended first
    assert shown.endswith(b"%07d\n" % (2**20 - 1))
    # What was missed on the screen is not missed twice: the preview is in the receipt this time.
    assert any(line.startswith("| ") for line in done.errors)


def test_a_reader_that_has_seen_enough_ends_the_showing_alone(spoolvisor: CommandLine, tmp_path: Path) -> None:
    """`| head`: the command goes on to its end, all of it is kept, stderr is shown [B5]."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"echo one; read x < {fifo}; seq 20000; echo end >&2; exit 3"
    process = spoolvisor.start("run", "--", "sh", "-c", script)
    assert process.stdout.readline() == b"one\n"
    process.stdout.close()
    fifo.write_bytes(b"go\n")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert spoolvisor.text("stdout").endswith(b"\n20000\n")
    assert err.startswith(b"end\n")
    assert b"spoolvisor: " not in err


def test_a_closed_stdout_is_not_replaced_by_a_file_of_ours(spoolvisor: CommandLine) -> None:
    """`>&-`: the next file opened would get descriptor 1, and the child's output would be written into it."""
    closing = ("sh", "-c", 'exec "$@" >&- 2>&-', "sh")
    process = spoolvisor.start_by(closing, "run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    done = spoolvisor.finish(process)
    assert (done.code, done.out, done.err) == (3, "", "")
    (capture,) = spoolvisor.captures()
    kept = {path.name: path.read_bytes() for path in capture.iterdir()}
    assert (kept["stdout.log"], kept["stderr.log"]) == (b"out\n", b"err\n")
    locks = [path.read_bytes() for path in Path(spoolvisor.kept, "tool-outputs", ".supervisor").iterdir()]
    assert not [content for content in [*locks, kept["receipt.json"][:4]] if content.startswith((b"out\n", b"err\n"))]


def test_a_full_disk_under_stdout_is_named_once(spoolvisor: CommandLine) -> None:
    """The command and its capture are whole; the code is the child's."""
    with Path("/dev/full").open("wb") as full:
        done = spoolvisor("run", "--", "sh", "-c", "seq 3; exit 3", stdout=full)
    assert done.code == 3
    said = [line for line in done.errors if line.startswith("spoolvisor: ")]
    assert said == ["spoolvisor: stdout takes no more: No space left on device"]
    assert "| 1" in done.errors
    assert spoolvisor.text("stdout") == b"1\n2\n3\n"


def test_json_that_cannot_be_written_is_said(spoolvisor: CommandLine) -> None:
    """A program that reads stdout gets nothing; whoever reads stderr learns why."""
    with Path("/dev/full").open("wb") as full:
        done = spoolvisor("run", "--json", "--quiet", "--", "true", stdout=full)
    assert done.code == 0
    assert done.errors == ["spoolvisor: the receipt could not be written to stdout: No space left on device"]


def test_one_pipe_under_both_descriptors_keeps_the_receipt_on_a_fresh_line(spoolvisor: CommandLine) -> None:
    """As at a terminal: output without a last line feed is followed by one."""
    done = spoolvisor("run", "--", "printf", "abc", stderr=subprocess.STDOUT)
    assert done.out.splitlines()[0] == "abc"
    assert done.out.splitlines()[1].startswith("printf abc: exited 0")


@pytest.mark.parametrize("mode", [(), ("--json",)])
def test_a_non_blocking_pipe_loses_nothing(spoolvisor: CommandLine, mode: tuple[str, ...]) -> None:
    """Whoever shares our pipe may have made it non-blocking (open(2)): a full one is waited for, not an error."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    streams = {"stderr" if mode else "stdout": writing}
    process = spoolvisor.start("run", *mode, "--", "seq", "100000", **streams)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    assert spoolvisor.finish(process).code == 0
    assert text == b"".join(b"%d\n" % number for number in range(1, 100001))
