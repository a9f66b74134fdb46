"""A real process that plays a script: what the contract suite holds a fake child to."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ..process import spawn as spawn_child
from . import puppet

if TYPE_CHECKING:
    from types import TracebackType

    from ..process import Child, Launch
    from ..sansio.words import StreamName
    from ..services import Spawn

READ_BYTES: Final = 64 * 1024


class RealChild:
    """A `ScriptedChild` that is a process. An async context manager, used from one loop, one call at a time.

    Its program is `puppet.py`, told what to do through a Unix socket in a temporary directory. Leaving the context ends
    every process of it and removes both; leave the supervisor's first.

    Args:
        start: What is tested: it starts the process.
    """

    def __init__(self, start: Spawn = spawn_child) -> None:
        self.command: list[str] = []
        """What to give to `Supervisor.start`; set on entering."""
        self.signals: list[int] = []
        """The signals that it has reported: those that it was told to ignore."""
        self._start = start
        self._place = tempfile.TemporaryDirectory(prefix="puppet-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._control: socket.socket | None = None
        self._unread = b""
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Open the socket. No process exists before `spawn`."""
        path = str(Path(self._place.name) / "control")
        self._listener.bind(path)
        self._listener.listen()
        self._listener.setblocking(False)  # noqa: FBT003 - the system's own signature
        self.command = [sys.executable, "-I", "-S", puppet.__file__, path]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return when every process of it has ended, but for what the system still does once its socket is closed."""
        try:
            if self._control is not None:
                await self._end(self._control)
        finally:
            self._listener.close()
            self._place.cleanup()

    async def spawn(self, protocol: asyncio.SubprocessProtocol, launch: Launch) -> Child:
        """Start the process."""
        return await self._start(protocol, launch)

    async def fail_to_spawn(self) -> None:
        """Change `command` into one that cannot be started, because it is missing."""
        self.command = [str(Path(self._place.name) / "missing")]

    async def feed(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Have it write; return when it has."""
        await self._order("feed", stream=stream, data=data.hex())

    async def close(self, stream: StreamName) -> None:
        """Have it close one of its outputs."""
        await self._order("close", stream=stream)

    async def exit(self, code: int | None = None, *, signal: int | None = None, hold_pipes: bool = False) -> None:
        """Have it end; with `hold_pipes` a forked process takes over."""
        await self._order("exit", code=code or 0, number=signal, hold_pipes=hold_pipes)

    async def ignore(self, *numbers: int) -> None:
        """Have it report these signals instead of ending by them."""
        await self._order("ignore", numbers=numbers)

    async def received(self, number: int) -> None:
        """Return once it has reported a signal of this number."""
        async with self._turn:
            while number not in self.signals:
                self._note(await self._line())

    async def read_stdin(self, count: int | None = None) -> bytes:
        """Have it read so many bytes, fewer only at the end of file; None: all up to there."""
        return bytes.fromhex(await self._order("read", count=count))

    async def _order(self, do: str, **arguments: object) -> str:
        """Have it do something, and return what it answers."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            if self._control is None:
                self._control, _ = await loop.sock_accept(self._listener)
            await loop.sock_sendall(self._control, json.dumps({"do": do, **arguments}).encode() + b"\n")
            while "done" not in (told := await self._line()):
                self._note(told)
            return told["done"] or ""

    def _note(self, told: dict[str, Any]) -> None:
        self.signals.append(told["signal"])

    async def _line(self) -> dict[str, Any]:
        assert self._control is not None
        while b"\n" not in self._unread:
            data = await asyncio.get_running_loop().sock_recv(self._control, READ_BYTES)
            if not data:
                raise ConnectionError("the real child has ended")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    async def _end(self, control: socket.socket) -> None:
        with control:
            try:
                control.shutdown(socket.SHUT_WR)
                while await asyncio.get_running_loop().sock_recv(control, READ_BYTES):
                    pass
            except ConnectionError:
                return  # it was killed before it had read everything
