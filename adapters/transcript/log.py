"""An append-only transcript of JSON lines: appends are buffered, a barrier brings them to the device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from supervisor import DurableFiles, StorageError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from supervisor import Receipt

    StrPath = str | os.PathLike[str]

CAPTURES: Final = Path("tool-outputs", "captures")
"""Where a conversation has its captures (docs/reference.md, "On disk")."""


class Transcript:
    """The files of one conversation: main, branches, views, the trace of model selection, and recovery event logs.

    Nothing is made before it is written to. All calls block, and may come from any thread. One process at a time may
    write. Paths are relative to the conversation's directory, or absolute, and may be symlinks.

    Args:
        directory: The conversation's directory, wherever it is. It need not exist.
        main: The main transcript.
        branches: The directory of the branches' transcripts.
        views: The directory of the views' transcripts.
        trace: The trace of model selection.
        events: Event logs that recovery reads.
        files: What writes; a seam for tests.
    """

    def __init__(
        self,
        directory: StrPath,
        *,
        main: StrPath = "conversation.jsonl",
        branches: StrPath = "branches",
        views: StrPath = "views",
        trace: StrPath = "model-selection.jsonl",
        events: Sequence[StrPath] = ("events.jsonl",),
        files: DurableFiles | None = None,
    ) -> None:
        self._files: Final = files or DurableFiles(directory)
        self._directory: Final = self._files.directory
        self.main: Final = self._directory / main
        """The main transcript's path."""
        self.trace: Final = self._directory / trace
        """The path of the trace of model selection."""
        self.events: Final = tuple(self._directory / each for each in events)
        """The paths of the event logs."""
        self._folders: Final = (self._directory / branches, self._directory / views)
        self._others: Final[dict[Path, None]] = {}

    def branch(self, name: str) -> Path:
        """Return the path of a branch's transcript. Raises: ValueError for a name that is none of a file."""
        return self._folders[0] / _file_name(name)

    def view(self, name: str) -> Path:
        """Return the path of a view's transcript. Raises: ValueError for a name that is none of a file."""
        return self._folders[1] / _file_name(name)

    def append(
        self, record: Mapping[str, Any], path: StrPath | None = None, *, receipts: Iterable[Receipt] = ()
    ) -> None:
        """Append a record to the main transcript, or to `path`; it is on the device after the next barrier.

        Args:
            record: What JSON has a form for.
            path: Another file of the conversation.
            receipts: Those that the record names. They are on the device before the record is written anywhere.

        Raises:
            ValueError: a receipt is not final, or the record has no JSON form; nothing was written.
            TypeError: the record has no JSON form; nothing was written.
            StorageError: a receipt is not on the device, and nothing was written; or the record could not be written,
                or not all of it.
        """
        line = _line(record)
        for receipt in receipts:
            self._make_durable(receipt)
        self._files.append_line(self._noted(path), line)

    def rewrite(self, records: Iterable[Mapping[str, Any]], path: StrPath | None = None) -> None:
        """Return when the main transcript, or `path`, consists of these records, on the device: fork, undo, edit.

        A crash at any moment leaves the old records or the new ones. A symlink stays, and what it points to is
        replaced. The compaction of an event log to a checkpoint is the same: `rewrite([checkpoint], log.events[0])`.

        Raises:
            ValueError, TypeError: a record has no JSON form; nothing was changed.
            StorageError: as `DurableFiles.replace`.
        """
        self._files.replace(self._noted(path), (_line(record) + b"\n" for record in records))

    def barrier(self) -> None:
        """Return when all that was appended by now is on the device, in every file of the conversation that there is.

        Files, then directories, as `DurableFiles.sync` has it, which warns of file systems that cannot do it all.

        Raises:
            StorageError: some of it is not. Once the fault is gone, a later barrier may hold: it writes anew what a
                failed one was of.
        """
        paths: dict[Path, None] = {self.main: None}
        for folder in self._folders:
            if folder.is_dir():
                paths.update(dict.fromkeys(sorted(folder.glob("*.jsonl"))))
        paths.update(dict.fromkeys((self.trace, *self.events, *tuple(self._others))))
        self._files.sync(paths)

    def read(self, path: StrPath | None = None) -> list[dict[str, Any]]:
        """Return the records of the main transcript, or of `path`, in order; none of a file that is not there.

        A line that is no record, as a crash may leave it, is left out. Raises: StorageError.
        """
        records: list[dict[str, Any]] = []
        for line in self._files.read(self.main if path is None else path).split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                records.append(cast("dict[str, Any]", record))
        return records

    def _noted(self, path: StrPath | None) -> Path:
        """Return the absolute path of a file, which the barrier is to reach wherever it is."""
        wanted = self.main if path is None else self._directory / path
        if wanted not in {self.main, self.trace, *self.events} and wanted.parent not in self._folders:
            self._others[wanted] = None
        return wanted

    def _make_durable(self, receipt: Receipt) -> None:
        """Return when the receipt and its texts are on the device, or nothing of it is on a disk at all."""
        if receipt.capture.state == "pending":
            raise ValueError("a message names no receipt that is not final")
        facts = receipt.durability
        if facts is None or facts.barrier:
            return
        if facts.error is not None:
            raise StorageError(f"the receipt is not on the device: {facts.error}", reason="io-error")
        if receipt.conversation is None:
            raise StorageError("nobody knows where the receipt is", reason="no-directory")
        capture = CAPTURES / receipt.capture_id
        conversation = DurableFiles(receipt.conversation)
        if not (conversation.directory / capture / "receipt.json").is_file():
            raise StorageError("the receipt is not where it was published", reason="no-directory")
        conversation.sync(capture / name for name in ("stdout.log", "stderr.log", "receipt.json"))


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(record), allow_nan=False, separators=(",", ":")).encode()


def _file_name(name: str) -> str:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a name of a branch or view")
    return f"{name}.jsonl"
