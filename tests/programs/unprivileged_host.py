"""Becomes the user nobody, and runs a command both ways in each of some conversations; tells the receipts.

Arguments: the module whose `run` is the loop's, the conversations' directories. Output: JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from supervisor import Receipt, Supervisor

NOBODY = 65534


async def main() -> None:
    """Run the commands."""
    receipts: list[Receipt] = []
    for directory in sys.argv[2:]:
        async with Supervisor(directory) as supervisor:
            receipts.append(await supervisor.run("echo out; exit 3", shell=True))
            receipts.append(await (await supervisor.start("echo out; exit 3", shell=True)).wait())
    print(json.dumps([json.loads(receipt.to_json()) for receipt in receipts]))


loop = importlib.import_module(sys.argv[1])
# After the imports: the interpreter's own files may be closed to that user.
os.chdir("/")
os.setgroups([])
os.setgid(NOBODY)
os.setuid(NOBODY)
loop.run(main())
