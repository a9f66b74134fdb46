"""One round of a chaos run: a supervisor, its jobs, and everything that is done to them."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import aclosing, suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from plans import ENOUGH, Act, JobPlan, RoundPlan
from shapes import SECRET

from supervisor import PIPE, SpawnError, StorageError, Supervisor, TooManyJobs
from supervisor.testing import FailingStorage

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor import Job, Receipt

MARK: Final = "CHAOS_JOB"
OUTSIDE: Final = """
import asyncio
from supervisor import UnknownCapture, follow_capture

async def main():
    at = None
    async for page in follow_capture(sys.argv[1], sys.argv[2], "stdout"):
        assert at is None or page.start == at, (at, page.start)
        at = page.cursor

try:
    asyncio.run(main())
except UnknownCapture:  # its disk refused it from the start
    pass
"""
PATIENCE: Final = 60.0
"""Seconds after which a round has not settled."""


class Round:
    """What happened in a round."""

    def __init__(self, plan: RoundPlan, directory: Path, mark: str) -> None:
        self.plan: Final = plan
        self.directory: Final = directory
        self.mark: Final = mark
        self.wrong: Final[list[str]] = []
        self.counts: Final[Counter[str]] = Counter()
        self.jobs: Final[dict[int, Job]] = {}
        self.receipts: Final[dict[int, Receipt]] = {}
        self.touched: Final[set[int]] = set()
        self.began: Final = {job.number: asyncio.Event() for job in plan.jobs}
        """Set once a job was started, or will not be."""
        self.followed: Final[list[tuple[int, str, str]]] = []
        self.told: Final[list[str]] = []
        self.acknowledged: Final[set[str]] = set()
        self.acknowledging: Final[set[str]] = set()
        self.storage: Final = FailingStorage()
        self.closing = False
        self.began_at: Final = asyncio.get_running_loop().time()

    @property
    def slow(self) -> bool:
        """Whether a deadline for the disk may have passed without a fault: the round has lasted as long as one."""
        return asyncio.get_running_loop().time() - self.began_at >= self.plan.limits.stall_timeout

    async def play(self) -> None:
        """Return when the supervisor has closed. Raises: TimeoutError if it does not."""
        place = self.directory if self.plan.directory else None
        async with asyncio.timeout(PATIENCE):
            faults = asyncio.create_task(self._break())
            supervisor = Supervisor(
                place,
                limits=self.plan.limits,
                secrets={"CHAOS_SECRET": SECRET},
                durability=self.plan.durability,  # type: ignore[arg-type]
                storage=self.storage,
            )
            async with supervisor:
                doing = [asyncio.create_task(self._consume(supervisor, act)) for act in self.plan.consumers]
                calls = [asyncio.create_task(self._carry(supervisor, plan)) for plan in self.plan.jobs]
                ended = asyncio.gather(*calls)
                if self.plan.closes_at is None:
                    await ended
                else:
                    await asyncio.wait({ended}, timeout=self.plan.closes_at)
                    self.closing = True
            await ended
            self._collect(supervisor)
            await asyncio.gather(*doing)
            await faults

    def _collect(self, supervisor: Supervisor) -> None:
        """Take the receipts that nobody was given: those of cancelled calls."""
        for job in supervisor.jobs:
            if not job.done:
                self.wrong.append(f"job {job.id} is not settled after the closing")
                continue
            call = job.receipt.call_id
            if call is not None:
                self.receipts.setdefault(int(call), job.receipt)

    async def _break(self) -> None:
        """Let the disk fail as planned; what hangs goes on again."""
        began = asyncio.get_running_loop().time()
        for fault in sorted(self.plan.faults, key=lambda act: act.at):
            await asyncio.sleep(max(0.0, began + fault.at - asyncio.get_running_loop().time()))
            self.counts[f"fault {fault.name}"] += 1
            size = int(fault.value)
            match fault.name:
                case "full" | "quota":
                    number = errno.ENOSPC if fault.name == "full" else errno.EDQUOT
                    self.storage.fill_after(self.storage.written + size, number=number)
                case "short":
                    self.storage.write_short(max(37, size))
                case "slow":
                    self.storage.write_slowly({1: 0.001, 700: 0.02, 60_000: 0.2}[size])
                case "hold":
                    self.storage.hold_writes()
                    try:
                        await asyncio.sleep({1: 0.05, 700: 0.4, 60_000: 1.5}[size])
                    finally:
                        self.storage.release()
                case step:
                    self.storage.fail_sync(step.removeprefix("sync-"))  # type: ignore[arg-type]

    async def _carry(self, supervisor: Supervisor, plan: JobPlan) -> None:
        """Carry a job to its end, and do what is planned to it."""
        await asyncio.sleep(plan.delay)
        call = asyncio.create_task(self._call(supervisor, plan))
        around = [asyncio.create_task(self._read(plan, act)) for act in plan.readers]
        around.append(asyncio.create_task(self._disturb(supervisor, plan, call)))
        await asyncio.wait({call})
        self.began[plan.number].set()
        job = self.jobs.get(plan.number)
        if job is not None:
            self.receipts[plan.number] = await job.wait()
        await asyncio.gather(*around)
        if not call.cancelled():
            call.result()

    async def _call(self, supervisor: Supervisor, plan: JobPlan) -> None:
        options = plan.options | {"call_id": str(plan.number)}
        options["env"] = options["env"] | {MARK: f"{self.mark}-{plan.number}"}
        if plan.shape.name == "writer":
            options["stdin"] = PIPE
        try:
            if plan.foreground:
                self.receipts[plan.number] = await supervisor.run(plan.shape.command, **options)
                return
            job = await supervisor.start(plan.shape.command, **options)
        except SpawnError as error:
            if not plan.shape.missing or error.receipt is None:
                self.wrong.append(f"job {plan.number} ({plan.shape.name}) was not started: {error}")
            else:
                self.receipts[plan.number] = error.receipt
            return
        except TooManyJobs:
            self.counts["refused"] += 1
            return
        except RuntimeError:
            if not self.closing:
                raise
            return
        self.jobs[plan.number] = job
        self.began[plan.number].set()
        if plan.shape.missing:
            self.wrong.append(f"job {plan.number} started, which cannot be")
        if plan.shape.name == "writer":
            await self._feed(job, plan)
        self.receipts[plan.number] = await job.wait()

    async def _feed(self, job: Job, plan: JobPlan) -> None:
        try:
            for piece in plan.shape.writes:
                await job.write(piece)
                await asyncio.sleep(0)
            await job.write_eof()
        except BrokenPipeError:
            self.counts["broken pipe"] += 1
        except asyncio.CancelledError:
            self.touched.add(plan.number)
            await job.write_eof()
            raise

    async def _disturb(self, supervisor: Supervisor, plan: JobPlan, call: asyncio.Task[None]) -> None:
        """Do what is planned; what does not end by itself is ended."""
        began = asyncio.get_running_loop().time()
        last = [Act(ENOUGH, "terminate")] if plan.shape.code is None and not plan.shape.missing else []
        for act in (*plan.acts, *last):
            pause = began + act.at - asyncio.get_running_loop().time()
            await asyncio.wait({call}, timeout=max(0.0, pause))
            job = self.jobs.get(plan.number)
            if call.done() and (job is None or job.done):
                return
            self.counts[act.name] += 1
            await self._do(supervisor, plan, act, call)

    async def _do(self, supervisor: Supervisor, plan: JobPlan, act: Act, call: asyncio.Task[None]) -> None:
        job = self.jobs.get(plan.number)
        match act.name:
            case "add-secret":
                supervisor.add_secret(f"EXTRA_{plan.number}", f"{Random(act.value).getrandbits(128):032x}")
            case "cancel":
                if job is None:
                    self.touched.add(plan.number)
                call.cancel()
            case "terminate" | "cancel-terminate" if job is None:
                self.touched.add(plan.number)
                call.cancel()
            case "terminate" | "cancel-terminate":
                self.touched.add(plan.number)
                ending = asyncio.create_task(job.terminate())  # type: ignore[union-attr]
                if act.name == "cancel-terminate":
                    await asyncio.sleep(act.value / 50)
                    ending.cancel()
                await asyncio.wait({ending})
            case _:
                await self._strike(supervisor, plan, act)

    async def _strike(self, supervisor: Supervisor, plan: JobPlan, act: Act) -> None:
        """Signal the leader, by ourselves or as the supervisor does; nothing if it is not there."""
        call = str(plan.number)
        job = next((job for job in supervisor.jobs if not job.done and job.receipt.call_id == call), None)
        if job is None or job.pid is None:
            return
        process = job.receipt.process
        if process is None or process.state != "running" or process.signal is not None:
            return
        self.touched.add(plan.number)
        with suppress(ProcessLookupError):
            match act.name:
                case "signal":
                    await job.send_signal(signal.SIGUSR1)
                case "kill":
                    os.kill(job.pid, signal.SIGKILL)
                case "stop":
                    os.kill(job.pid, signal.SIGSTOP)
                    await asyncio.sleep(act.value / 5)
                    if not job.done:
                        await job.send_signal(signal.SIGCONT)

    async def _read(self, plan: JobPlan, act: Act) -> None:
        """Follow a stream to its end or read a page of it; a follower may be cancelled, another process be killed."""
        await self.began[plan.number].wait()
        job = self.jobs.get(plan.number)
        if job is None:
            return
        if act.name == "outside":
            await self._follow_outside(job, act)
            return
        stream: Any = "stdout" if act.at * 1000 % 3 < 2 else "stderr"
        if act.name == "read":
            try:
                await job.read(stream, max_bytes=4 + int(act.value * 1000))
            except StorageError as error:
                self._note_misreading(plan, error)
            return
        following = asyncio.create_task(self._follow(job, plan, stream))
        await asyncio.wait({following}, timeout=act.value or None)
        if following.done():
            following.result()
        elif following.cancel():
            self.counts["followers cancelled"] += 1
            await asyncio.wait({following})

    async def _follow_outside(self, job: Job, act: Act) -> None:
        """Let another process follow the files [E4], and kill it at some time or wait for its end."""
        if not self.plan.directory:
            return
        code = f"import sys; sys.path[:] = {sys.path!r}\n{OUTSIDE}"
        # Not the loop's own child: what uvloop opens for one is closed when it is collected, and looks like a leak.
        with tempfile.TemporaryFile() as told:
            reader = subprocess.Popen(  # noqa: ASYNC220 - as above
                [sys.executable, "-c", code, self.directory, job.capture_id], stderr=told
            )
            self.counts["processes following"] += 1
            loop = asyncio.get_running_loop()
            # Where a fault kept the receipt from the disk, the text ends for others only with its owner.
            hidden = any(fault.name.startswith("sync-") for fault in self.plan.faults) or self.slow
            until = loop.time() + (act.value or (ENOUGH if hidden else PATIENCE / 2))
            while reader.poll() is None and loop.time() < until:  # noqa: ASYNC110 - nobody else is to reap it
                await asyncio.sleep(0.01)
            reader.kill()
            code_of_it = reader.wait()
            told.seek(0)
            if code_of_it not in {0, -signal.SIGKILL} or (code_of_it and not act.value and not hidden):
                self.wrong.append(f"another process followed {job.capture_id}: {told.read().decode()}")

    async def _follow(self, job: Job, plan: JobPlan, stream: Any) -> None:  # noqa: ANN401 - a name
        parts: list[str] = []
        at = None
        try:
            async with aclosing(job.follow(stream, max_bytes=20_000)) as pages:
                async for page in pages:
                    if at is not None and page.start != at:
                        self.wrong.append(f"job {plan.number}: a page begins at {page.start}, the last ended at {at}")
                    at = page.cursor
                    parts.append(page.text)
        except StorageError as error:
            self._note_misreading(plan, error)
            return
        self.followed.append((plan.number, stream, "".join(parts)))
        self.counts["followers"] += 1

    def _note_misreading(self, plan: JobPlan, error: StorageError) -> None:
        if not self.slow:  # a read has the deadline of a write
            self.wrong.append(f"job {plan.number}: a reader was told {error!r}")

    async def _consume(self, supervisor: Supervisor, act: Act) -> None:
        """Take completions, acknowledge most of them, and be cancelled on the way."""
        await asyncio.sleep(act.at)
        consuming = asyncio.create_task(self._take(supervisor, Random(f"{self.plan.number}:{act.at}")))
        await asyncio.wait({consuming}, timeout=act.value or None)
        if consuming.done():
            consuming.result()
        elif consuming.cancel():
            self.counts["consumers cancelled"] += 1
            await asyncio.wait({consuming})

    async def _take(self, supervisor: Supervisor, dice: Random) -> None:
        async for completion in supervisor.completions():
            capture_id = completion.receipt.capture_id
            self.told.append(capture_id)
            if dice.random() < 0.2:
                continue
            self.acknowledging.add(capture_id)
            try:
                await completion.acknowledge()
            except StorageError:
                self.counts["acknowledging failed"] += 1
            else:
                self.acknowledged.add(capture_id)
