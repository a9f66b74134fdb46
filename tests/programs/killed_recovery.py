"""Recovers (or removes from) copies of a conversation, killed before each of its system calls in turn, then once more.

Arguments: `recover` or `remove`, the conversation, an empty directory for the copies, capture ids to be removed.
Output: the number of calls, then what two undisturbed runs and each disturbed one ended at that differs from the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from supervisor import Receipt, UnknownCapture, list_captures
from supervisor.recovering import recover_with, remove_with
from supervisor.storage import Files

action, original, room, capture_ids = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
SAME = str(room / "copy-0000")


class KillingFiles(Files):
    """Files that kill the process before call number `fatal`; a write is half done then. Syncs are left out."""

    def __init__(self, fatal: int | None) -> None:
        self._fatal = fatal
        self._calls = 0
        self._count_lock = threading.Lock()

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Count each public method of `Files`."""
        found = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(Files, name):
            return found

        def call(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - whatever the call takes
            with self._count_lock:
                self._calls += 1
                fatal = self._calls == self._fatal
            if fatal:
                if name == "write":
                    os.write(args[0], bytes(args[1][0])[: len(args[1][0]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return None if name.startswith("sync") else found(*args, **kwargs)

        return call

    @property
    def _number(self) -> int:
        return self._calls


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


def run(number: int, fatal: int | None) -> tuple[list[object], int | None]:
    """Act on a copy, killed at a call; then act again; return what came of it, and the signal that ended the first."""
    directory = room / f"copy-{number:04}"
    subprocess.run(["cp", "-a", original, directory], check=True)
    child = os.fork()
    if child == 0:
        files = KillingFiles(fatal)
        asyncio.run(act(files, directory))
        (room / "calls").write_text(str(files._number))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    asyncio.run(act(KillingFiles(None), directory))
    state = state_of(directory)
    shutil.rmtree(directory)
    return state, os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


expected, _ = run(0, None)
calls = int((room / "calls").read_text())
differing = []
for fatal in range(1, calls + 1):
    state, ended_by = run(fatal, fatal)
    assert ended_by == signal.SIGKILL, (fatal, ended_by)
    if state != expected:
        differing.append((fatal, state))
print(json.dumps({"calls": calls, "expected": expected, "differing": differing}))
