"""The supervisors of the conversations: each is open while a job of its log directory lives.

gptme does not tell reliably when a conversation ends: a hook for it runs in whichever thread removes the last session,
and that thread may hold no hooks. So nothing is kept for a conversation that runs nothing, and there is nothing to
clean up after it: what a job has left is read from its files.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from adapters.blocking import BlockingSupervisor, WrongProcess
from supervisor import SupervisorError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from supervisor import Supervisor

log: Final = logging.getLogger("spoolvisor.gptme")

OPEN_SECONDS: Final = 15.0
"""For which a directory that does not answer holds a start up; then the command runs without one."""
CLOSE_SECONDS: Final = 30.0
"""For which a supervisor without live jobs may take to close; then it goes on by itself."""


class Owners:
    """Supervisors by log directory. Its methods may be called from any thread.

    Args:
        secrets: Values that are masked besides those of credential-named variables, by name.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets: Final = dict(secrets or {})
        self._lock: Final = threading.Lock()
        self._open: Final[dict[Path | None, tuple[BlockingSupervisor, int]]] = {}

    def take(self, directory: Path | None) -> BlockingSupervisor:
        """Return the open supervisor of a directory, or one of none where it does not answer; `give_back` ends it."""
        with self._lock:
            known = self._open.get(directory)
            if known is not None and _is_ours(known[0]):
                supervisor, users = known
            else:
                supervisor, users = self._opened(directory), 0
            self._open[directory] = supervisor, users + 1
            return supervisor

    def give_back(self, directory: Path | None, supervisor: BlockingSupervisor) -> None:
        """Close the supervisor if this was its last job."""
        with self._lock:
            known = self._open.get(directory)
            if known is None or known[0] is not supervisor:
                return
            if known[1] > 1:
                self._open[directory] = supervisor, known[1] - 1
                return
            del self._open[directory]
        try:
            supervisor.close(CLOSE_SECONDS)
        except TimeoutError:
            log.warning("the supervisor of %s takes long to close", directory)

    @property
    def directories(self) -> tuple[Path | None, ...]:
        """The directories whose supervisor is open."""
        with self._lock:
            return tuple(self._open)

    def _opened(self, directory: Path | None) -> BlockingSupervisor:
        supervisor = BlockingSupervisor(directory, secrets=self._secrets)
        try:
            return supervisor.open(OPEN_SECONDS)
        except TimeoutError:
            log.warning("%s does not answer: its job runs without captured files", directory)
            return BlockingSupervisor(None, secrets=self._secrets).open()


def _is_ours(supervisor: BlockingSupervisor) -> bool:
    """Return whether it was not made before a fork of this process, and is not closed."""
    try:
        supervisor.call(_answer)
    except (SupervisorError, WrongProcess, RuntimeError):
        return False
    return True


async def _answer(_: Supervisor) -> None:
    """Do nothing, which only an open supervisor does."""
