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
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from supervisor import Limits, Supervisor
from supervisor.matching import engine_name
from supervisor.sansio.needles import NeedleSet, credential_values

from .harness import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run came to."""

    seconds: float
    """From the call of `start` to the receipt in hand, barrier and publication included."""
    path: str
    size: int
    sha256: str
    """By our own count, which the bench does not believe: it hashes the file."""


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


def engine_facts() -> dict[str, str]:
    """Return what the output is searched with and for."""
    needles = NeedleSet.build(SECRETS)
    return {
        "engine": engine_name(),
        "known values": f"{len(SECRETS)} ({len(needles.needles)} needles with their encodings)",
    }


async def capture(order: Order, directory: Path) -> Outcome:
    """Run the command with nothing limited, and return the outcome of a complete capture."""
    limits = Limits(job_bytes=math.inf, conversation_bytes=math.inf, stall_timeout=math.inf)
    async with Supervisor(directory, limits=limits, secrets=SECRETS, durability=order.durability) as supervisor:
        began = time.perf_counter()
        job = await supervisor.start(order.argv)
        receipt = await job.wait()
        seconds = time.perf_counter() - began
    stream = receipt.check().streams["stdout"]
    assert stream is not None
    assert receipt.durability is not None
    assert receipt.capture.state == "complete", receipt.capture
    assert receipt.durability.barrier is (order.durability == "barrier"), receipt.durability
    assert stream.policy == "default/2", stream.policy
    assert stream.path is not None
    assert stream.committed is not None
    assert stream.sha256 is not None
    return Outcome(seconds, stream.path, stream.committed, stream.sha256)


def main() -> None:
    """Do what the first argument says and print the outcome, both JSON."""
    order, directory = json.loads(sys.argv[1])
    order["argv"] = tuple(order["argv"])
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    if order["loop"] == "uvloop":
        import uvloop  # noqa: PLC0415 -- a run on asyncio's own loop does without it

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        outcome = runner.run(capture(Order(**order), Path(directory)))
    print(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
