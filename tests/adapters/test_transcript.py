"""The transcript: its files, its barrier, and receipts that are named in it."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from adapters.blocking import BlockingSupervisor
from adapters.transcript import Transcript
from supervisor import DurableFiles, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Noting(DurableFiles):
    """Notes what is asked for, and syncs nothing."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.synced: list[list[str]] = []

    def sync(self, paths: Iterable[Any]) -> None:
        """Note it."""
        self.synced.append([str(path.relative_to(self.directory.parent)) for path in paths])


def test_the_barrier_covers_every_file_of_the_conversation(tmp_path: Path) -> None:
    """Those of other transcripts of the same conversation too; what is elsewhere once it was written to."""
    files = Noting(tmp_path / "talk")
    log = Transcript(tmp_path / "talk", files=files)
    Transcript(tmp_path / "talk").append({"n": 0}, log.branch("earlier"))
    log.append({"n": 1})
    log.append({"n": 2}, log.view("compact"))
    log.append({"n": 3}, tmp_path / "talk" / "more" / "other.jsonl")
    log.barrier()
    names = ["conversation.jsonl", "branches/earlier.jsonl", "views/compact.jsonl", "model-selection.jsonl"]
    names += ["events.jsonl", "more/other.jsonl"]
    assert files.synced == [[f"talk/{name}" for name in names]]


def test_custom_places_are_respected(tmp_path: Path) -> None:
    """The directory is where it was said to be, whatever it is called, and so is each of the others."""
    log = Transcript(
        tmp_path / "my logs",
        main="main.jsonl",
        branches=tmp_path / "b",
        views="v",
        trace="t.jsonl",
        events=["e1.jsonl", "e2.jsonl"],
    )
    for path in (None, log.branch("x"), log.view("y"), log.trace, *log.events):
        log.append({"here": True}, path)
    log.barrier()
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl"))
    inside = ["e1.jsonl", "e2.jsonl", "main.jsonl", "t.jsonl", "v/y.jsonl"]
    assert found == ["b/x.jsonl", *(f"my logs/{name}" for name in inside)]


def test_records_come_back_and_broken_lines_are_left_out(tmp_path: Path) -> None:
    """A crash may leave half a line, zeros, or nothing; line separators of Unicode end no line."""
    log = Transcript(tmp_path)
    assert log.read() == []
    log.append({"content": "a\nb\u2028c \ud800"})
    with log.main.open("ab") as file:
        file.write(b'{"content": "cut\n\0\0\0\n[1]\n{"ha')
    log.append({"content": "after"})
    assert log.read() == [{"content": "a\nb\u2028c \ud800"}, {"content": "after"}]


def test_a_rewrite_replaces_all_records_and_a_compaction_those_of_an_event_log(tmp_path: Path) -> None:
    """What was appended since the last barrier included; later appends go to the new file."""
    log = Transcript(tmp_path)
    for number in range(3):
        log.append({"n": number})
        log.append({"event": number}, log.events[0])
    log.rewrite(log.read()[:1])
    log.rewrite([{"checkpoint": 2}], log.events[0])
    log.append({"n": 9})
    log.barrier()
    assert log.read() == [{"n": 0}, {"n": 9}]
    assert log.read(log.events[0]) == [{"checkpoint": 2}]


@pytest.mark.parametrize("record", [{"x": float("nan")}, {"x": object()}])
def test_what_has_no_json_form_is_refused_before_anything_is_written(tmp_path: Path, record: dict[str, object]) -> None:
    """Of an append and of a rewrite."""
    log = Transcript(tmp_path)
    log.append({"n": 1})
    with pytest.raises((ValueError, TypeError)):
        log.append(record)
    with pytest.raises((ValueError, TypeError)):
        log.rewrite([{"n": 2}, record])
    assert log.read() == [{"n": 1}]
    assert [path.name for path in tmp_path.iterdir()] == ["conversation.jsonl"]


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a\0b"])
def test_a_branch_cannot_leave_its_directory(tmp_path: Path, name: str) -> None:
    """Names come from users."""
    log = Transcript(tmp_path)
    for place in (log.branch, log.view):
        with pytest.raises(ValueError, match="not a name"):
            place(name)


def test_a_receipt_is_durable_before_the_message_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that no barrier stands behind is synced first; if that fails, the message is not written."""
    with BlockingSupervisor(tmp_path, durability="none") as supervisor:
        job = supervisor.start(["echo", "kept"])
        receipt = job.wait()
    assert receipt.durability is not None
    assert not receipt.durability.barrier
    log = Transcript(tmp_path)
    seen: list[tuple[str, bool]] = []

    def sync(files: DurableFiles, paths: Iterable[Any]) -> None:
        assert all((files.directory / path).exists() for path in paths if "stderr" not in str(path))
        seen.append((str(files.directory), log.main.exists()))
        if len(seen) == 1:
            raise StorageError("no", reason="io-error", errno=errno.EIO)

    monkeypatch.setattr(DurableFiles, "sync", sync)
    with pytest.raises(StorageError):
        log.append({"see": receipt.capture_id}, receipts=[receipt])
    assert not log.main.exists()
    log.append({"see": receipt.capture_id}, receipts=[receipt])
    assert seen == [(str(tmp_path), False)] * 2
    with pytest.raises(StorageError, match="not where it was"):
        log.append({}, receipts=[receipt.model_copy(update={"conversation": str(tmp_path / "gone")})])
    assert log.read() == [{"see": receipt.capture_id}]


def test_receipts_that_are_durable_or_have_no_file_need_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A published one, and one without a directory."""
    with BlockingSupervisor(tmp_path) as supervisor, BlockingSupervisor() as without:
        receipts = [supervisor.start(["true"]).wait(), without.run(["true"])]
    monkeypatch.setattr(DurableFiles, "sync", None)
    log = Transcript(tmp_path)
    log.append({"n": 1}, receipts=receipts)
    assert log.read() == [{"n": 1}]


def test_a_receipt_that_is_not_final_or_whose_barrier_failed_is_not_named(tmp_path: Path) -> None:
    """It may not be there after a crash, and its own words say so."""
    log = Transcript(tmp_path)
    with BlockingSupervisor(tmp_path) as supervisor:
        job = supervisor.start(["cat"], stdin="pipe")
        with pytest.raises(ValueError, match="not final"):
            log.append({}, receipts=[job.receipt])
        job.write_eof()
        receipt = job.wait()
    assert receipt.durability is not None
    failed = receipt.durability.model_copy(update={"barrier": False, "error": "input/output error"})
    with pytest.raises(StorageError, match="input/output error"):
        log.append({}, receipts=[receipt.model_copy(update={"durability": failed})])
    assert not log.main.exists()


def test_each_line_is_json(tmp_path: Path) -> None:
    """As other programs read it."""
    log = Transcript(tmp_path)
    log.append({"role": "user", "content": "ä"})
    assert [json.loads(line) for line in log.main.read_text("utf-8").splitlines()] == [{"role": "user", "content": "ä"}]
