"""One child and its pipes, as an `asyncio.SubprocessTransport` that tells exit and end of output apart (contract F1).

The protocol hears: `connection_made` within `spawn()`; data and `pipe_connection_lost` of each pipe;
`process_exited` once, in whatever order to those; `connection_lost` once, last. Nothing ends by itself after the
exit: the child stays an unreaped zombie and its pipes stay open until the owner calls `release()`.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, cast

from ..sansio.exits import Exited, ExitStatus, Signalled
from . import given_up, group, leaving, subreaper
from .containment import deliver, tell_later
from .reader import Reader
from .terminal import TerminalReader, TerminalWriter
from .tree import GUARDS, LEADERS
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .status import Usage, Watch
    from .terminal import Terminal
    from .tree import Tree


class Child(asyncio.SubprocessTransport):
    """A started child, leader of a session and process group of its own. Made by `spawn()`, used from its loop.

    Attributes:
        exit: how it ended, or None while that is unknown to us; `Lost` if nobody can know.
        usage: what it used; None before `release()`, and if somebody else reaped it.
        readers: the readers of the child's descriptors 1 and 2; no 2 when they are merged.
        stdin: the writer of its descriptor 0, or None if that is `/dev/null`.
        limitations: words for what the platform or the host denied this child.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.SubprocessProtocol,
        pid: int,
        pipes: Mapping[int, int],
        watch: Watch,
        limitations: tuple[str, ...] = (),
        tree: Tree | None = None,
        *,
        terminal: bool = False,
    ) -> None:
        super().__init__()
        self.exit: ExitStatus | None = None
        self.usage: Usage | None = None
        self.limitations = limitations
        self._loop = loop
        self._protocol = protocol
        self._pid = pid
        self._watch = watch
        self._lineage = tree
        self._release_asked = False
        self._released = False
        read, write = (TerminalReader, TerminalWriter) if terminal else (Reader, Writer)
        self.readers: Mapping[int, Reader] = {fd: read(loop, self, fd, end) for fd, end in pipes.items() if fd != 0}
        self.stdin = write(loop, self, pipes[0]) if 0 in pipes else None
        if tree is not None:
            tree.pipes = self._open_pipes
            tree.terminals = self._open_terminals

    def start(self) -> None:
        """Begin to watch for the exit and tell the protocol of the connection; called once, by `spawn()`.

        Raises OSError, before the protocol hears anything, if the loop cannot watch one more descriptor.
        """
        self._watch.start(self._exited)
        if subreaper.adopter() is not None:
            self._reap_orphans()
        deliver(self._loop, self, self._protocol.connection_made, self)

    # asyncio.SubprocessTransport

    def get_pid(self) -> int:
        """Return the child's pid, also after it was released."""
        return self._pid

    def get_returncode(self) -> int | None:
        """Return the code, or minus the signal's number; None while it runs and when the status was lost (`exit`)."""
        match self.exit:
            case Exited(code):
                return code
            case Signalled(number):
                return -number
            case _:
                return None

    def get_pipe_transport(self, fd: int) -> Reader | Writer | None:
        """Return the transport of the child's descriptor 0, 1 or 2, closed or not; None if it has no pipe there."""
        return self.stdin if fd == 0 else self.readers.get(fd)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self._protocol = cast("asyncio.SubprocessProtocol", protocol)

    def is_closing(self) -> bool:
        """Whether `close()` or `release()` was called."""
        return self._release_asked

    def send_signal(self, signal: int) -> None:
        """Signal the leader alone. Raises ProcessLookupError after its exit, PermissionError if it changed user."""
        if self.exit is not None:
            raise ProcessLookupError
        self._watch.send_signal(signal)

    def terminate(self) -> None:
        """Send SIGTERM to the leader alone; see `send_signal`."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the leader alone; see `send_signal`."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Kill the group unless the exit was seen, close the pipes, and release once it is. May be called again."""
        if self.exit is None:
            self.signal_group(signal.SIGKILL)
        self.release()
        if self._loop.is_closed():
            self._finish()  # nobody will tell of the exit

    # The tree

    @property
    def tree_limitation(self) -> str | None:
        """Return the word for what a signal to the tree may not have reached; None: nothing is known to escape."""
        return "tree-by-group" if self._lineage is None else self._lineage.limitation

    @property
    def out_of_memory(self) -> bool:
        """Whether the limit on the memory of the whole tree has killed a member; False once it is released."""
        return self._lineage is not None and self._lineage.out_of_memory

    def signal_group(self, number: int) -> bool:
        """Signal the group and all else of the tree; return whether at least one process, zombies included, took it.

        Never reaches a stranger: the leader's zombie is held until `release()`, after which this returns False, and
        whoever left the group is compared with what was seen of him (contract F3).
        """
        if self._released:
            return False
        if self._lineage is None:
            return group.signal_group(self._pid, number, held=self._watch.held())
        return self._lineage.signal(number)

    def group_members(self) -> tuple[int, ...] | None:
        """Return the pids of the tree's live members, the leader included; None where nobody can know."""
        return None if self._released or self._lineage is None else self._lineage.members()

    def press(self) -> tuple[int, ...] | None:
        """Give the last signal to members that appeared since; return the live ones as `group_members` does."""
        return self.group_members() if self._released or self._lineage is None else self._lineage.press()

    def survivors(self) -> tuple[int, ...] | None:
        """Return the pids of the live members, also after the release; None where nobody can know."""
        return None if self._lineage is None else self._lineage.members()

    def holders(self) -> tuple[int, ...] | None:
        """Return the pids that can write to a pipe or terminal which we still read; None where nobody can know."""
        return None if self._lineage is None else self._lineage.holders()

    # Pipes and ending

    def _open_pipes(self) -> tuple[int, ...]:
        return tuple(inode for reader in self.readers.values() if (inode := reader.inode()) is not None)

    def _open_terminals(self) -> tuple[str, ...]:
        readers = (reader for reader in self.readers.values() if isinstance(reader, TerminalReader))
        return tuple(device for reader in readers if (device := reader.device) is not None)

    def resize(self, size: Terminal) -> None:
        """Give the child's terminal another size; nothing if it has none, or it is closed."""
        for reader in self.readers.values():
            if isinstance(reader, TerminalReader):
                reader.resize(size)

    def unread(self, fd: int) -> int:
        """Return the bytes that wait in the pipe of descriptor 1 or 2 now; 0 if it is closed or there is none."""
        reader = self.readers.get(fd)
        return reader.unread() if reader else 0

    def release(self) -> None:
        """Close the pipes, reap the child and tell `connection_lost`, the last call; at the exit if it still runs.

        From then on its pid may belong to anybody. May be called again.
        """
        self._release_asked = True
        if self.stdin is not None:
            self.stdin.abort()
        for reader in self.readers.values():
            reader.close()
        if self.exit is not None:
            self._finish()

    def abandon(self) -> None:
        """Stop waiting for the exit of a child that cannot be killed: all but the process itself is given back.

        The receipt has to name what is left (contract F10). Should it die, the next start of a child reaps it.
        """
        given_up.remember(self._pid)
        self.release()
        self._finish()

    def _finish(self) -> None:
        if self._released:
            return
        self._released = True
        leaving.LIVE.pop(self, None)
        self.usage = self._watch.reap()
        self._watch.close()
        if self._lineage is not None:
            self._lineage.forget()
        # After the pipes' own losses, which are already queued.
        tell_later(self._loop, self._tell_lost)

    def _reap_orphans(self) -> None:
        if not self._released:
            subreaper.reap(LEADERS | GUARDS)
            self._loop.call_later(subreaper.REAP_SECONDS, self._reap_orphans)

    def _tell_lost(self) -> None:
        deliver(self._loop, self, self._protocol.connection_lost, None)

    def _exited(self, status: ExitStatus) -> None:
        self.exit = status
        deliver(self._loop, self, self._protocol.process_exited)
        if self._release_asked:
            self._finish()

    # What the pipes tell; called by Reader and Writer only

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Hand data on."""
        self._protocol.pipe_data_received(fd, data)

    def pipe_lost(self, fd: int, error: Exception | None) -> None:
        """Hand the end of a pipe on."""
        deliver(self._loop, self, self._protocol.pipe_connection_lost, fd, error)

    def pause_writing(self) -> None:
        """Hand on that stdin's buffer is above its high mark."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that stdin's buffer is below its low mark."""
        self._protocol.resume_writing()
