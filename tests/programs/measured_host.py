"""A supervisor that runs one command and tells what its own peak of resident memory grew by, in bytes.

Arguments: the module whose `run` is the loop's, the conversation's directory, `job_bytes`, the shell command. Output:
JSON. The peak is VmHWM of proc_pid_status(5), because getrusage(2) starts with that of the process that forked us.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path

from supervisor import Limits, Supervisor


def peak() -> int:
    """Return the peak of our resident memory so far."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


async def main() -> None:
    """Run a small command, then the one to measure."""
    limits = Limits(job_bytes=float(sys.argv[3]), conversation_bytes=math.inf)
    async with Supervisor(sys.argv[2], limits=limits) as supervisor:
        await supervisor.run("seq 1 20000; exit 1", shell=True)
        idle = peak()
        receipt = await supervisor.run(sys.argv[4], shell=True)
        grown = peak() - idle
    print(json.dumps({"idle": idle, "grown": grown, "receipt": json.loads(receipt.to_json())}))


importlib.import_module(sys.argv[1]).run(main())
