"""Starts a process tree of each shape, ends it by `terminate`, looks for itself what is left, and tells all of it.

Arguments: the module whose `run` is the loop's; the number of the user to become, or -1; `signals`, or `cgroup` to use
one from the first KILL on; and, in JSON, for each shape: the command, how many lines it says when it is
under way, how many processes it has then, how many of them are stopped. Output: JSON, for each shape.

In a command USER stands for a user's number, LIMIT for how many processes and threads that one may have, and PYTHON
for an interpreter that the user may run; the variable TRACING has the text of tests/programs/tracing.py for it.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import json
import os
import shutil
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supervisor import Job, Supervisor
from supervisor.process import cgroup, proc, tree

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE = 0.3
PATIENCE = 30.0
MORE = 24
"""Processes that a fork bomb can have."""
MARK = "MATRIX_CELL"
PR_SET_DUMPABLE = 4
enclosed = set[str]()
TRACING = Path(__file__).with_name("tracing.py").read_text()


def marked(mark: str) -> list[str]:
    """Return the states of the live processes that were started with the mark (proc(5))."""
    needle, states = f"{MARK}={mark}\0".encode(), list[str]()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (process / "environ").read_bytes():
                states.append((process / "stat").read_text().rpartition(")")[2].split()[0])
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
    return [state for state in states if state not in "ZX"]


async def under_way(job: Job, shape: dict[str, Any], mark: str) -> None:
    """Return when it is."""
    lines = 0
    async for shown in job.live("stdout"):
        lines += shown.text.count(b"ready\n")
        if lines >= shape["lines"]:
            break
    while True:
        states = marked(mark)
        if len(states) >= shape["processes"] and sum(state in "Tt" for state in states) >= shape["stopped"]:
            return
        await asyncio.sleep(0.002)  # only /proc knows


def places() -> dict[str, str]:
    """Return what stands in commands for what."""
    user = os.geteuid() or 100_000 + os.getpid()
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # RLIMIT_NPROC counts all threads of the user (setrlimit(2))
            count += len(list((process / "task").iterdir())) if process.stat().st_uid == user else 0
    python = sys.executable if os.access(sys.executable, os.X_OK) else shutil.which("python3", path="/usr/bin:/bin")
    return {"USER": str(user), "LIMIT": str(count + MORE), "PYTHON": python or ""}


async def cell(supervisor: Supervisor, shape: dict[str, Any]) -> dict[str, Any]:
    """Return what became of a shape."""
    mark = uuid.uuid4().hex
    words = places()
    if any(name in part and not word for name, word in words.items() for part in shape["command"]):
        return {"absent": "no interpreter that this user may run"}
    command = shape["command"]
    for name, word in words.items():
        command = [part.replace(name, word) for part in command]
    env = {**os.environ, MARK: mark, "TRACING": TRACING}
    job = await supervisor.start(command, env=env, kill_after=GRACE, window_bytes=4096)
    try:
        async with asyncio.timeout(PATIENCE):
            await under_way(job, shape, mark)
    finally:
        began = time.monotonic()
        receipt = await job.terminate()
    seconds = time.monotonic() - began
    return {
        "receipt": json.loads(receipt.to_json()),
        "left": marked(mark),
        "seconds": seconds,
        "enclosed": len(enclosed),
    }


def nothing(*_: object) -> None:
    """Make no cgroup."""


def counted(name: str, root: Path = proc.ROOT, *, make: Callable[..., Any] = cgroup.make) -> Any:  # noqa: ANN401
    """Make a cgroup, and remember for which command."""
    enclosure = make(name, root)
    if enclosure is not None:
        enclosed.add(name)
    return enclosure


async def main(shapes: dict[str, Any]) -> None:
    """Run all at once but the last, which may take every process there is."""
    *most, last = shapes
    async with Supervisor() as supervisor:
        told = await asyncio.gather(*(cell(supervisor, shapes[name]) for name in most))
        told.append(await cell(supervisor, shapes[last]))
    print(json.dumps(dict(zip(shapes, told, strict=True))))


loop = importlib.import_module(sys.argv[1])
tree.PLAIN_ROUNDS = 0  # type: ignore[misc]
cgroup.make = counted if sys.argv[3] == "cgroup" else nothing
if sys.argv[2] != "-1":
    # After the imports: the interpreter's own files may be closed to that user.
    os.chdir("/")
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
    # A program that the user had started himself would have this.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
loop.run(main(json.loads(sys.argv[4])))
