"""The first process of a pid namespace: a supervisor whose child's pid is given to somebody else during the drain.

Arguments: the module whose `run` is the loop's, the conversation's directory. Output: JSON. As the only process that
starts others it can choose the next pid (`/proc/sys/kernel/ns_last_pid`).
"""

# ruff: noqa: ASYNC220, ASYNC222, ASYNC240 - the loop is to see nothing until the pid is given away
from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from supervisor import Supervisor

HOLDER = "setsid sh -c 'echo $$; exec sleep 60' & read line; exit 3"
"""Its pid is told after it has left the session, which would keep the leader's number from being given away."""


async def main() -> None:
    """End a job whose leader was reaped by us and replaced."""
    async with Supervisor(sys.argv[2]) as supervisor:
        job = await supervisor.start(
            ["sh", "-c", HOLDER], stdin="pipe", drain_timeout=60.0, kill_after=0, window_bytes=1024
        )
        assert job.pid is not None
        async for shown in job.live("stdout"):
            holder = int(shown.text)
            break
        await job.write(b"go\n")
        while (process := job.receipt.process) is None or process.code is None:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
        os.waitpid(job.pid, 0)
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(job.pid - 1))
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as innocent:
            ending = asyncio.create_task(job.terminate())
            await asyncio.sleep(0)  # now TERM and KILL were sent to whoever they are sent to
            os.kill(holder, signal.SIGKILL)
            receipt = await ending
            innocent.communicate()  # it ends by the end of its stdin, if nothing else has ended it
    found = {
        "reused": innocent.pid == job.pid,
        "state": receipt.process and receipt.process.state,
        "code": receipt.process and receipt.process.code,
        "innocent": innocent.returncode,
    }
    print(json.dumps(found))


importlib.import_module(sys.argv[1]).run(main())
