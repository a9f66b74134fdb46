"""The crash tests' program for a host's own transcript.

A conversation's life, cut short at each of its system calls, and the disk after a power loss.

Arguments: an empty directory on the disk in question, then `sweep KINDS` or `states MOST`. Prints as JSON what was
tried and which of these promises was broken: what was acknowledged survives (`survives`), a rewrite is old or new
(`whole`), a turn whose barrier failed is not completed (`completed`), nothing is raised but what is typed (`typed`).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from disk import KILLS, CrashingFiles, applies
from recording import Move, RecordingFiles, Sync, Told
from states import disk_after, lost_and_kept, materialise
from sweep import forked

from adapters.transcript import BarrierFailed, Event, Transcript, TurnGate
from supervisor import DurableFiles, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from supervisor.storage import Files

    Tell = Callable[[dict[str, Any]], None]
    Broken = list[tuple[str, str]]

TALK = "new/talk"
"""Two directories that the transcript makes itself."""


class Recording(RecordingFiles):
    """Records plain renames, too."""

    def rename(self, source: str, target: str, *, parent: int) -> None:
        """Rename it."""
        with self._turn:
            super().rename(source, target, parent=parent)
            self.steps.append(Move(self._number(parent), source, target, self._number_at(target, parent)))


def play(directory: Path, files: Files, tell: Tell) -> None:
    """Live three turns, with a fork, an undo, and an event log that is compacted.

    Told is what each file has to hold from now on (`held`), and between which two contents it may be (`changing`).
    """
    log = Transcript(directory / TALK, files=DurableFiles(directory / TALK, files=files))
    said: dict[Path, list[int]] = {}
    numbers = iter(range(1000))

    def append(*paths: Path) -> None:
        for path in paths:
            number = next(numbers)
            log.append({"n": number, "content": "x" * 20}, path)
            said.setdefault(path, []).append(number)

    def emit(event: Event) -> None:
        tell({"event": event.kind, "turn": event.turn})
        if event.kind == "completed":
            tell({"event": "held", "files": {_name(path, directory): list(held) for path, held in said.items()}})

    def rewrite(path: Path, kept: list[int]) -> None:
        tell({"event": "changing", "path": _name(path, directory), "new": list(kept)})
        log.rewrite([{"n": number, "content": "x" * 20} for number in kept], path)
        said[path] = list(kept)
        tell({"event": "held", "files": {_name(path, directory): list(kept)}})

    gate = TurnGate(log, emit=emit)
    steps: list[Callable[[], None]] = [
        lambda: append(log.main, log.main, log.trace, log.events[0]),
        lambda: rewrite(log.branch("fork"), list(said.get(log.main, []))),
        lambda: append(log.main, log.branch("fork"), log.view("v"), log.events[0]),
        lambda: rewrite(log.main, said.get(log.main, [])[:1]),
        lambda: rewrite(log.events[0], said.get(log.events[0], [])[-1:]),
        lambda: append(log.main),
    ]
    for turns in (steps[:1], steps[1:3], steps[3:]):
        try:
            with gate.turn():
                for step in turns:
                    step()
        except (StorageError, BarrierFailed) as error:
            tell({"event": "refused", "error": str(error)})


def _name(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory))


def check(directory: Path, told: Sequence[dict[str, Any]]) -> Broken:
    """Return what is broken in a directory that is found after these events."""
    held: dict[str, list[int]] = {}
    changing: dict[str, list[int]] = {}
    for event in told:
        if event["event"] == "held":
            held.update(event["files"])
            for path in event["files"]:
                changing.pop(path, None)
        elif event["event"] == "changing":
            changing[event["path"]] = event["new"]
    broken = [("completed", f"turn {turn} has failed, and is completed") for turn in _both(told)]
    reading = Transcript(directory / TALK)
    for path, wanted in held.items():
        found = [record["n"] for record in reading.read(directory / path) if "n" in record]
        may_be = [wanted, *([changing[path]] if path in changing else [])]
        if not any(found[: len(each)] == each for each in may_be):
            broken.append(("whole" if path in changing else "survives", f"{path} has {found}, none of {may_be}"))
    return broken


def _both(told: Sequence[dict[str, Any]]) -> set[int]:
    """Return the turns that are completed, and failed or refused as well."""
    completed = {event["turn"] for event in told if event["event"] == "completed"}
    failed = {event["turn"] for event in told if event["event"] == "failed"}
    released = 0
    for event in told:
        released = event["turn"] if event["event"] == "released" else released
        if event["event"] == "refused":
            failed.add(released)
    return completed & failed


def journalled(path: Path) -> Tell:
    """Return what writes down in one call what was told."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def tell(event: dict[str, Any]) -> None:
        os.write(number, json.dumps(event).encode() + b"\n")

    return tell


def strike(place: Path, kind: str | None, point: int) -> tuple[Broken, list[str]]:
    """Play it once, struck at one call; return what is broken, and the calls that were counted."""
    directory, journal = place / "conversation", place / "journal"
    directory.mkdir(mode=0o700)
    files = CrashingFiles(kind, point)
    tell = journalled(journal)
    broken: Broken = []
    if kind in KILLS:
        pid = forked(lambda: play(directory, files, tell), place / "errors")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in {0, -signal.SIGKILL}:
            broken.append(("typed", (place / "errors").read_text()))
    else:
        try:
            play(directory, files, tell)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is to be told
            broken.append(("typed", f"{type(error).__name__}: {error}"))
    told = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    broken += check(directory, told)
    shutil.rmtree(directory)
    journal.unlink(missing_ok=True)
    return [(promise, f"{kind} at call {point}: {text}") for promise, text in broken], files.counted


def sweep(place: Path, kinds: Sequence[str]) -> dict[str, Any]:
    """Strike each call by each kind that can happen there."""
    broken, calls = strike(place, None, 0)
    runs = 0
    for kind in kinds:
        for point, call in enumerate(calls, 1):
            if applies(kind, call):
                broken += strike(place, kind, point)[0]
                runs += 1
    return {"calls": len(calls), "runs": runs, "broken": broken}


def states(place: Path, most: int) -> dict[str, Any]:
    """Look at the states of the disk at each moment: undisturbed, and with each of the syncs failing in turn."""
    broken: Broken = []
    tried, failing, syncs = 0, 0, 1
    while failing <= syncs:
        directory = place / "played"
        directory.mkdir(mode=0o700)
        files = Recording(directory, failing)
        play(directory, files, files.told)
        shutil.rmtree(directory)
        syncs = max(syncs, files.syncs)
        tried += look(place, files, most, failing, broken)
        failing += 1
    return {"states": tried, "syncs": syncs, "broken": broken}


def look(place: Path, files: Recording, most: int, failing: int, broken: Broken) -> int:
    """Check the states of one recorded life; return how many there were."""
    seen: set[int] = set()
    draw = random.Random(failing)
    for moment in range(len(files.steps) + 1):
        if failing and moment <= files.since:
            continue
        steps = [Sync(0), *files.steps[:moment]]
        told = [step.event for step in steps if isinstance(step, Told)]
        for choice in lost_and_kept(steps, draw, most):
            disk = disk_after(steps, choice)
            mark = hash((tuple(sorted(disk.items())), len(told)))
            if mark in seen:
                continue
            seen.add(mark)
            directory = place / "found"
            materialise(disk, directory)
            when = f"{files.failed} failed, " if failing else ""
            broken += [(promise, f"{when}step {moment}: {text}") for promise, text in check(directory, told)]
            shutil.rmtree(directory)
    return len(seen)


if __name__ == "__main__":
    os.umask(0)
    warnings.simplefilter("error")
    where, action, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    came = sweep(where, how.split(",")) if action == "sweep" else states(where, int(how))
    print(json.dumps(came))  # noqa: T201 - a program
