"""A host of its own for one spawn: prepares itself as told, runs a command, prints what came of it.

Arguments: `asyncio` or `uvloop`, preparations (`sigpipe`, `thread`, `closed`, `plain`), `--`, the command.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

from supervisor.process import Launch, spawn

split = sys.argv.index("--")
loop_name, preparations, command = sys.argv[1], sys.argv[2:split], tuple(sys.argv[split + 1 :])


class Collector(asyncio.SubprocessProtocol):
    """Collects the output and knows when all is told."""

    def __init__(self) -> None:
        self.data = b""
        self.open = 2
        self.exited = False
        self.done = asyncio.get_running_loop().create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - the protocol's signature
        """Keep it."""
        self.data += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Count it, except stdin's."""
        self.open -= fd != 0
        self.check()

    def process_exited(self) -> None:
        """Note it."""
        self.exited = True
        self.check()

    def check(self) -> None:
        """Tell the end."""
        if self.exited and not self.open:
            self.done.set_result(None)


async def main() -> None:
    """Run the command."""
    collector = Collector()
    child = await spawn(collector, Launch(command, stdin="pipe" if "sigpipe" in preparations else "null"))
    for reader in child.readers.values():
        reader.resume_reading()
    if child.stdin is not None:
        await collector.done
        child.stdin.write(b"x")  # nobody reads any more
    await collector.done
    os.write(1, collector.data + f"{child.exit}\n".encode())
    child.release()


def run() -> None:
    """Run the loop that was asked for."""
    if loop_name == "uvloop":
        import uvloop  # noqa: PLC0415 - not installed everywhere

        uvloop.run(main())
    else:
        asyncio.run(main())


if "sigpipe" in preparations:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
if "closed" in preparations:
    os.close(0)
    os.close(2)
if "thread" in preparations:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
