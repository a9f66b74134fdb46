"""The product's own transport over a process that exists only in a script.

Pipes, readers, writer, the order of callbacks and the release are those of every child. What the kernel would say of a
process (its exit, who is in its group, who took a signal) comes from a `Tree` instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..process.status import Usage, Watch
from ..process.transport import Child

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from ..sansio.exits import ExitStatus


class Tree(Protocol):
    """A process group that somebody makes up."""

    def members(self) -> tuple[int, ...]:
        """Return the pids of the live members, the leader's first."""
        ...

    def take_signal(self, number: int, *, group: bool) -> None:
        """The leader alone, or the whole group, is sent a signal. Nothing dead takes it."""
        ...

    def released(self) -> None:
        """Our ends of the pipes are closed and the leader is reaped, or was given up."""
        ...


class ScriptedWatch(Watch):
    """Tells the exit that it is told."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, tree: Tree) -> None:
        super().__init__(loop, pid, host_peak=0)
        self._tree = tree
        self._ended = False
        self._reaped = False

    def _begin(self) -> None:
        """Nothing has to be arranged."""

    def end(self, status: ExitStatus) -> None:
        """The leader has ended; it is told from the loop, after the ends of its pipes can be seen."""
        self._ended = True
        self._loop.call_soon(self._announce, status)

    def send_signal(self, number: int) -> None:
        """See `Watch.send_signal`. A signal to a zombie succeeds and does nothing."""
        if self._reaped:
            raise ProcessLookupError
        self._tree.take_signal(number, group=False)

    def held(self) -> bool:
        """See `Watch.held`."""
        return not self._reaped

    def reap(self) -> Usage | None:
        """See `Watch.reap`. What no process has used is unknown, not nothing [A4]."""
        self._reaped = self._ended
        return None

    def close(self) -> None:
        """See `Watch.close`."""
        super().close()
        self._tree.released()


class ScriptedTransport(Child):
    """A `Child` whose group is a `Tree`: no call of it can reach a process of the system."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.SubprocessProtocol,
        pid: int,
        pipes: Mapping[int, int],
        tree: Tree,
    ) -> None:
        self.watch = ScriptedWatch(loop, pid, tree)
        super().__init__(loop, protocol, pid, pipes, self.watch)
        self._tree = tree

    def signal_group(self, number: int) -> bool:
        """See `Child.signal_group`. Until the release there is at least the leader's zombie to take it."""
        if self._released:
            return False
        self._tree.take_signal(number, group=True)
        return True

    def group_members(self) -> tuple[int, ...] | None:
        """See `Child.group_members`."""
        return None if self._released else self._tree.members()

    def survivors(self) -> tuple[int, ...] | None:
        """See `Child.survivors`."""
        return self._tree.members()
