"""Disks that are really full, really lose their power, and really stop: made and mounted here, which needs root.

Arguments: `full`, `power-loss`, `every-power-loss` or `freeze`, and an empty directory for the mount points.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from disk import CrashingFiles
from examine import CAPTURES, Case, examine
from scenarios import SCENARIOS
from states import check_state
from sweep import forked, journal_of, play, staged

from supervisor import Limits, Supervisor
from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

ROOMS: Final = (*(f"size={kib}k" for kib in range(4, 124, 8)), *(f"nr_inodes={count}" for count in range(2, 14)))
"""From no room at all to room for everything."""
SHUT_DOWN: Final = 0x8004587D
"""EXT4_IOC_SHUTDOWN (linux/ext4.h)."""
WITHOUT_THE_LOG: Final = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: what is not in the journal yet is lost, as the power is gone."""
SIZE: Final = 16 * 1024 * 1024
PATIENCE: Final = 15.0
"""Seconds after which a host that a frozen disk keeps from ending is let go."""


@contextmanager
def mounted(where: Path, *options: str) -> Generator[Path]:
    """Lend a conversation on a file system that is mounted for as long."""
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", *options, str(where)], check=True, capture_output=True)
    try:
        conversation = where / "conversation"
        if not conversation.exists():
            conversation.mkdir(mode=0o700)
            os.sync()
        yield conversation
    finally:
        subprocess.run(["umount", str(where)], check=True)


def full(place: Path) -> dict[str, Any]:
    """Live a life in each of the rooms, and examine it."""
    found: list[list[str]] = []
    states: dict[str, str | None] = {}
    for room in ROOMS:
        options = room if room.startswith("size") else f"size=1m,{room}"
        with mounted(place / "disk", "-t", "tmpfs", "-o", f"mode=0700,{options}", "spoolvisor-crash") as conversation:
            stage = staged(place / "journal", Files(), "", {})
            stage.directory = conversation
            play(SCENARIOS["speech"], stage)
            os.close(stage.journal)
            case = Case(conversation, "ENOSPC", journal_of(place / "journal"))
            examine(case, completions=False)
            found += [[invariant, f"{room}: {text}"] for invariant, text in case.found]
            receipt = json.loads(case.told("receipt")[0]["receipt"])
            states[room] = receipt["capture"]["reason"] or receipt["capture"]["state"]
    return {"rooms": len(ROOMS), "states": states, "found": found}


class Unplugged(CrashingFiles):
    """Calls at one of which the file system is shut down without its log, and then the process ends."""

    def __init__(self, point: int, disk: int) -> None:
        super().__init__("kill-before", point, syncing=True)
        self._disk = disk

    def _die(self) -> None:
        fcntl.ioctl(self._disk, SHUT_DOWN, struct.pack("I", WITHOUT_THE_LOG))
        super()._die()


def fresh(place: Path) -> Path:
    """Return the image of an empty ext4."""
    image = place / "image"
    image.write_bytes(b"")
    os.truncate(image, SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
    return image


def lose_power(place: Path, point: int) -> tuple[Case, bool]:
    """Live a life up to a point, mount the disk again, and check what is there; also, whether it came to the point."""
    image, journal = fresh(place), place / "journal"

    def work() -> None:
        stage = staged(journal, Unplugged(point, os.open(place / "disk", os.O_RDONLY)), "", {})
        stage.directory = place / "disk" / "conversation"
        play(SCENARIOS["life"], stage)

    with mounted(place / "disk", "-o", "loop", str(image)):
        _, status = os.waitpid(forked(work, place / "errors"), 0)
    errors = place / "errors"
    assert not errors.exists(), errors.read_text()
    with mounted(place / "disk", "-o", "loop", str(image)) as conversation:
        case = Case(conversation, "power-loss", journal_of(journal))
        check_state(case)
    return case, os.WIFSIGNALED(status)


def power_loss(place: Path, step: int) -> dict[str, Any]:
    """Lose the power before every `step`-th call that changes the disk."""
    found: list[list[str]] = []
    points = 0
    for point in itertools.count(1, step):
        case, struck = lose_power(place, point)
        found += [[invariant, f"before call {point}: {text}"] for invariant, text in case.found]
        if not struck:
            break
        points += 1
    return {"points": points, "found": found}


async def host(conversation: Path) -> None:
    """Run a command, saying when its text is there, and print what came of it."""
    async with Supervisor(conversation, limits=Limits(stall_timeout=0.3)) as supervisor:
        job = await supervisor.start("echo begin; read line; seq 20000; exit 7", shell=True, stdin="pipe")
        await anext(job.follow())
        print("there", flush=True)  # noqa: T201 - a program
        await asyncio.to_thread(sys.stdin.readline)
        await job.write(b"go on\n")
        print((await job.wait()).to_json().decode(), flush=True)  # noqa: T201 - a program


def freeze(place: Path) -> dict[str, Any]:
    """Freeze the disk under a job at work, see its host end as far as the kernel lets it, and thaw the disk."""
    with mounted(place / "disk", "-o", "loop", str(fresh(place))) as conversation:
        command = [sys.executable, "-c", HOST.format(sys.path), str(conversation)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "there\n"
            subprocess.run(["fsfreeze", "--freeze", str(place / "disk")], check=True)
            thaw = threading.Timer(PATIENCE, subprocess.run, (["fsfreeze", "--unfreeze", str(place / "disk")],))
            thaw.start()  # a host that hangs is let go, and found out
            try:
                process.stdin.write("go on\n")
                process.stdin.close()
                receipt = json.loads(process.stdout.readline())
                ended = interpreter_ended(process.pid)
            finally:
                thaw.cancel()
                subprocess.run(["fsfreeze", "--unfreeze", str(place / "disk")], check=False, capture_output=True)
            code = process.wait()
        case = Case(conversation, "freeze", [])
        check_state(case)
        (path,) = (conversation / CAPTURES).glob("*/stdout.*")
        begins = path.read_bytes().startswith(b"begin\n")
    return {"ended": ended, "code": code, "receipt": receipt, "begins": begins, "found": case.found}


def interpreter_ended(pid: int) -> bool:
    """Return whether the main thread ends in time. The kernel keeps a process while a thread is in a frozen disk."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


HOST: Final = (
    "import asyncio, sys; sys.path[:] = {!r}; import pathlib, real; asyncio.run(real.host(pathlib.Path(sys.argv[1])))"
)

if __name__ == "__main__":
    os.umask(0)
    actions: dict[str, Callable[[Path], dict[str, Any]]] = {
        "full": full,
        "power-loss": partial(power_loss, step=3),
        "every-power-loss": partial(power_loss, step=1),
    }
    actions["freeze"] = freeze
    print(json.dumps(actions[sys.argv[1]](Path(sys.argv[2]))))  # noqa: T201 - a program
