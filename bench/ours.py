"""One run of ours, in an interpreter of its own.

The interpreter's start, the imports, the loop's and the supervisor's making (which opens the directory) are over when
the clock starts; nothing else is. The child's spawn, the first threads, the search engine's building, the capture's
files, the barrier and the receipt are all inside, as a shell's fork and open are inside a peer's time. A process for
each run, because a second run in one would find all of that warm, and the loop's and the allocator's state beside it.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from supervisor import Limits, Supervisor
from supervisor.matching import engine_name
from supervisor.sansio.needles import NeedleSet, credential_values

from .alone import factory_of
from .harness import WrongResultError, check_file

if TYPE_CHECKING:
    from .producer import Text

Loop = Literal["asyncio", "uvloop"]
Durability = Literal["none", "barrier"]
LOOPS: Final[tuple[Loop, ...]] = ("asyncio", "uvloop")
DURABILITIES: Final[tuple[Durability, ...]] = ("none", "barrier")
ROOT: Final = Path(__file__).parent.parent
SECRETS: Final = {
    "DEPLOY_TOKEN": "dpl_7Qm2xV9sKc4TzR1wYb8N",
    "DATABASE_PASSWORD": "correct horse/battery+staple",
    "SIGNING_KEY": "b64:3q2+7wAAEjRWeJq83vAPHi08S1pp",
}
"""Three known values, invented. The output holds none of them: it is compared with what the child wrote."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run, and on what."""

    argv: tuple[str, ...]
    loop: Loop
    durability: Durability
    redaction: Literal["default", "none"] = "default"
    digest: bool = True
    limited: bool = False
    """Keep what is kept by default, instead of everything."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run came to."""

    seconds: float
    """From the call of `start` to the receipt in hand, barrier and publication included."""
    path: str
    size: int
    sha256: str | None
    """By our own count, which the bench does not believe: it hashes the file. None where no digest was asked for."""
    processor_seconds: float
    """Of our own process, all threads, user and system."""
    growth: int
    """Bytes by which the peak of our resident memory grew."""

    @property
    def file(self) -> Path:
        """The text's file."""
        return Path(self.path)


def run(order: Order, directory: Path) -> Outcome:
    """Carry out `order` in a fresh interpreter, in this empty directory.

    Raises: WrongResultError if anything but a complete capture came of it; stderr says what.
    """
    # A credential of whoever runs the bench would be searched for too, and cost time that others do not see.
    environment = {name: value for name, value in os.environ.items() if name not in credential_values(os.environ)}
    command = [sys.executable, "-m", f"{__package__}.ours", json.dumps([asdict(order), str(directory)])]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise WrongResultError(f"ours on {order.loop}, durability {order.durability}, gave no complete capture")
    return Outcome(**json.loads(done.stdout))


def checked(order: Order, text: Text, directory: Path) -> Outcome:
    """Carry out `order`; its receipt must speak of this text. Raises: WrongResultError."""
    outcome = run(order, directory)
    if (outcome.size, outcome.sha256 or text.sha256) != (text.size, text.sha256):
        raise WrongResultError(f"the receipt speaks of {outcome.size} bytes, sha256 {outcome.sha256}")
    return outcome


def run_in(directory: Path, order: Order, text: Text | None) -> Outcome:
    """Carry out `order` in a directory that is made for it and removed; its file must be this text, if one is given.

    Raises: WrongResultError.
    """
    directory.mkdir(mode=0o700)
    try:
        if text is None:
            return run(order, directory)
        outcome = checked(order, text, directory)
        check_file(outcome.file, text.size, text.sha256)
        return outcome
    finally:
        shutil.rmtree(directory)


def engine_facts() -> dict[str, str]:
    """Return what the output is searched with and for."""
    needles = NeedleSet.build(SECRETS)
    return {
        "engine": engine_name(),
        "known values": f"{len(SECRETS)} ({len(needles.needles)} needles with their encodings)",
    }


async def capture(order: Order, directory: Path) -> Outcome:
    """Run the command with nothing limited, and return the outcome of a complete capture."""
    digest: Literal["sha256"] | None = "sha256" if order.digest else None
    limits = Limits(job_bytes=math.inf, conversation_bytes=math.inf, stall_timeout=math.inf, digest=digest)
    if order.limited:
        limits = Limits(digest=digest)
    options: dict[str, Any] = {"redaction": order.redaction, "durability": order.durability}
    if order.redaction == "default":
        options["secrets"] = SECRETS
    async with Supervisor(directory, limits=limits, **options) as supervisor:
        peak, processor, began = _peak(), time.process_time(), time.perf_counter()
        job = await supervisor.start(order.argv)
        receipt = await job.wait()
        seconds = time.perf_counter() - began
        processor = time.process_time() - processor
        growth = _peak() - peak
    stream = receipt.check().streams["stdout"]
    assert stream is not None
    assert receipt.durability is not None
    assert receipt.capture.state == ("partial" if order.limited else "complete"), receipt.capture
    assert receipt.durability.barrier is (order.durability == "barrier"), receipt.durability
    assert stream.policy == ("none" if order.redaction == "none" else "default/2"), stream.policy
    assert stream.path is not None
    assert stream.committed is not None
    assert (stream.sha256 is not None) is order.digest
    return Outcome(seconds, stream.path, stream.committed, stream.sha256, processor, growth)


def _peak() -> int:
    """Return the most resident memory that this process has had, in bytes; 0 where the system does not tell.

    Not `ru_maxrss`: that begins with the peak of whoever started us (proc_pid_status(5), getrusage(2)).
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) * 1024


def main() -> None:
    """Do what the first argument says and print the outcome, both JSON."""
    order, directory = json.loads(sys.argv[1])
    order["argv"] = tuple(order["argv"])
    with asyncio.Runner(loop_factory=factory_of(order["loop"])) as runner:
        outcome = runner.run(capture(Order(**order), Path(directory)))
    print(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
