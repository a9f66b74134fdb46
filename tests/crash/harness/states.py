"""The states that a disk may be in after the power went, and what must hold in each of them.

What a sync covers is there. Of everything else any part may be: a write wholly, not at all, up to its middle, or as
zeros; a name made, moved or removed, or not. Nothing is assumed of the order in which a file system writes.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import random
import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from examine import CAPTURES, Case, Unsynced, check_evidence, durable, listing, tree_of
from mutants import RECIPES
from recording import Cut, Drop, FailedSync, Link, Make, Move, RecordingFiles, Step, Sync, Told, Write
from stage import Stage
from sweep import Room, copied, prepared, spread

from supervisor import Receipt
from supervisor.storage import find_captures, recover_capture
from supervisor.storage.delivery import Marker
from supervisor.storage.evidence import find_rooms
from supervisor.storage.owners import this_process
from supervisor.storage.publish import Barrier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST: Final = 16
"""States that are looked at for one moment. Where there are more, they are drawn, after the plainest ones."""
MOST_OF_FAILED: Final = 12
"""The same for a run of which a sync has failed."""
LOST: Final = (("partial", "supervisor-lost"), ("failed", "supervisor-lost"))
"""`failed`: not even the name of a stream is there."""
WHOLE, ABSENT, HALF, ZEROS = range(4)
Disk = dict[str, tuple[int, bytes | None]]
"""The inode and content of each path; the content of a directory is None."""


class RecordedStage(Stage):
    """A stage whose world is the record."""

    files: RecordingFiles

    def tell(self, event: str, **facts: object) -> None:
        """Write it down among the steps."""
        self.files.told({"event": event, **facts})


def lost_and_kept(steps: Sequence[Step], draw: random.Random, most: int) -> Iterator[dict[int, int]]:
    """Yield what may have become of the steps that no sync covers: a choice for each, by its index."""
    pending = [index for index, step in enumerate(steps) if not _covered(steps, index)]
    ways = [range(4) if isinstance(steps[index], Write) else range(2) for index in pending]
    if math.prod(map(len, ways)) <= most:
        chosen: list[tuple[int, ...]] = list(itertools.product(*ways))
    else:
        chosen = [tuple([way] * len(ways)) for way in (WHOLE, ABSENT)]
        for index in range(len(ways)):
            chosen.append(tuple(ABSENT if other == index else WHOLE for other in range(len(ways))))
            chosen.append(tuple(WHOLE if other == index else ABSENT for other in range(len(ways))))
        draw.shuffle(chosen)
        chosen = chosen[: most // 2] + [tuple(draw.choice(way) for way in ways) for _ in range(most // 2)]
    for each in chosen:
        yield dict(zip(pending, each, strict=True))


def _covered(steps: Sequence[Step], index: int) -> bool:
    step = steps[index]
    if isinstance(step, Sync | FailedSync | Told):
        return True
    where = step.inode if isinstance(step, Write | Cut) else step.directory
    written = True
    for later in steps[index + 1 :]:
        if isinstance(later, Sync) and later.inode == where and written:
            return True
        if isinstance(later, FailedSync) and later.inode == where:
            written = False
        elif where == (later.inode if isinstance(later, Write) else getattr(later, "directory", None)):
            written = True  # the same block is dirty again, and all that is in it
    return False


def disk_after(steps: Sequence[Step], choice: dict[int, int]) -> Disk:
    """Return the tree that is found."""
    names: dict[tuple[int, str], int] = {}
    contents: dict[int, bytearray | None] = {0: None}
    for index, step in enumerate(steps):
        if isinstance(step, Make):
            contents[step.inode] = None if step.is_directory else bytearray()
        _apply(step, choice.get(index, WHOLE), names, contents)
    found: Disk = {}
    _walk(0, "", names, contents, found)
    return found


def _apply(step: Step, way: int, names: dict[tuple[int, str], int], contents: dict[int, bytearray | None]) -> None:
    if way == ABSENT:
        return
    match step:
        case Make(directory, name, inode) | Link(directory, name, inode):
            names[directory, name] = inode
        case Move(directory, name, target, inode):
            names.pop((directory, name), None)
            names[directory, target] = inode
        case Drop(directory, name):
            names.pop((directory, name), None)
        case Write(inode, offset, data):
            content = contents[inode]
            assert content is not None
            taken = {WHOLE: data, HALF: data[: len(data) // 2], ZEROS: bytes(len(data))}[way]
            content.extend(bytes(max(0, offset + len(taken) - len(content))))
            content[offset : offset + len(taken)] = taken
        case Cut(inode, size):
            content = contents[inode]
            assert content is not None
            del content[size:]
            content.extend(bytes(size - len(content)))
        case Sync() | FailedSync() | Told():
            return


def _walk(
    directory: int,
    above: str,
    names: dict[tuple[int, str], int],
    contents: dict[int, bytearray | None],
    found: Disk,
) -> None:
    for (where, name), inode in names.items():
        if where == directory:
            content = contents[inode]
            found[above + name] = (inode, None if content is None else bytes(content))
            if content is None:
                _walk(inode, f"{above}{name}/", names, contents, found)


def materialise(disk: Disk, directory: Path) -> None:
    """Make it, as another boot of the machine finds it."""
    boot = str(this_process()["boot_id"]).encode()
    other = boot[::-1]
    first: dict[int, str] = {}
    directory.mkdir(mode=0o700)
    for name, (inode, content) in sorted(disk.items()):
        path = f"{directory}/{name}"
        if content is None:
            os.mkdir(path, 0o700)  # noqa: PTH102 - a disk is made thousands of times
        elif inode in first:
            os.link(first[inode], path)
        else:
            number = os.open(first.setdefault(inode, path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(number, content.replace(boot, other))
            os.close(number)


def check_state(case: Case) -> None:
    """Check what must hold of one state, after everything that was told by then."""
    before = tree_of(case.directory)
    listed, _ = listing(case.directory)
    for name, receipt in listed.items():
        _check_listed(case, before, name, receipt)
    for event in case.told("receipt", "recovered"):
        receipt = Receipt.parse(event["receipt"].encode())
        if durable(receipt):
            case.require("I2", listed.get(receipt.capture_id) == receipt, f"{receipt.capture_id} was acknowledged")
            check_evidence(case, before, receipt)
    # An end of our own is told from memory where its claim cannot be written.
    told = case.told("acknowledged") if case.kind == "power-loss-after-fault" else case.told("handed", "acknowledged")
    for event in told:
        marker = Marker.parse(before.get(f"{CAPTURES}/{event['capture_id']}/delivered", (0, 0, 0, b""))[3])
        right = marker.acknowledged if event["event"] == "acknowledged" else marker.claims
        case.require("I2", right, f"{event['capture_id']} was {event['event']}, and its marker is {marker}")
    standings = _recover(case.directory)
    after = tree_of(case.directory)
    case.require("I3", all(standing in LOST for standing in standings), f"leftovers became {standings}")
    case.require("I4", _recover(case.directory) == [], "recovered twice")
    case.require("I4", after == tree_of(case.directory), "the second recovery changed files")
    for receipt in listing(case.directory)[0].values():
        if receipt.capture.state == "complete":
            check_evidence(case, after, receipt)


def _check_listed(case: Case, tree: dict[str, Any], name: str, receipt: Receipt) -> None:
    if receipt.capture.state == "complete":
        case.require("I3", f"{CAPTURES}/{name}/receipt.json" in tree, f"{name} is complete without a receipt")
        check_evidence(case, tree, receipt)
    elif f"{CAPTURES}/{name}/receipt.json" not in tree:
        standing = (receipt.capture.state, receipt.capture.reason)
        case.require("I3", standing in LOST, f"a leftover is listed as {standing}")


def _recover(directory: Path) -> list[tuple[str, str | None]]:
    """Recover what can be, as `supervisor.recover` does; return the standings of the receipts that were made."""
    rooms = find_rooms(Unsynced(), directory)
    if rooms is None:
        return []
    try:
        barrier = Barrier(Unsynced(), rooms)
        made: list[tuple[str, str | None]] = []
        for found in find_captures(Unsynced(), rooms):
            if found.recoverable:
                receipt = recover_capture(Unsynced(), rooms, barrier, found.capture_id)
                if receipt is not None and found.state == "left":
                    made.append((receipt.capture.state, receipt.capture.reason))
        return made
    finally:
        rooms.discard()


class Model:
    """All states of one recorded run."""

    def __init__(self, room: Room) -> None:
        self.found: list[list[str]] = []
        self.tried = 0
        self._room = room
        self._seen: set[int] = set()

    def record(self, failing: int = 0) -> Any:  # noqa: ANN401 - RecordingFiles or a mutant of it
        """Play the scenario once, and return its files."""
        room = self._room
        directory = room.path / "played"
        copied(room.template, directory)
        files = RECIPES[room.mutant](directory, failing, linking=room.scenario.linking)
        stage = RecordedStage(directory, files, -1, room.mutant, room.prepared)
        asyncio.run(room.scenario.play(stage))
        shutil.rmtree(directory)
        return files

    def look(self, failing: int = 0) -> int:
        """Look at each state of a run of which one sync fails; return how many syncs there were."""
        files, draw = self.record(failing), random.Random(failing)
        durable_steps = [*files.before, *(Sync(number) for number in {0, *(_inodes(files.before))})]
        moments = range(len(files.steps) + 1)
        if failing:  # only what the world was told since can be wrong: all else is what a kill leaves
            told = [index + 1 for index, step in enumerate(files.steps) if isinstance(step, Told)]
            moments = [moment for moment in (*told, len(files.steps)) if moment > files.since]
        for moment in moments:
            steps = [*durable_steps, *files.steps[:moment]]
            events = [step.event for step in steps if isinstance(step, Told)]
            last = str(files.steps[moment - 1])[:160] if moment else "the beginning"
            for choice in lost_and_kept(steps, draw, MOST_OF_FAILED if failing else MOST):
                self._check(
                    disk_after(steps, choice), events, f"{files.failed} after {last}, {choice}", failed=failing > 0
                )
        return int(files.syncs)

    def _check(self, disk: Disk, events: list[dict[str, Any]], when: str, *, failed: bool) -> None:
        mark = hash((tuple(sorted(disk.items())), len(events)))
        if mark in self._seen or (self._room.mutant and self.found):
            return
        self._seen.add(mark)
        self.tried += 1
        directory = self._room.path / "played"  # as the receipts say
        materialise(disk, directory)
        case = Case(directory, "power-loss-after-fault" if failed else "power-loss", events)
        try:
            check_state(case)
        except Exception as error:  # noqa: BLE001 - the product must not fail on what it finds
            case.require("I4", holds=False, text=f"{type(error).__name__}: {error}")
        self.found.extend([invariant, f"{when}: {text}"] for invariant, text in case.found)
        shutil.rmtree(directory)


def _inodes(steps: Sequence[Step]) -> list[int]:
    return [step.inode for step in steps if isinstance(step, Make)]


def explore(room: Room, failing: int, directory: Path) -> dict[str, Any]:
    """Return what the states of one scenario came to, when one of its syncs fails or none does."""
    model = Model(replace(room, path=directory))
    syncs = model.look(failing)
    return {"states": model.tried, "syncs": syncs, "found": model.found}


def states(place: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return what the states of scenarios came to, by scenario: undisturbed, and with each sync failing in turn."""
    rooms = {name: prepared(name, place / name) for name in names}
    tasks = [(name, failing) for name, room in rooms.items() for failing in range(1 + Model(room).record().syncs)]
    results = spread([partial(explore, rooms[name], failing) for name, failing in tasks], place)
    came: dict[str, Any] = {name: {"states": 0, "syncs": 0, "found": []} for name in names}
    for (name, failing), result in zip(tasks, results, strict=True):
        came[name]["states"] += result["states"]
        came[name]["syncs"] += failing > 0
        came[name]["found"] += result["found"]
    return came


def hunt_states(place: Path, mutant: str, name: str) -> list[list[str]]:
    """Return what the first state of a mutant that is wrong shows."""
    found: list[list[str]] = explore(prepared(name, place / mutant, mutant), 0, place)["found"]
    return found
