"""Starts a command with each of some limits that a host without rights may not set.

Argument: the module whose `run` is the loop's. Output: one line for each limit.
"""

from __future__ import annotations

import errno
import importlib
import sys

from supervisor import ChildLimits, SpawnError, Supervisor

CASES = (
    ChildLimits(rlimits={"core": 0, "nofile": 2**40}),
    ChildLimits(nice=-20),
    ChildLimits(oom_score_adj=-1000),
    ChildLimits(user="nobody"),
    ChildLimits(group=12345),
)


async def main() -> None:
    """Tell how each start failed."""
    async with Supervisor() as supervisor:
        for limits in CASES:
            try:
                await supervisor.start(["true"], child_limits=limits)
            except SpawnError as error:
                process = error.receipt and error.receipt.process
                number = errno.errorcode[error.errno or 0]
                print(error.fault, error.subject, number, process and process.state)
        assert supervisor.jobs == ()


importlib.import_module(sys.argv[1]).run(main())
