"""A supervisor with live jobs; it names their captures once both texts of each are committed, and waits to be killed.

Arguments: the module whose `run` is the loop's, the conversation's directory, how many jobs. The jobs end with their
stdin, which ends with us.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from contextlib import aclosing

from supervisor import PIPE, Job, Supervisor

COMMAND = 'echo "line one of $0"; printf "no end"; echo "problem of $0" >&2; read _'


async def committed(job: Job) -> None:
    """Return when there is text in both files."""
    for stream, text in (("stdout", "no end"), ("stderr", "problem")):
        async with aclosing(job.follow(stream)) as pages:
            seen = ""
            async for page in pages:
                seen += page.text
                if text in seen:
                    break


async def main() -> None:
    """Start the jobs and announce them."""
    async with Supervisor(sys.argv[2]) as supervisor:
        names = [str(number) for number in range(int(sys.argv[3]))]
        jobs = [await supervisor.start(["sh", "-c", COMMAND, name], stdin=PIPE, label=name) for name in names]
        await asyncio.gather(*map(committed, jobs))
        print(json.dumps([job.capture_id for job in jobs]), flush=True)
        await asyncio.Event().wait()


importlib.import_module(sys.argv[1]).run(main())
