"""Plays a scenario once for each of its system calls, struck by each kind of fault, and examines what is left.

All is imported and played once before the first fork, so that a run costs some milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import signal
import threading
import traceback
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from disk import KILLS, CrashingFiles, applies
from examine import Case, Unsynced, examine, listing, tree_of
from mutants import MUTANTS
from scenarios import SCENARIOS, Scenario, speak_on
from stage import Stage

from supervisor.recovering import recover_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Found = list[tuple[str, str]]
    Task = Callable[[Path], Any]

WORKERS: Final = 4
"""Runs at a time: each waits a part of its time for threads and for a process to end."""
PATIENCE: Final = 30
"""Seconds after which a run that does not end is killed, and counts as a violation."""


@dataclass
class Room:
    """Where one worker works."""

    path: Path
    template: Path
    scenario: Scenario
    mutant: str
    prepared: dict[str, Any] = field(default_factory=dict[str, Any])


def forked(work: Callable[[], None], errors: Path) -> int:
    """Run the work in a child process; return its pid."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(PATIENCE)  # of storage: it has been told to end
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(PATIENCE)  # the default action is to end the process
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the child of a fork must not go on as its parent
        errors.write_text(traceback.format_exc())
    os._exit(code)


def play(scenario: Scenario, stage: Stage, *, preparing: bool = False) -> None:
    """Play it on a loop of its own."""
    asyncio.run((scenario.prepare if preparing else scenario.play)(stage))


def staged(directory: Path, files: Any, mutant: str, prepared: dict[str, Any]) -> Stage:  # noqa: ANN401 - Files or a part of it
    """Return a stage whose journal lies beside the conversation."""
    journal = os.open(f"{directory}.journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    stage = Stage(directory, files, journal, mutant, prepared)
    if isinstance(files, CrashingFiles):
        files.tell = stage.tell
    return stage


def journal_of(directory: Path) -> list[dict[str, Any]]:
    """Return what was told, and forget it."""
    path = Path(f"{directory}.journal")
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def prepare(room: Room) -> None:
    """Make the conversation that each run gets a copy of."""
    room.template.mkdir(mode=0o700)

    def work() -> None:
        play(room.scenario, staged(room.template, CrashingFiles(), "", {}), preparing=True)

    os.waitpid(forked(work, room.path / "errors"), 0)
    for event in journal_of(room.template):
        if event["event"] == "prepared":
            room.prepared = event


def run(room: Room, kind: str | None, point: int) -> tuple[Case, list[str]]:
    """Play the scenario, struck once; return what came of it, and the calls that were counted."""
    scenario, directory = room.scenario, room.path / "conversation"
    copied(room.template, directory)
    files = MUTANTS[room.mutant](kind, point, linking=scenario.linking)
    companion = Companion(directory, room) if scenario.companion else None
    ended = _play_forked(room, directory, files) if kind in KILLS else _play_here(room, directory, files)
    events = journal_of(directory)
    case = Case(directory, kind, events, room.prepared, limit=scenario.limit, code=scenario.code)
    case.require("I10", ended is None, f"it ended by {ended}")
    if companion is not None:
        companion.examine(case)
    try:
        examine(case, completions=bool(room.prepared) or bool(case.told("handed")))
    except Exception:  # noqa: BLE001 - the product must not fail on what it finds
        case.require("I4", holds=False, text=traceback.format_exc())
    shutil.rmtree(directory)
    return case, files.counted


def _play_here(room: Room, directory: Path, files: CrashingFiles) -> str | None:
    """Play it in this process, which must come through; return what went wrong."""
    stage = staged(directory, files, room.mutant, room.prepared)
    signal.alarm(PATIENCE)
    try:
        play(room.scenario, stage)
    except BaseException:  # noqa: BLE001 - whatever it is, it is to be told
        return traceback.format_exc()
    finally:
        signal.alarm(0)
        os.close(stage.journal)
    return None


def _play_forked(room: Room, directory: Path, files: CrashingFiles) -> str | None:
    """Play it in a process of its own, which is killed unless it does not come to the point."""
    errors = room.path / "errors"
    pid = forked(lambda: play(room.scenario, staged(directory, files, room.mutant, room.prepared)), errors)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code in {0, -signal.SIGKILL}:
        return None
    text = errors.read_text() if errors.exists() else ""
    errors.unlink(missing_ok=True)
    return f"exit {code}: {text}"


def copied(source: Path, target: Path) -> None:
    """Copy a tree with its modes and second names."""
    seen: dict[int, str] = {}

    def copy(one: str, other: str) -> None:
        inode = Path(one).stat().st_ino
        if inode in seen:
            os.link(seen[inode], other)
        else:
            shutil.copy2(one, seen.setdefault(inode, other))

    shutil.copytree(source, target, copy_function=copy)


class Companion:
    """Another process with a job at work in the same conversation, from before the crash until after recovery."""

    def __init__(self, directory: Path, room: Room) -> None:
        self._directory = directory
        self._mutant = room.mutant
        up, self._up = os.pipe()
        self._on, on = os.pipe()
        self._pid = forked(lambda: asyncio.run(self._work(on)), room.path / "companion-errors")
        self._errors = room.path / "companion-errors"
        os.close(self._up)
        os.close(self._on)
        self._go = on
        self.capture_id = os.read(up, 1024).decode()
        os.close(up)

    async def _work(self, on: int) -> None:
        os.close(on)
        stage = staged(self._directory.with_name("companion"), MUTANTS[self._mutant](), "", {})
        stage.directory = self._directory
        async with stage.supervisor() as supervisor:
            job = await stage.job(supervisor, speak_on)
            await anext(job.follow("stderr"))
            os.write(self._up, job.capture_id.encode())
            await asyncio.to_thread(os.read, self._on, 1)
            stage.children.started[0].exit(0)
            await stage.end(job)

    def examine(self, case: Case) -> None:
        """Recover beside it, let it end, and check that it was not touched [I5]."""
        place = f"tool-outputs/captures/{self.capture_id}/"
        before = {name: entry for name, entry in tree_of(self._directory).items() if name.startswith(place)}
        try:
            asyncio.run(recover_with(Unsynced(), self._directory))
            listed, _ = listing(self._directory)
        except Exception:  # noqa: BLE001 - the product must not fail on what it finds
            case.require("I4", holds=False, text=traceback.format_exc())
            listed = {}
        after = {name: entry for name, entry in tree_of(self._directory).items() if name.startswith(place)}
        state = self.capture_id in listed and listed[self.capture_id].capture.state
        case.require("I5", before == after, "the files of a live owner's capture were changed")
        case.require("I5", state == "pending", f"a live owner's capture is listed as {state}")
        os.close(self._go)
        _, status = os.waitpid(self._pid, 0)
        text = self._errors.read_text() if self._errors.exists() else ""
        case.require("I5", status == 0, f"the live owner ended with {status}: {text}")
        self._errors.unlink(missing_ok=True)
        told = [event for event in journal_of(self._directory.with_name("companion")) if event["event"] == "receipt"]
        whole = told and json.loads(told[0]["receipt"])["capture"]["state"] == "complete"
        case.require("I5", whole, f"the live owner's capture came to {told}")
        case.events.extend(told)


def spread(tasks: Sequence[Task], place: Path) -> list[Any]:
    """Run tasks in some processes, each in a directory of its own, and return what came of them, in that order."""

    def work(number: int, directory: Path) -> None:
        signal.alarm(0)  # each run has its own
        pin(number)
        results = [task(directory) for task in tasks[number::WORKERS]]
        (directory / "results").write_text(json.dumps(results))

    directories = [place / f"worker-{number}" for number in range(WORKERS)]
    pids: list[int] = []
    gc.freeze()  # each run is a fork: what is there already need not be gone through in it
    for number, directory in enumerate(directories):
        directory.mkdir(mode=0o700)
        pids.append(forked(partial(work, number, directory), directory / "failed"))
    for pid in pids:
        os.waitpid(pid, 0)
    results: list[Any] = [None] * len(tasks)
    for number, directory in enumerate(directories):
        failed = directory / "failed"
        assert not failed.exists(), failed.read_text()
        results[number::WORKERS] = json.loads((directory / "results").read_text())
        shutil.rmtree(directory)
    return results


def pin(number: int) -> None:
    """Keep to one processor: threads that take turns are then handed over in half the time."""
    if hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[number % len(processors)]})


def prepared(name: str, place: Path, mutant: str = "") -> Room:
    """Return the room of a scenario, prepared and played once, so that later runs find everything warm."""
    place.mkdir(mode=0o700)
    room = Room(place, place / "template", SCENARIOS[name], mutant)
    prepare(room)
    copied(room.template, place / "warm")
    _play_here(room, place / "warm", CrashingFiles(linking=room.scenario.linking))
    journal_of(place / "warm")
    return room


def points_of(room: Room, kinds: Sequence[str]) -> tuple[list[tuple[str, int]], int, Found]:
    """Return what is to be struck, at how many calls, and what is wrong with an undisturbed run."""
    case, calls = run(room, None, 0)
    first = case.told("started")[0]["calls"] if room.scenario.starting else 0
    points = [
        (kind, number)
        for kind in kinds
        for number, call in enumerate(calls, 1)
        if kind in room.scenario.kinds and number > first and applies(kind, call)
    ]
    return points, len(calls) - first, [(invariant, f"undisturbed: {text}") for invariant, text in case.found]


def strike(room: Room, kind: str, point: int, directory: Path) -> Found:
    """Return what is wrong after one point was struck."""
    case, _ = run(replace(room, path=directory), kind, point)
    return [(invariant, f"{kind} at call {point}: {text}") for invariant, text in case.found]


def sweep(place: Path, kinds: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return what the sweeps of scenarios came to, by scenario."""
    came: dict[str, Any] = {}
    tasks: list[tuple[str, Task]] = []
    for name in names:
        room = prepared(name, place / name)
        points, calls, found = points_of(room, kinds)
        by_kind = {kind: sum(1 for each, _ in points if each == kind) for kind in kinds}
        came[name] = {"points": calls, "kinds": by_kind, "found": found}
        tasks += [(name, partial(strike, room, kind, point)) for kind, point in points]
    for (name, _), found in zip(tasks, spread([task for _, task in tasks], place), strict=True):
        came[name]["found"] += found
    return came


def hunt(place: Path, mutant: str, name: str, kind: str) -> Found:
    """Return what the first runs of a mutant that go wrong show."""
    room = prepared(name, place / mutant, mutant)
    points, _, found = points_of(room, (kind,))
    while points and not found:
        found = strike(room, *points.pop(0), place)
    return found
