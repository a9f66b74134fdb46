"""The chaos run: `main.py [--seconds 3] [--seed N] [--loop asyncio|uvloop] [--rounds FROM[:TO]]`.

It prints its seed first, each violation with seed and round, and at the end one line of JSON with what was done. The
seed decides all that is planned (`plans.py`), so that a round can be played again: `--seed N --rounds R`. The exit code
is 1 if anything was violated.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plans import plan
from receipts import content_of, hidden, on_disk, settled
from rounds import MARK, Round

from supervisor import Supervisor, list_captures, recover
from supervisor.testing import assert_no_leaks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from supervisor import Receipt

CLEARANCE: Final = 10.0
"""Seconds for what was killed to be gone."""


class Run:
    """Rounds, and what was found."""

    def __init__(self, seed: int) -> None:
        self.seed: Final = seed
        self.counts: Final[Counter[str]] = Counter()
        self.found = 0

    def tell(self, number: int, text: str) -> None:
        """Tell a violation, and how it can be sought again."""
        self.found += 1
        print(f"violation: --seed {self.seed} --rounds {number}: {text}", flush=True)  # noqa: T201 - a program

    async def round(self, number: int) -> None:
        """Play a round and look at what it left."""
        planned = plan(self.seed, number)
        directory = Path(tempfile.mkdtemp(prefix="chaos-"))
        played = Round(planned, directory, uuid.uuid4().hex)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: played.wrong.append(f"the loop was told {context}"))
        try:
            async with assert_no_leaks(clearance=CLEARANCE):
                await played.play()
            await self._look(played)
        except Exception:  # noqa: BLE001 - any is a finding
            played.wrong.append(traceback.format_exc())
        finally:
            await end_all(played.mark)
            shutil.rmtree(directory)
        for text in played.wrong:
            self.tell(number, text)
        self.counts.update(played.counts)
        self.counts["rounds"] += 1

    async def _look(self, played: Round) -> None:
        slow = played.slow
        played.wrong.extend(hidden(played.directory))
        plans = {job.number: job for job in played.plan.jobs}
        closing = played.plan.closes_at is not None
        for number, receipt in played.receipts.items():
            touched = number in played.touched
            job = plans[number]
            wrong = [
                *settled(receipt, job, played.plan, touched=touched, closing=closing, slow=slow),
                *on_disk(receipt, job, played.directory, touched=touched),
            ]
            played.wrong.extend(f"job {number} ({job.shape.name}, {receipt.capture_id}): {text}" for text in wrong)
            self._count(receipt)
        played.wrong.extend(_misread(played))
        played.wrong.extend(await survivors(played))
        if played.plan.directory:
            played.wrong.extend(await _told(played))
            played.wrong.extend(await _leftovers(played))

    def _count(self, receipt: Receipt) -> None:
        assert receipt.process is not None
        self.counts["jobs"] += 1
        self.counts[f"process {receipt.process.state} {receipt.process.reason or ''}".rstrip()] += 1
        self.counts[f"capture {receipt.capture.state} {receipt.capture.reason or ''}".rstrip()] += 1


def _misread(played: Round) -> Iterator[str]:
    """Yield where a follower was given anything but the text."""
    for number, stream, text in played.followed:
        facts = played.receipts[number].streams.get(stream)  # type: ignore[call-overload]
        if facts is None or facts.reference is None or facts.retained.end is None or facts.access == "unavailable":
            continue
        content = content_of(played.directory / facts.reference) or b""
        # The rest of a character that a full disk has cut is in no page.
        if content.decode(errors="ignore") != text:
            yield f"job {number}: a follower of {stream} had {len(text)} characters of {len(content)} bytes"


def marked(mark: str) -> dict[int, str]:
    """Return the living processes that a round's jobs have started, and which job's they are."""
    needle = f"{MARK}={mark}-".encode()
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (process / "environ").read_bytes()
            if needle in environment:
                found[int(process.name)] = environment.partition(needle)[2].partition(b"\0")[0].decode()
    return found


async def survivors(played: Round) -> list[str]:
    """End the survivors that receipts name; return who else is there."""
    for receipt in played.receipts.values():
        assert receipt.process is not None
        for pid in receipt.process.survivors or ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + CLEARANCE
    unnamed = {str(number) for number, receipt in played.receipts.items() if receipt.process.survivors is None}  # type: ignore[union-attr]
    while left := {pid: job for pid, job in marked(played.mark).items() if job not in unnamed}:
        if time.monotonic() > deadline:
            facts = {str(number): receipt.process for number, receipt in played.receipts.items()}
            return [
                f"process {pid} of job {job} lives, and no receipt names it: {facts.get(job)}"
                for pid, job in left.items()
            ]
        await asyncio.sleep(0.01)
    return []


async def end_all(mark: str) -> None:
    """Kill whatever a round has left."""
    while left := marked(mark):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.01)


async def _told(played: Round) -> list[str]:
    """Return what is wrong with the completions that were told and those that the next supervisor tells [E5]."""
    wrong = [f"{name} was told twice" for name, count in Counter(played.told).items() if count > 1]
    later: list[str] = []
    async with Supervisor(played.directory, durability="none") as supervisor:
        last = await supervisor.start(["true"], capture="none")
        async for completion in supervisor.completions():
            if completion.receipt.capture_id == last.capture_id:
                break
            later.append(completion.receipt.capture_id)
            await completion.acknowledge()
    wrong += [f"{name} was told again after it was acknowledged" for name in played.acknowledged & set(later)]
    wrong += [f"{name} was told twice to the next" for name, count in Counter(later).items() if count > 1]
    for number, job in played.jobs.items():
        receipt = played.receipts[number]
        launched = (played.directory / "tool-outputs" / "captures" / job.capture_id / "launch.json").exists()
        owed = launched and receipt.durability is not None and receipt.durability.error is None
        known = job.capture_id in later or job.capture_id in played.told
        if owed and not known:
            wrong.append(f"the end of job {number} ({job.capture_id}) was never told")
    return wrong


async def _leftovers(played: Round) -> list[str]:
    """Return what is listed otherwise than it was told, and what is left over without a reason."""
    failed = {
        receipt.capture_id
        for receipt in played.receipts.values()
        if receipt.durability is not None and receipt.durability.error is not None
    }
    listed = {receipt.capture_id: receipt for receipt in await list_captures(played.directory)}
    wrong = [
        f"job {number} is listed otherwise"
        for number, receipt in played.receipts.items()
        if receipt.capture_id in listed and receipt.capture_id not in failed and listed[receipt.capture_id] != receipt
    ]
    recovered = {receipt.capture_id for receipt in await recover(played.directory)}
    left = recovered - failed
    if any(fault.name.startswith("sync-") for fault in played.plan.faults) or played.slow:
        # Nobody has the receipt of a call that was cancelled before its command was spawned, and so its error.
        left &= {receipt.capture_id for receipt in played.receipts.values()}
    return [*wrong, *(f"{name} is left over" for name in left)]


async def play(run: Run, wanted: range | None, seconds: float) -> None:
    """Play the wanted rounds, or as many as begin within so many seconds."""
    began, number = time.monotonic(), 0
    while number < 1 if wanted is None and seconds <= 0 else _more(wanted, number, began + seconds):
        await run.round(number if wanted is None else wanted[number])
        number += 1


def _more(wanted: range | None, number: int, deadline: float) -> bool:
    return number < len(wanted) if wanted is not None else time.monotonic() < deadline


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio")
    parser.add_argument("--rounds", default=None, help="one, or FROM:TO")
    given = parser.parse_args()
    seed: int = secrets.randbits(32) if given.seed is None else given.seed
    print(f"chaos with --seed {seed} --loop {given.loop}", flush=True)  # noqa: T201 - a program
    wanted: range | None = None
    if given.rounds is not None:
        first, _, end = given.rounds.partition(":")
        wanted = range(int(first), int(end) if end else int(first) + 1)
    run = Run(seed)
    loop: Any = importlib.import_module(given.loop)
    began = time.monotonic()
    loop.run(play(run, wanted, given.seconds))
    figures = {"seed": seed, "loop": given.loop, "seconds": round(time.monotonic() - began, 1), "found": run.found}
    print(json.dumps(figures | {"counts": dict(sorted(run.counts.items()))}), flush=True)  # noqa: T201 - a program
    return 1 if run.found else 0


if __name__ == "__main__":
    sys.exit(main())
