"""What must hold of a conversation after a crash or fault, looked at from outside (invariants I1 to I10)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from disk import KILLS
from stage import HALVES, OUTPUTS, SECRETS

from supervisor import Receipt, StorageError, Supervisor
from supervisor.recovering import recover_with
from supervisor.sansio.redactor import UNDECIDED
from supervisor.storage import Figures, Files, LocalStorage, find_captures, look_at_allowance
from supervisor.storage.evidence import find_rooms
from supervisor.testing import FakeChildren

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from supervisor.testing import FakeChild

MARKERS: Final = (UNDECIDED, b"[REDACTED:PLANTED_TOKEN]")
"""What the undecided end of a text that was cut short becomes [C7]."""
CAPTURES: Final = "tool-outputs/captures"
RETAINED: Final = (".live", ".log", ".raw")
LOST: Final = ("partial", "supervisor-lost")

Tree = dict[str, tuple[int, int, int, bytes]]
"""Mode, links, inode and content of each entry, by its path from the conversation."""


@dataclass
class Case:
    """One run and what is known of it."""

    directory: Path
    kind: str | None
    events: list[dict[str, Any]]
    prepared: dict[str, Any] = field(default_factory=dict[str, Any])
    limit: int | None = None
    code: int | None = 0
    found: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def require(self, invariant: str, holds: object, text: str) -> None:
        """Note a violation unless it holds."""
        if not holds:
            self.found.append((invariant, text))

    def told(self, *events: str) -> list[dict[str, Any]]:
        """Return the events of these names, in order."""
        return [event for event in self.events if event["event"] in events]

    def ids(self, *events: str) -> set[str]:
        """Return the captures that they are of."""
        return {event["capture_id"] for event in self.told(*events)}


def tree_of(directory: Path | str, above: str = "") -> Tree:
    """Return everything below a directory."""
    found: Tree = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            status, content = entry.stat(follow_symlinks=False), b""
            if stat.S_ISDIR(status.st_mode):
                found |= tree_of(entry.path, f"{above}{entry.name}/")
            elif stat.S_ISREG(status.st_mode):
                with open(entry.path, "rb") as file:  # noqa: PTH123 - a tree is looked at thousands of times
                    content = file.read()
            found[above + entry.name] = (status.st_mode, status.st_nlink, status.st_ino, content)
    return found


class Unsynced(Files):
    """The real calls without the syncs: no examination takes the power away."""

    def sync_file(self, descriptor: int) -> None:
        """Leave it out."""

    def sync_directory(self, descriptor: int) -> None:
        """Leave it out."""


def listing(directory: Path) -> tuple[dict[str, Receipt], Figures | None]:
    """Return what is listed, by capture, and the allowance; without a thread, since nothing here hangs."""
    rooms = find_rooms(Files(), directory)
    if rooms is None:
        return {}, None
    try:
        found = {capture.capture_id: capture.receipt for capture in find_captures(Files(), rooms)}
        return found, look_at_allowance(Files(), rooms)
    finally:
        rooms.discard()


def durable(receipt: Receipt) -> bool:
    """Return whether a receipt says that all of it is on the device."""
    return receipt.durability is not None and receipt.durability.barrier and receipt.durability.error is None


def examine(case: Case, *, completions: bool) -> None:
    """Check all that holds once no owner of the conversation lives."""
    before = tree_of(case.directory)
    _check_entries(case, before, finished=False)
    _check_acknowledgements(case)
    listed, figures = listing(case.directory)
    _check_listing(case, before, listed)
    if figures is not None:
        _check_allowance(case, before, figures)
    _check_recovery(case, before)
    if completions:
        _check_completions(case)


def _check_entries(case: Case, tree: Tree, *, finished: bool) -> None:
    inodes = [inode for mode, _, inode, _ in tree.values() if stat.S_ISREG(mode)]
    for name, (mode, links, inode, content) in tree.items():
        if stat.S_ISDIR(mode):
            case.require("I9", stat.S_IMODE(mode) == 0o700, f"{name} has mode {mode:o}")
            continue
        # Both names of a rename by link and unlink, until recovery; nobody recovers owners, whose files prove nothing.
        once = finished or (case.kind is None and not case.prepared)
        names = 1 if once and not name.endswith(".owner") else inodes.count(inode)
        case.require("I9", stat.S_IMODE(mode) == 0o600, f"{name} has mode {mode:o}")
        case.require("I9", links == names <= 2, f"{name} has {links} links")
        case.require("I6", not any(half in content for half in HALVES), f"{name} has a part of the secret")


def _check_acknowledgements(case: Case) -> None:
    """What the caller was told: no failed sync is hidden [I8], and the command's own end is what it was [I10]."""
    failed: list[str] = []
    since: list[bool] = []
    for event in case.events:
        if event["event"] == "fault" and event["call"].startswith(("sync", "rename")):
            failed.append(event["place"])
        if event["event"] != "receipt":
            continue
        receipt = Receipt.parse(event["receipt"].encode())
        whole = receipt.capture.state == "complete" and durable(receipt)
        if failed:
            since.append(whole)
        about = [place for place in failed if receipt.capture_id in place]
        case.require("I8", not (whole and about), f"acknowledged as complete, though {about} was not synced or named")
        process = receipt.process
        assert process is not None
        ended = (process.state, process.code) == ("exited", 0) if case.code == 0 else process.state == "cancelled"
        case.require("I10", ended, f"the command ended as {process}")
    above = [place for place in failed if "/captures/" not in place]
    case.require(
        "I8", not above or not since or not all(since), f"acknowledged as complete, though {above} was not synced"
    )


def _check_listing(case: Case, tree: Tree, listed: dict[str, Receipt]) -> None:
    for capture_id in _captures(tree):
        receipt = listed.get(capture_id)
        if receipt is None:
            case.require("I3", holds=False, text=f"{capture_id} is not listed")
            continue
        if f"{CAPTURES}/{capture_id}/receipt.json" not in tree:
            standing = (receipt.capture.state, receipt.capture.reason)
            case.require("I3", standing == LOST, f"a leftover is listed as {standing}")
        check_evidence(case, tree, receipt)
    for event in case.told("receipt", "recovered"):
        told = Receipt.parse(event["receipt"].encode())
        if durable(told) and told.capture_id not in case.ids("removed"):
            there = f"{CAPTURES}/{told.capture_id}/receipt.json" in tree
            case.require("I2", there and listed.get(told.capture_id) == told, f"{told.capture_id} was acknowledged")
    for event in case.told("planted"):
        case.require("I2", tree[event["place"]][3] == b"theirs", "a file of somebody else was overwritten")
    for capture_id in case.ids("removed"):
        case.require("I2", capture_id not in listed, f"{capture_id} was removed and is there")


def check_evidence(case: Case, tree: Tree, receipt: Receipt) -> None:
    """Check that the files are what a receipt says of them, and that their text is one that was written."""
    for name, facts in receipt.streams.items():
        if facts is None or facts.reference is None:
            continue
        whole = facts.state == "complete"
        entry = tree.get(facts.reference)
        if entry is None:
            case.require("I1", not whole, f"{name} of a complete receipt is not there")
            continue
        content = entry[3]
        case.require("I1", facts.retained.end in {None, len(content)}, f"{name} is {len(content)} long: {facts}")
        if whole or facts.sha256 is not None:
            right = facts.sha256 == hashlib.sha256(content).hexdigest() and facts.retained.end == len(content)
            case.require("I1", right, f"{name} is not what was committed: {content[:80]!r}")
        if whole and case.code == 0:
            case.require("I1", content in {b"", *OUTPUTS, OUTPUTS[2][:4096]}, f"{name} is not all of it")
        case.require("I3", is_beginning(content), f"{name} holds what nobody wrote: {content[-80:]!r}")


def is_beginning(content: bytes) -> bool:
    """Return whether it is the beginning of an output, its undecided end masked."""
    cut = [content.removesuffix(marker) for marker in MARKERS]
    return any(output.startswith(text) for output in OUTPUTS for text in (content, *cut))


def _captures(tree: Tree) -> Iterable[str]:
    names = (name.removeprefix(f"{CAPTURES}/") for name in tree if name.startswith(f"{CAPTURES}/"))
    return [name for name in names if "/" not in name and not name.startswith(".")]


def _check_allowance(case: Case, tree: Tree, figures: Figures) -> None:
    inodes = {entry[2]: len(entry[3]) for name, entry in tree.items() if name.endswith(RETAINED)}
    twice = sum(len(entry[3]) for name, entry in tree.items() if name.endswith(RETAINED)) - sum(inodes.values())
    case.require("I7", figures.used - twice == sum(inodes.values()), f"{figures} of {sum(inodes.values())} bytes")
    case.require("I7", figures.reserved == 0, f"{figures}: the dead have reserved")
    case.require("I7", case.limit is None or figures.used <= case.limit, f"{figures}")


async def _recover_twice(directory: Path) -> tuple[list[Receipt], Tree, list[Receipt]]:
    recovered = await recover_with(Unsynced(), directory)
    return recovered, tree_of(directory), await recover_with(Unsynced(), directory)


def _check_recovery(case: Case, before: Tree) -> None:
    try:
        recovered, after, again = asyncio.run(_recover_twice(case.directory))
    except StorageError as error:
        case.require("I4", holds=False, text=f"recovery failed: {error}")
        return
    case.require("I4", again == [], f"recovered twice: {again}")
    case.require(
        "I4", _times_aside(after) == _times_aside(tree_of(case.directory)), "the second recovery changed files"
    )
    _check_entries(case, after, finished=True)
    for receipt in recovered:
        standing = (receipt.capture.state, receipt.capture.reason)
        case.require("I3", standing == LOST, f"a leftover became {standing}")
    for capture_id in _captures(after):
        place = f"{CAPTURES}/{capture_id}"
        case.require("I3", f"{place}/receipt.json" in after, f"{capture_id} has no receipt after recovery")
        for stream in ("stdout", "stderr"):
            if f"{place}/receipt.json" in before:
                continue  # its receipt names the files, whatever they are called
            left = before.get(f"{place}/{stream}.live") or before.get(f"{place}/{stream}.log")
            kept = after.get(f"{place}/{stream}.log")
            case.require("I3", (left and left[3]) == (kept and kept[3]), f"{stream} of a leftover was changed")
            case.require("I3", f"{place}/{stream}.live" not in after, f"{stream} is live after recovery")
    for receipt in listing(case.directory)[0].values():
        check_evidence(case, after, receipt)


def _times_aside(tree: Tree) -> Tree:
    """Return the tree without owners: those who look come and go."""
    return {name: entry for name, entry in tree.items() if "/.supervisor/" not in name}


def _check_completions(case: Case) -> None:
    offered = asyncio.run(_offered(case))
    handed, acknowledged = case.ids("handed"), case.ids("acknowledged")
    killed = case.kind in KILLS
    for capture_id in acknowledged:
        case.require("I2", capture_id not in offered, f"{capture_id} was acknowledged and is offered again")
    # Without a launch record, which only a fault can have kept from the disk, nobody knows that an end is owed.
    owed = {path.parent.name for path in (case.directory / CAPTURES).glob("*/launch.json")}
    for capture_id in (handed - case.ids("acknowledging")) & owed:
        again = offered.get(capture_id)
        case.require("I2", again if killed else again is not None, f"{capture_id} is to be redelivered: {again}")
    ended = {event["capture_id"] for event in case.told("receipt") if durable(Receipt.parse(event["receipt"].encode()))}
    ended.update(case.prepared.get("unclaimed", ()))
    for capture_id in (ended - handed) & owed:
        case.require("I2", capture_id in offered, f"{capture_id} was never offered and is lost")
    claimed = case.prepared.get("claimed")
    for capture_id, redelivered in [(event["capture_id"], event["redelivered"]) for event in case.told("handed")]:
        case.require("I2", redelivered == (capture_id == claimed), f"{capture_id}: redelivered is {redelivered}")
    case.require("I2", claimed is None or claimed in handed or offered.get(claimed), "the dead one's claim stands")


async def _offered(case: Case) -> dict[str, bool]:
    """Return which completions a new supervisor offers, and whether it calls them redelivered."""
    children = FakeChildren()
    found: dict[str, bool] = {}

    async def script(child: FakeChild) -> None:
        child.exit(0)

    children.expect(script=script)
    storage = LocalStorage(Unsynced())
    async with Supervisor(case.directory, secrets=SECRETS, spawn=children.spawn, storage=storage) as supervisor:
        last = await supervisor.start(["last"], capture="none")
        async for completion in supervisor.completions():
            capture_id = completion.receipt.capture_id
            if capture_id == last.capture_id:
                break
            case.require("I2", capture_id not in found, f"{capture_id} is offered twice")
            found[capture_id] = completion.redelivered
    return found
