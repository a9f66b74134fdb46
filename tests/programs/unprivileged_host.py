"""Becomes the user nobody, and runs a command in a conversation; tells the receipt's facts.

Arguments: the module whose `run` is the loop's, the conversation's directory. Output: JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from supervisor import Supervisor

NOBODY = 65534


async def main() -> None:
    """Run one command each way."""
    async with Supervisor(sys.argv[2]) as supervisor:
        run = await supervisor.run("echo out; exit 3", shell=True, cwd="/")
        started = await (await supervisor.start("echo out; exit 3", shell=True, cwd="/")).wait()
    print(json.dumps([json.loads(receipt.to_json()) for receipt in (run, started)]))


loop = importlib.import_module(sys.argv[1])
# After the imports: the interpreter's own files may be closed to that user.
os.chdir("/")
os.setgroups([])
os.setgid(NOBODY)
os.setuid(NOBODY)
loop.run(main())
