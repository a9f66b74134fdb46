"""System calls that count those which change the disk, and die, refuse or stop short at one of them."""

from __future__ import annotations

import errno
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Final

from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES: Final = frozenset({"write", "write_at"})
MUTATING: Final = WRITES | {
    "close",
    "create",
    "link",
    "make_directory",
    "remove_directory",
    "rename",
    "rename_exclusive",
    "reserve",
    "set_mode",
    "sync_directory",
    "sync_file",
    "truncate",
    "unlink",
    "unmask_directory",
}
"""`close` only of what may have been written."""
FREEING: Final = frozenset({"remove_directory", "set_mode", "unlink", "unmask_directory"})
"""Calls that need no room, so that none of them reports a full disk or quota."""
UNCOUNTED: Final = frozenset({"rename", "rename_exclusive", "sync_directory", "truncate"})
"""Calls that need no room of a user's quota."""
KILLS: Final = ("kill-before", "kill-after", "kill-within")
FAULTS: Final = ("EIO", "ENOSPC", "EDQUOT", "short")
KINDS: Final = (*KILLS, *FAULTS)
"""`kill-within`: half of a write was done. `ENOSPC` lasts: nothing is made or written from then on but the receipt,
whose room is reserved. `EIO` and `EDQUOT` are of one call. `short`: half of a write is done, which is no error."""
RESERVED: Final = ".receipt.reserved"


def applies(kind: str, call: str) -> bool:
    """Return whether a fault of this kind can happen at this call."""
    if kind in {"kill-within", "short"}:
        return call in WRITES
    if kind == "EDQUOT":
        return call not in FREEING | UNCOUNTED
    return kind != "ENOSPC" or call not in FREEING


class CrashingFiles(Files):
    """The real calls, but for the one that `kind` strikes at. Syncs are left out: a kill takes nothing from the cache.

    Args:
        kind: One of `KINDS`; None: nothing happens, the calls are only counted.
        point: At which of the counted calls, from 1 on.
        tell: Told of the fault, before anything follows from it.
        linking: The file system has no `renameat2`.
        syncing: Syncs are real.
    """

    def __init__(
        self,
        kind: str | None = None,
        point: int = 0,
        tell: Callable[..., None] | None = None,
        *,
        linking: bool = False,
        syncing: bool = False,
    ) -> None:
        self._kind = kind
        self._point = point
        self.tell = tell
        self._linking = linking
        self._syncing = syncing
        self._full = False
        self._places: dict[int, str] = {}
        self._writable: set[int] = set()
        self._counting = threading.Lock()
        self.counted: list[str] = []

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Wrap each public method of `Files`."""
        found = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(Files, name):
            return found
        return lambda *args, **kwargs: self._call(name, found, args, kwargs)

    def _call(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        counts = name in MUTATING and (name != "close" or args[0] in self._writable)
        with self._counting:
            if counts:
                self.counted.append(name)
            struck = counts and len(self.counted) == self._point and self._kind is not None
        if self._linking and name == "rename_exclusive" and not struck:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if struck:
            return self._strike(name, real, args, kwargs)
        if self._full and self._needs_room(name, args):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._do(name, real, args, kwargs)

    def _do(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        if name.startswith("sync") and not self._syncing:
            return None
        if name == "close":
            self._writable.discard(args[0])
        result = real(*args, **kwargs)
        if name in {"create", "open_directory", "open_existing"}:
            self._places[result] = f"{self._places.get(kwargs.get('parent') or -1, '')}/{args[0]}"
            if name == "create" or kwargs.get("flags", os.O_RDONLY) & os.O_ACCMODE:
                self._writable.add(result)
        return result

    def _strike(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        kind = self._kind
        if kind == "kill-before":
            self._die()
        if kind in {"kill-within", "short"} and name in WRITES:
            data = args[1] if name == "write_at" else b"".join(args[1])
            half = data[: (len(data) + 1) // 2]
            count = real(args[0], half if name == "write_at" else [half], **kwargs)
            if kind == "kill-within":
                self._die()
            return count
        if kind == "kill-after":
            self._do(name, real, args, kwargs)
            self._die()
        if kind not in {"EIO", "ENOSPC", "EDQUOT"} or not applies(kind, name):
            return self._do(name, real, args, kwargs)
        if self.tell is not None:
            self.tell("fault", call=name, place=self._place(args, kwargs))
        if name == "close":  # close(2) releases the descriptor whatever it reports
            self._do(name, real, args, kwargs)
        self._full = kind == "ENOSPC"
        number = getattr(errno, kind)
        raise OSError(number, os.strerror(number))

    def _needs_room(self, name: str, args: tuple[Any, ...]) -> bool:
        if name in {"create", "link", "make_directory", "reserve"}:
            return True
        return name in WRITES and not self._places.get(args[0], "").endswith(RESERVED)

    def _place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return what a call is on, as a path from where the conversation was opened."""
        if isinstance(args[0], int):
            return self._places.get(args[0], "")
        return f"{self._places.get(kwargs['parent'], '')}/{args[0]}"

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
