"""Supervises one live job for readers in other processes: `LOOP DIRECTORY`.

Its child writes `begin` and waits. Once that is committed it says the capture's id; then it obeys lines on its stdin:
`more` writes a line, `end` ends the child and publishes, and says `published`. It may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

from supervisor import PIPE, Supervisor


async def main(directory: str) -> None:
    """Supervise."""
    async with Supervisor(directory) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(b"begin\n")
        async with aclosing(job.follow()) as pages:
            await anext(pages)
        print(job.capture_id, flush=True)
        while (line := await asyncio.to_thread(sys.stdin.readline)) == "more\n":
            await job.write(b"more\n")
        await job.write_eof()
        await job.wait()
        if line:
            print("published", flush=True)
            await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    if sys.argv[1] == "uvloop":
        import uvloop

        uvloop.run(main(sys.argv[2]))
    else:
        asyncio.run(main(sys.argv[2]))
