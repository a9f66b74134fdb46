"""A supervisor that starts a command and ends in the way that is asked for.

Arguments: the module whose `run` is the loop's, the way, "guard" or "plain", the command. Output: the command's pid,
and then the guard's if there is one; at the end the receipt's state and reason if the block is left.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys

from supervisor import Job, Supervisor

LOOP = importlib.import_module(sys.argv[1])
WAY, GUARD, COMMAND = sys.argv[2], sys.argv[3] == "guard", sys.argv[4:]
JOBS: list[Job] = []
LOST: list[str] = []


async def begin(supervisor: Supervisor) -> None:
    """Start the command, and tell of it once it says that it is ready."""
    job = await supervisor.start(COMMAND, window_bytes=100, kill_after=float(os.environ["GRACE"]))
    JOBS.append(job)
    async for _ in job.live("stdout"):
        break
    guarding = vars(supervisor)["_guarding"]
    print(job.pid, *(() if guarding is None else (guarding.guard.pid,)), flush=True)


async def in_a_block() -> None:
    """Leave the block somehow, or wait in it."""
    async with Supervisor(guard=GUARD) as supervisor:
        await begin(supervisor)
        loop = asyncio.get_running_loop()
        match WAY:
            case "return":
                return
            case "raise":
                raise ValueError("the host's own fault")
            case "exit":
                loop.call_soon(sys.exit, 3)
            case "handler":
                task = asyncio.current_task()
                assert task is not None
                loop.add_signal_handler(signal.SIGTERM, task.cancel)
                os.kill(os.getpid(), signal.SIGTERM)
            case "lost":
                while "no-guard" not in (receipt := JOBS[0].receipt).limitations:  # noqa: ASYNC110 - no event says it
                    await asyncio.sleep(0.001)
                LOST.extend(receipt.limitations)
                LOST.extend((await supervisor.run(["true"])).limitations)
                return
            case "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()


async def without_closing() -> None:
    """Enter and forget."""
    supervisor = Supervisor(guard=GUARD)
    JOBS.append(supervisor)  # type: ignore[arg-type] -- so that it lives until the interpreter ends
    await supervisor.__aenter__()
    await begin(supervisor)


if WAY == "dropped":
    new = asyncio.new_event_loop if LOOP is asyncio else LOOP.new_event_loop
    new().run_until_complete(without_closing())
    sys.exit(4)
try:
    LOOP.run(in_a_block())
finally:
    # asyncio.run cancels every task when a callback raises SystemExit, and with them whoever would settle the receipt.
    process = JOBS[0].receipt.process if WAY != "exit" else None
    print(process and process.state, process and process.reason, *LOST, flush=True)
