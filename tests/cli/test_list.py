"""`list`: a line for each capture, and the receipts themselves for programs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor import Receipt
from supervisor.cli.quantities import short_size
from supervisor.cli.table import prefix_length, table
from supervisor.sansio.receipt import CaptureFacts, ProcessFacts, Retained, StreamFacts

if TYPE_CHECKING:
    from conftest import CommandLine

IDS = tuple(f"20260131T235959{count:06}Z-{'0' * 32}" for count in (1, 2, 10))


def receipt_of(capture_id: str, **facts: object) -> Receipt:
    """Return a receipt of an ended command that printed 1,536 bytes on its only stream."""
    stdout = StreamFacts(state="complete", retained=Retained(end=1536))
    base = Receipt(
        capture_id=capture_id,
        label="a label",
        started_at=datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC),
        process=ProcessFacts(state="exited", code=0),
        capture=CaptureFacts(state="complete"),
        streams={"stdout": stdout, "stderr": None},
    )
    return base.model_copy(update=facts)


def test_each_capture_has_a_line_with_the_newest_last(spoolvisor: CommandLine) -> None:
    """Code, signal, sizes and label, beside an id that other commands take."""
    spoolvisor("run", "-q", "--label", "the first", "--", "sh", "-c", "seq 1000; echo e >&2; exit 3")
    spoolvisor("run", "-q", "--", "sh", "-c", "kill -9 $$")
    done = spoolvisor("list")
    head, first, last = done.out.splitlines()
    assert (done.code, done.errors) == (0, ["spoolvisor: 3.8KiB used, 0B reserved, 128MiB left of 128MiB"])
    assert head.split() == ["ID", "STARTED", "PROCESS", "CODE", "CAPTURE", "STDOUT", "STDERR", "LABEL"]
    assert re.fullmatch(r"\w+Z?-?\w*  (\d\d:?){3} +exited +3  complete +3\.8KiB +2B  the first", first)
    assert re.search(r"exited +SIGKILL  complete +0B +0B  sh -c 'kill -9 \$\$'$", last)
    shown = spoolvisor("show", "--json", first.split()[0])
    assert shown.receipt["label"] == "the first"


def test_json_is_a_receipt_a_line_with_exact_figures(spoolvisor: CommandLine) -> None:
    """What the files say, in the same order."""
    for count in ("3", "4"):
        spoolvisor("run", "-q", "--", "seq", count)
    lines = spoolvisor("list", "--json").out.splitlines()
    receipts = [json.loads(line) for line in lines]
    assert [receipt["streams"]["stdout"]["retained"]["end"] for receipt in receipts] == [6, 8]
    assert [receipt["capture_id"] for receipt in receipts] == [path.name for path in spoolvisor.captures()]
    published = json.loads((spoolvisor.captures()[0] / "receipt.json").read_text())
    assert receipts[0] == published


def test_a_running_command_is_listed_with_what_is_committed(spoolvisor: CommandLine) -> None:
    """It has no code yet."""
    process = spoolvisor.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    line = spoolvisor("list").out.splitlines()[-1]
    process.send_signal(signal.SIGINT)
    assert spoolvisor.finish(process).code == 130
    assert re.search(r"running +-  pending +(6B|0B) +0B  sh -c", line)


def test_the_allowance_is_told_on_stderr_with_what_running_commands_have_reserved(spoolvisor: CommandLine) -> None:
    """By the limit that was in force last; a program that reads receipts is not told."""
    limit = ("--conversation-bytes", "256KiB")
    process = spoolvisor.start("run", *limit, "--", "sh", "-c", "printf 0123456789; printf . >&2; exec sleep 1000")
    assert process.stderr.read(1) == b"."
    while "11B used" not in (said := spoolvisor("list").err):  # shown is not yet committed
        assert process.poll() is None
    assert said == "spoolvisor: 11B used, 64KiB reserved, 192KiB left of 256KiB\n"
    process.send_signal(signal.SIGINT)
    assert spoolvisor.finish(process).code == 130
    assert spoolvisor("list").errors == ["spoolvisor: 11B used, 0B reserved, 256KiB left of 256KiB"]
    assert spoolvisor("list", "--json").err == ""


@pytest.mark.parametrize("made", [False, True])
def test_nothing_is_listed_where_nothing_was_run(spoolvisor: CommandLine, *, made: bool) -> None:
    """A missing directory is no error, and is not made."""
    if made:
        spoolvisor.kept.mkdir()
    for arguments in (("list",), ("list", "--json"), ("recover",)):
        done = spoolvisor(*arguments)
        assert (done.code, done.out, done.err) == (0, "", "")
    assert list(spoolvisor.place.rglob("*")) == ([spoolvisor.kept] if made else [])


def test_the_directory_is_that_of_run_or_the_given_one(spoolvisor: CommandLine, tmp_path: Path) -> None:
    """`--dir` looks where `run --dir` keeps."""
    other = str(tmp_path / "other")
    spoolvisor("run", "-q", "--dir", other, "--", "true")
    assert spoolvisor("list").out == ""
    assert len(spoolvisor("list", "--dir", other, "--json").out.splitlines()) == 1
    done = spoolvisor("list", "--dir", "")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)


def test_a_directory_that_is_none_is_a_mistake(spoolvisor: CommandLine, tmp_path: Path) -> None:
    """One line says why."""
    (tmp_path / "file").write_text("")
    done = spoolvisor("list", "--dir", str(tmp_path / "file"))
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "Not a directory" in done.err


def test_a_full_disk_under_stdout_is_a_fault(spoolvisor: CommandLine) -> None:
    """One line, and not the code of a mistake; a reader that is gone is neither."""
    spoolvisor("run", "-q", "--", "true")
    with Path("/dev/full").open("wb") as full:
        done = spoolvisor("list", stdout=full)
    assert (done.code, done.errors) == (125, ["spoolvisor: stdout takes no more: No space left on device"])
    gone = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    gone.wait()
    done = spoolvisor("list", stdout=gone.stdin)
    gone.stdin.close()
    assert (done.code, len(done.errors)) == (0, 1)


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    """At least the second, at most all of it."""
    assert prefix_length([]) == prefix_length(IDS[:1]) == len("20260131T235959")
    assert prefix_length(IDS) == len("20260131T235959000001")
    assert len({line[: prefix_length(IDS)] for line in table([receipt_of(each) for each in IDS])[1:]}) == 3
    alike = [IDS[0], IDS[0][:-1] + "1"]
    assert prefix_length(alike) == len(IDS[0])


def test_a_moment_of_another_day_has_a_date_in_local_time() -> None:
    """Of today the seconds are shown."""
    receipt = receipt_of(IDS[0])
    local = receipt.started_at.astimezone()
    assert f"  {local:%H:%M:%S}  " in table([receipt], now=local)[1]
    assert f"  {local:%Y-%m-%d %H:%M}  " in table([receipt], now=datetime(2027, 1, 1, tzinfo=UTC).astimezone())[1]


def test_what_is_unknown_is_not_zero() -> None:
    """A size nobody knows, a stream that does not exist, a text that came from no child [A4]."""
    streams = {"stdout": StreamFacts(state="failed", reason="writer-stuck"), "stderr": None}
    capture = CaptureFacts(state="failed", reason="writer-stuck")
    receipt = receipt_of(IDS[0], streams=streams, capture=capture, process=None, started_at=None, label=None)
    assert table([receipt])[1].split()[1:] == ["?", "-", "-", "failed", "(writer-stuck)", "?", "-"]
    signalled = receipt_of(IDS[0], process=ProcessFacts(state="exited", signal=44))
    assert " SIG44 " in table([signalled])[1]


def test_a_label_is_cut_to_a_terminals_width_and_stays_one_line() -> None:
    """The other columns are whole; a label cannot move the cursor, even if the file was changed by somebody."""
    receipt = receipt_of(IDS[0], label="x" * 100 + "\x1b[2J")
    whole, short = (table([receipt], width=width)[1] for width in (None, 100))
    assert whole.endswith("x" * 100 + "\\x1b[2J")
    assert (len(short), short[-1]) == (100, "…")
    assert table([receipt], width=10)[1].endswith("  " + "x" * 15 + "…")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (10188, "9.9KiB"),
        (10189, "10KiB"),
        (32 * 1024**2, "32MiB"),
        (5 * 1024**4, "5.0TiB"),
    ],
)
def test_sizes_are_short(count: int, text: str) -> None:
    """Two digits say enough."""
    assert short_size(count) == text
