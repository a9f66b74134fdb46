"""Where the command line keeps its captures: which directory, and how it comes into being."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import StorageError
from ..storage import Conversation, LocalStorage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..limits import Limits
    from ..storage.conversation import Durability

VARIABLE: Final = "SPOOLVISOR_DIR"
NAME: Final = "spoolvisor"


def conversation_directory(given: str | None, environment: Mapping[str, str]) -> Path | None:
    """Return the directory to use: the given one, `$SPOOLVISOR_DIR`'s, or one in the user's state directory.

    None where there is no home directory either. An empty variable counts as unset, and a relative
    `$XDG_STATE_HOME` is ignored: XDG base directory specification 0.8, "Environment variables".
    """
    if given is not None:
        return Path(given)
    if chosen := environment.get(VARIABLE):
        return Path(chosen)
    state = environment.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return Path(state, NAME)
    try:
        return Path.home() / ".local" / "state" / NAME
    except RuntimeError:  # no $HOME, and no entry in the user database: a container's arbitrary uid
        return None


class MadeOnDemand:
    """Storage whose directory is made if it is missing; it remembers why there is none, to be told at once [D2]."""

    def __init__(self) -> None:
        self._storage: Final = LocalStorage()
        self.fault: StorageError | None = None

    async def open(self, directory: Path, *, limits: Limits, durability: Durability) -> Conversation:
        """Return the opened conversation. Raises: StorageError, which is remembered."""
        try:
            await self._storage.create_directory(directory, deadline=limits.stall_timeout, durability=durability)
            return await self._storage.open(directory, limits=limits, durability=durability)
        except StorageError as error:
            self.fault = error
            raise
