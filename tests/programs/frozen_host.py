"""A supervisor whose file system is frozen under a running command; tells the receipt's facts, then that it closed.

Arguments: the module whose `run` is the loop's, the conversation's directory. It says `running`, and waits for a line
before the command goes on to write.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys

from supervisor import PIPE, Limits, Supervisor


async def main() -> None:
    """Run one command."""
    async with Supervisor(sys.argv[2], limits=Limits(stall_timeout=0.3, queue_bytes=256 * 1024)) as supervisor:
        job = await supervisor.start("read _; yes | head -c 10000000; exit 5", shell=True, stdin=PIPE)
        print("running", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        await job.write(b"go on\n")
        receipt = await job.wait()
        code = None if receipt.process is None else receipt.process.code
        print(json.dumps({"code": code, "reason": receipt.capture.reason}), flush=True)
    print("closed", flush=True)


importlib.import_module(sys.argv[1]).run(main())
