"""Stores under a limit of the system's: `filesize DIRECTORY BYTES`, or with a disk that hangs: `stuck DIRECTORY CALL`.

Prints one JSON object with what it saw. With a hung thread it must still come to its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import Files, LocalStorage, SpoolFault


class Stuck(Files):
    """Files whose call of one name is blocked in the kernel for ever: it reads a FIFO that nobody writes to."""

    def __init__(self, name: str, fifo: Path) -> None:
        self._name = name
        os.mkfifo(fifo)
        self._fifo = os.open(fifo, os.O_RDWR)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Block in the call of that name."""
        if name.startswith("_") or name != self._name:
            return super().__getattribute__(name)
        return lambda *_, **__: os.read(self._fifo, 1)


async def file_size(directory: Path, size: int) -> None:
    """Write three times the limit (RLIMIT_FSIZE; CPython ignores SIGXFSZ) and publish."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    conversation = await LocalStorage().open(directory, limits=Limits(), durability="barrier")
    capture = await conversation.create_capture("one", ("stdout",))
    spool = capture.spools["stdout"]
    seen: dict[str, object] = {}
    try:
        await spool.write([bytes(size)] * 3)
    except SpoolFault as fault:
        seen |= {"reason": fault.reason, "errno": fault.errno}
    sealed = await capture.seal()
    outcome = await capture.publish(b"{}")
    await conversation.close()
    print(json.dumps(seen | {"size": spool.size, "sealed": sealed.error, "published": outcome.published}))


async def stuck(directory: Path, call: str) -> None:
    """Live a capture's life on a disk on which one kind of call never returns."""
    files = Stuck(call, directory / "fifo")
    limits = Limits(stall_timeout=0.5)
    seen: dict[str, object] = {}
    try:
        conversation = await LocalStorage(files).open(directory, limits=limits, durability="barrier")
    except StorageError as error:
        print(json.dumps({"open": error.reason}))
        return
    try:
        capture = await conversation.create_capture("one", ("stdout", "stderr"))
    except StorageError as error:
        seen["create"] = error.reason
    else:
        spool = capture.spools["stdout"]
        try:
            async with asyncio.timeout(0.5):
                await spool.write([b"text"])
        except TimeoutError:
            spool.abandon()
            seen["write"] = spool.outstanding
        sealed = await capture.seal()
        seen["seal"] = {name: stream.fault and stream.fault.reason for name, stream in sealed.streams.items()}
        seen["sizes"] = {name: stream.size for name, stream in sealed.streams.items()}
        outcome = await capture.publish(b"{}")
        seen["publish"] = [outcome.published, outcome.durable, outcome.error]
    await conversation.close()
    seen["threads"] = threading.active_count() - 1
    print(json.dumps(seen))


if __name__ == "__main__":
    if sys.argv[1] == "filesize":
        asyncio.run(file_size(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        asyncio.run(stuck(Path(sys.argv[2]), sys.argv[3]))
