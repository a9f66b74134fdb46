"""The lives that are cut short at each of their system calls. Each says what a caller of the product would do."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from disk import KILLS, KINDS
from stage import BEGINNING, COMPLAINT, END, FILLING, Stage, fill, nod, speak

from supervisor import PIPE, Completion, Limits, StorageError
from supervisor.recovering import recover_with, remove_with

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from supervisor import Supervisor
    from supervisor.testing import FakeChild

LIMIT: Final = 24 * 1024
"""Of the scenario that runs out of its conversation's allowance: one output of 17.5 KiB fits, and a part of another."""


async def start(stage: Stage) -> None:
    """A command without output."""
    async with stage.supervisor() as supervisor:
        await stage.end(await stage.job(supervisor, nod))


async def feed(stage: Stage) -> None:
    """Output in pieces, each of which is on the disk before the next one comes."""
    told: asyncio.Queue[bytes] = asyncio.Queue()

    async def script(child: FakeChild) -> None:
        while (piece := await told.get()) != b"":
            await child.feed(piece, "stderr" if piece == COMPLAINT.encode() else "stdout")
        child.exit(0)

    async with stage.supervisor() as supervisor:
        job = await stage.job(supervisor, script)
        pages = job.follow("stdout")
        for piece in (BEGINNING, END):
            told.put_nowait(piece.encode())
            try:
                await anext(pages, None)
            except StorageError:  # there is no file
                continue
        told.put_nowait(COMPLAINT.encode())
        told.put_nowait(b"")
        await pages.aclose()
        await stage.end(job)


async def quota(stage: Stage) -> None:
    """Two outputs, at work at the same time, of which the allowance has room for one and a bit."""
    async with stage.supervisor(limits=Limits(conversation_bytes=LIMIT)) as supervisor:
        jobs = [await stage.job(supervisor, fill) for _ in range(2)]
        for job in jobs:
            await stage.end(job)


async def cancel(stage: Stage) -> None:
    """A job that its caller ends in the middle of its output."""
    spoken = asyncio.Event()

    async def script(child: FakeChild) -> None:
        await child.feed(BEGINNING.encode())
        spoken.set()
        await asyncio.Event().wait()

    async with stage.supervisor() as supervisor:
        job = await stage.job(supervisor, script)
        await spoken.wait()
        await job.terminate()
        await stage.end(job)


async def drain(stage: Stage) -> None:
    """A command that exits while a descendant keeps its pipe."""

    async def script(child: FakeChild) -> None:
        await child.feed((BEGINNING + END).encode())
        child.exit(0, hold_pipes=True)

    async with stage.supervisor() as supervisor:
        await stage.end(await stage.job(supervisor, script, drain_timeout=0.005))


async def finish(stage: Stage) -> None:
    """A real child, and a foreground run whose files are made at its end."""
    async with stage.supervisor() as supervisor:
        stage.children.expect(script=speak)
        receipt = await supervisor.run(["tool"])
        stage.tell("receipt", capture_id=receipt.capture_id, receipt=receipt.to_json().decode())
    async with stage.supervisor(real=True) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        stage.tell("started", capture_id=job.capture_id)
        await job.write(FILLING[:4096].encode())
        await job.write_eof()
        await stage.end(job)


async def life(stage: Stage) -> None:
    """Both streams, with everything that belongs to a good end, the completion included."""
    async with stage.supervisor() as supervisor:
        job = await stage.job(supervisor, speak)
        await stage.end(job)
        await consume(stage, supervisor, all_of_them=True)


async def speech(stage: Stage) -> None:
    """Both streams, and a good end."""
    async with stage.supervisor() as supervisor:
        await stage.end(await stage.job(supervisor, speak))


async def plant(stage: Stage) -> None:
    """Somebody has put a file where the stream's final name is to be."""
    planted = asyncio.Event()

    async def script(child: FakeChild) -> None:
        await child.feed((BEGINNING + END).encode())
        await planted.wait()
        child.exit(0)

    async with stage.supervisor() as supervisor:
        job = await stage.job(supervisor, script)
        place = f"tool-outputs/captures/{job.capture_id}/stdout.log"
        (stage.directory / place).touch(0o600)
        (stage.directory / place).write_bytes(b"theirs")
        stage.tell("planted", place=place)
        planted.set()
        await stage.end(job)


async def recovery(stage: Stage) -> None:
    """What a killed supervisor left is recovered."""
    try:
        for receipt in await recover_with(stage.files, stage.directory):
            stage.tell("recovered", capture_id=receipt.capture_id, receipt=receipt.to_json().decode())
    except StorageError as error:
        stage.tell("refused", error=str(error))


async def removal(stage: Stage) -> None:
    """One of the captures is removed."""
    try:
        await remove_with(stage.files, stage.directory, [stage.prepared["published"]])
    except StorageError as error:
        stage.tell("refused", error=str(error))
    else:
        stage.tell("removed", capture_id=stage.prepared["published"])


async def completions(stage: Stage) -> None:
    """Two ends of earlier supervisors, of which one was handed to somebody who died, and one of our own."""
    async with stage.supervisor() as supervisor:
        await stage.end(await stage.job(supervisor, nod))
        await consume(stage, supervisor, all_of_them=False)


async def consume(stage: Stage, supervisor: Supervisor, *, all_of_them: bool) -> None:
    """Take every completion and acknowledge each, or every other one. The last is that of a job without a capture."""
    last = await stage.job(supervisor, nod, capture="none")
    number = 0
    async for completion in supervisor.completions():
        number += 1
        capture_id = completion.receipt.capture_id
        if capture_id == last.capture_id:
            return
        stage.tell(
            "handed",
            capture_id=capture_id,
            redelivered=completion.redelivered,
            receipt=completion.receipt.to_json().decode(),
        )
        if all_of_them or number % 2:
            await acknowledge(stage, completion)


async def acknowledge(stage: Stage, completion: Completion) -> None:
    """Acknowledge it, trying once more, and tell how that went."""
    capture_id = completion.receipt.capture_id
    stage.tell("acknowledging", capture_id=capture_id)
    for _ in range(2):
        try:
            await completion.acknowledge()
        except StorageError as error:
            stage.tell("refused", error=str(error))
        else:
            stage.tell("acknowledged", capture_id=capture_id)
            return


async def prepare_nothing(stage: Stage) -> None:
    """An empty conversation."""


async def prepare_ends(stage: Stage) -> None:
    """Two ended jobs; the completion of the first was handed to somebody. The caller of this then dies."""
    async with stage.supervisor() as supervisor:
        ids = [(await stage.end(await stage.job(supervisor, nod))).capture_id for _ in range(2)]
    stage.tell("prepared", claimed=ids[0], unclaimed=ids[1:])
    async with stage.supervisor() as supervisor:
        async for _ in supervisor.completions():
            os.kill(os.getpid(), signal.SIGKILL)


async def prepare_wreck(stage: Stage) -> None:
    """A published capture and four live ones, some half made or half named. The caller of this then dies."""
    async with stage.supervisor() as supervisor:
        published = await stage.end(await stage.job(supervisor, speak))
        stage.tell("prepared", published=published.capture_id)
        jobs = [await stage.job(supervisor, speak_on) for _ in range(4)]
        for job in jobs:
            await anext(job.follow("stdout"))
            await anext(job.follow("stderr"))
        captures = stage.directory / "tool-outputs" / "captures"
        whole, linked, unlaunched, emptied = (captures / job.capture_id for job in jobs)
        assert (whole / "stdout.live").exists()
        (linked / "stdout.log").hardlink_to(linked / "stdout.live")
        (unlaunched / "launch.json").rename(unlaunched / ".launch.unfinished")
        for path in emptied.iterdir():
            path.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


async def speak_on(child: FakeChild) -> None:
    """Write both chunks and a complaint, and do not end."""
    await child.feed((BEGINNING + END).encode())
    await child.feed(COMPLAINT.encode(), "stderr")
    await asyncio.Event().wait()


@dataclass(frozen=True)
class Scenario:
    """A life, and what it finds."""

    play: Callable[[Stage], Coroutine[Any, Any, None]]
    prepare: Callable[[Stage], Coroutine[Any, Any, None]] = prepare_nothing
    limit: int | None = None
    code: int | None = 0
    """The exit code that each receipt must have; None: its commands were ended."""
    linking: bool = False
    starting: bool = False
    """It begins as `start` does, so that what comes before its first job runs is swept there."""
    companion: bool = False
    """Another process has a job at work all the time."""
    kinds: tuple[str, ...] = KINDS
    """What it is struck by."""


SCENARIOS: Final = {
    "start": Scenario(start),
    "feed": Scenario(feed, starting=True),
    "quota": Scenario(quota, limit=LIMIT, starting=True),
    "cancel": Scenario(cancel, code=None, starting=True),
    "drain-timeout": Scenario(drain, starting=True),
    "finish": Scenario(finish),
    "finish-by-links": Scenario(speech, linking=True),
    "two-processes": Scenario(speech, companion=True, kinds=KILLS),
    "recovery": Scenario(recovery, prepare_wreck),
    "removal": Scenario(removal, prepare_wreck),
    "completions": Scenario(completions, prepare_ends, starting=True),
    "life": Scenario(life, starting=True, kinds=()),
    "speech": Scenario(speech, starting=True, kinds=()),
    "planted-name": Scenario(plant, kinds=()),
}
