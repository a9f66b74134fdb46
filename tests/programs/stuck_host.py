"""A supervisor whose spool's writes never come back; tells the receipt's facts and then ends.

Arguments: the module whose `run` is the loop's, the conversation's directory. Output: JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from typing import TYPE_CHECKING

from supervisor import Limits, Supervisor
from supervisor.storage import Files, LocalStorage

if TYPE_CHECKING:
    from collections.abc import Sequence


class DeadSpools(Files):
    """Each spool is a FIFO that is full and that nobody reads; its descriptor looks like the file's in all else."""

    def __init__(self) -> None:
        self._spools: set[int] = set()
        self._ends = os.pipe()

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create, and remember a spool."""
        descriptor = super().create(name, parent=parent, flags=flags)
        if name == "stdout.live":
            self._spools.add(descriptor)
        return descriptor

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Write to a spool until the pipe is full, then for ever."""
        while descriptor in self._spools:
            os.write(self._ends[1], bytes(65536))
        return super().write(descriptor, buffers)


async def main() -> None:
    """Run one command."""
    limits = Limits(stall_timeout=1.0, queue_bytes=256 * 1024)
    async with Supervisor(sys.argv[2], limits=limits, storage=LocalStorage(DeadSpools())) as supervisor:
        receipt = await supervisor.run("yes | head -c 10000000; exit 5", shell=True)
    code = None if receipt.process is None else receipt.process.code
    threads = sum(thread.name.startswith("spoolvisor-writer") for thread in threading.enumerate())
    print(json.dumps({"code": code, "reason": receipt.capture.reason, "threads": threads}))


importlib.import_module(sys.argv[1]).run(main())
