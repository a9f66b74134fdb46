"""A disk whose process is killed at a call, for the programs beside it."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Collection


class KillingFiles(Files):
    """Files that kill the process before call number `fatal`; a write is half done then. Syncs are left out."""

    def __init__(self, fatal: int | None, *, uncounted: Collection[str] = ()) -> None:
        self._fatal = fatal
        self._uncounted = uncounted
        self._calls = 0
        self._count_lock = threading.Lock()

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Count each public method of `Files`."""
        found = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(Files, name) or name in self._uncounted:
            return found

        def call(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - whatever the call takes
            with self._count_lock:
                self._calls += 1
                fatal = self._calls == self._fatal
            if fatal:
                if name == "write":
                    os.write(args[0], bytes(args[1][0])[: len(args[1][0]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return None if name.startswith("sync") else found(*args, **kwargs)

        return call

    @property
    def number(self) -> int:
        """How many calls there were."""
        return self._calls
