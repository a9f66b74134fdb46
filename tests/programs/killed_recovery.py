"""Recovers (or removes from) copies of a conversation, killed before each of its system calls in turn, then once more.

Arguments: `recover` or `remove`, the conversation, an empty directory for the copies, capture ids to be removed.
Output: the number of calls, then what two undisturbed runs and each disturbed one ended at that differs from the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from killing_files import KillingFiles

from supervisor import Receipt, UnknownCapture, list_captures
from supervisor.recovering import recover_with, remove_with

if TYPE_CHECKING:
    from supervisor.storage import Files

WORKERS: Final = 4
"""Runs at a time: each mostly waits, for a process to end or a thread to take its turn."""

action, original, room, capture_ids = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
SAME = str(room / "copy-0000")


async def act(files: Files, directory: Path) -> None:
    """Do what is asked for; what was removed before the kill is not there any more."""
    if action == "recover":
        await recover_with(files, directory)
        return
    for capture_id in capture_ids:
        with contextlib.suppress(UnknownCapture):
            await remove_with(files, directory, [capture_id])


def state_of(directory: Path) -> list[object]:
    """Return all receipts and files, as if the copy were the first one."""
    receipts: list[Receipt] = asyncio.run(list_captures(directory))
    files = sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    return [json.loads(receipt.to_json().replace(str(directory).encode(), SAME.encode())) for receipt in receipts] + [
        files
    ]


def copied(source: Path, target: Path) -> None:
    """Copy a tree, with its modes and second names, as `cp -a` does, which would be a process for each copy."""
    seen: dict[int, Path] = {}
    shutil.copytree(source, target, copy_function=lambda one, other: linked_or_copied(Path(one), Path(other), seen))


def linked_or_copied(source: Path, target: Path, seen: dict[int, Path]) -> None:
    """Copy a file, or give its copy another name."""
    inode = source.stat().st_ino
    if inode in seen:
        target.hardlink_to(seen[inode])
    else:
        shutil.copy2(source, seen.setdefault(inode, target))


def run(number: int, fatal: int | None) -> tuple[list[object], int | None]:
    """Act on a copy, killed at a call; then act again; return what came of it, and the signal that ended the first."""
    directory = room / f"copy-{number:04}"
    copied(original, directory)
    child = os.fork()
    if child == 0:
        files = KillingFiles(fatal)
        asyncio.run(act(files, directory))
        (room / "calls").write_text(str(files.number))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    asyncio.run(act(KillingFiles(None), directory))
    state = state_of(directory)
    shutil.rmtree(directory)
    return state, os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


gc.freeze()  # each child is a fork: what is there already need not be gone through in it
expected, _ = run(0, None)
calls = int((room / "calls").read_text())
numbers = range(1, calls + 1)
with ProcessPoolExecutor(WORKERS, get_context("fork")) as workers:
    runs = list(workers.map(run, numbers, numbers))
assert {ended_by for _, ended_by in runs} == {signal.SIGKILL}
differing = [(fatal, state) for fatal, (state, _) in zip(numbers, runs, strict=True) if state != expected]
print(json.dumps({"calls": calls, "expected": expected, "differing": differing}))
