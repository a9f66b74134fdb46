"""A process that outlives a killed host, to end what the host was running, and nothing else (contract F10).

SIGKILL leaves the host no last word, and PR_SET_PDEATHSIG is none of the system's: it comes when the *thread* ends that
started the child, reaches the child alone and is cleared by setuid. So one small process for each supervisor holds the
other end of a pipe and is told of each command before it is started. Its program is `guarding`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import proc
from .launch import Launch
from .spawn import start_on_thread
from .status import PidfdWatch, pidfd_supported
from .transport import Child
from .tree import GUARDS

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE: Final = str(Path(__file__).parents[2])
PROGRAM: Final = f"""
import sys, types, _signal
for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT):
    _signal.signal(number, _signal.SIG_IGN)  # they also come to the host, whose end is then awaited
sys.path.append({PLACE!r})
package = types.ModuleType("supervisor.process")
package.__path__ = [{str(Path(__file__).parent)!r}]
import supervisor
sys.modules["supervisor.process"] = package  # the package's own names would bring asyncio along
from supervisor.process import guarding
guarding.run()
"""
CLOSING_SECONDS: Final = 5.0
"""What a killed guard gets to be gone: one in state D is not waited for."""


class Guard(asyncio.SubprocessProtocol):
    """The guard of one supervisor, used on its loop. It is told what runs; it acts when the host is gone.

    `lost` is called when it ends though nobody told it to.
    """

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost: Final = lost
        self._child: Child | None = None
        self._closing = False
        self._ended: Final = asyncio.Event()

    async def start(self) -> bool:
        """Start it; whether there is one now. Cancellation: none is left."""
        if not pidfd_supported() or proc.process(os.getpid()) is None or not os.access(sys.executable or "", os.X_OK):
            return False
        loop = asyncio.get_running_loop()
        argv = (sys.executable, "-I", "-S", "-c", PROGRAM, str(os.getpid()))
        try:
            started = await start_on_thread(Launch(argv, cwd="/", stdin="pipe", merge=True), loop, by_pidfd=True)
        except OSError:
            return False
        assert started.pidfd is not None
        watch = PidfdWatch(loop, started.pid, started.pidfd, started.host_peak)
        child = Child(loop, self, started.pid, started.pipes, watch)
        try:
            child.start()
        except OSError:
            started.destroy()
            return False
        GUARDS.add(started.pid)
        self._child = child
        return True

    @property
    def pid(self) -> int | None:
        """Its pid, or None without one."""
        return None if self._child is None else self._child.get_pid()

    def expect(self, mark: str, grace: float) -> None:
        """A command is about to be started; `grace` is what it gets between TERM and KILL."""
        self._tell(f"expect {mark} {grace!r}")

    def started(self, mark: str, pid: int) -> None:
        """That command runs, as this process."""
        found = proc.process(pid)
        if found is not None:
            self._tell(f"started {mark} {pid} {found.identity.start}")

    def forget(self, mark: str) -> None:
        """What is left of that command may stay, or never was."""
        self._tell(f"forget {mark}")

    async def close(self) -> None:
        """Kill it, which has nothing to lose; return when it is reaped. May be called again."""
        self._closing = True
        child, self._child = self._child, None
        if child is None:
            return
        if child.exit is None:
            child.kill()
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            child.abandon()
        child.release()
        GUARDS.discard(child.get_pid())

    def process_exited(self) -> None:
        """It ended: as it was told to, or somebody has killed it."""
        self._ended.set()
        if not self._closing:
            self._lost()

    def _tell(self, line: str) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.write(f"{line}\n".encode())
