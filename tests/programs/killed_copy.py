"""Hands captures over, killed before each of its system calls that change anything, then once more.

Arguments: `export` or `share`, the conversation, an empty directory for the copies, capture ids.
Output: the number of calls, how many kills left no copy of the first capture and how many left one, and what was wrong.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from killing_files import KillingFiles

from supervisor import Limits, Receipt, list_captures
from supervisor.handing import hand_over

if TYPE_CHECKING:
    from supervisor.storage import Files

WORKERS: Final = 4
"""Runs at a time: each mostly waits, for a process to end or a thread to take its turn."""

LOOKS: Final = frozenset({"names", "open_directory", "open_existing", "read", "status", "status_at"})
"""Calls before which a kill is no other than before the next one."""

action, source, room, capture_ids = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]


def act(files: Files, destination: Path) -> None:
    """Hand the captures over."""
    asyncio.run(hand_over(files, source, capture_ids, destination, limits=Limits(), export=action == "export"))


def contents(directory: Path) -> dict[str, str]:
    """Return the digests of all files of captures but the receipts, which name their own directory."""
    captures = directory / "tool-outputs" / "captures"
    found = (path for path in captures.rglob("*") if path.is_file() and path.name != "receipt.json")
    return {str(path.relative_to(captures)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def wrong_with(directory: Path, originals: dict[str, Receipt]) -> list[str]:
    """Return what the listed captures of a destination claim that is not so."""
    wrong = []
    for receipt in asyncio.run(list_captures(directory)) if directory.exists() else []:
        original = originals[receipt.capture_id]
        if receipt.capture != original.capture:
            wrong.append(f"{receipt.capture_id} is {receipt.capture}")
        for name, facts in receipt.streams.items():
            if facts is None:
                continue
            text = Path(facts.path).read_bytes() if facts.path else b""
            if hashlib.sha256(text).hexdigest() != facts.sha256 or len(text) != facts.retained.end:
                wrong.append(f"the {name} of {receipt.capture_id} is not what its receipt says")
    return wrong


def run(fatal: int) -> tuple[int, list[str]]:
    """Hand over, killed at a call; then once more. Return how many copies the kill left, and what was wrong."""
    destination = room / f"copy-{fatal:04}"
    if action == "share":
        destination.mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        act(KillingFiles(fatal, uncounted=LOOKS), destination)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    wrong = [] if os.WIFSIGNALED(status) else ["it was not killed"]
    wrong += wrong_with(destination, originals)
    left = len(asyncio.run(list_captures(destination))) if destination.exists() else 0
    if contents(source) != before:
        wrong.append("the source was changed")
    act(KillingFiles(None, uncounted=LOOKS), destination)
    wrong += wrong_with(destination, originals)
    if contents(destination) != after:
        wrong.append("the second run ended at something else")
    shutil.rmtree(destination)
    return left, wrong


gc.freeze()  # each child is a fork: what is there already need not be gone through in it
before = contents(source)
originals = {receipt.capture_id: receipt for receipt in asyncio.run(list_captures(source))}
first = room / "first"
if action == "share":
    first.mkdir(mode=0o700)
counting = KillingFiles(None, uncounted=LOOKS)
act(counting, first)
after = contents(first)

numbers = range(1, counting.number + 1)
with ProcessPoolExecutor(WORKERS, get_context("fork")) as workers:
    runs = list(workers.map(run, numbers))
print(
    json.dumps(
        {
            "calls": len(numbers),
            "without": sum(left == 0 for left, _ in runs),
            "with_all": sum(left == len(capture_ids) for left, _ in runs),
            "wrong": [
                (number, sentence) for number, (_, wrong) in zip(numbers, runs, strict=True) for sentence in wrong
            ],
        }
    )
)
