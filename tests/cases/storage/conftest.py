"""A disk whose calls are logged, and fail or are interfered with where a test says so."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor.storage import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOGGED: Final = frozenset(
    {"close", "create", "link", "make_directory", "rename_exclusive", "sync_directory", "sync_file", "unlink", "write"}
)


class JournalledFiles(Files):
    """The real calls. Those that matter for durability are logged as (call, the name of what it is on)."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.faults: dict[tuple[str, str], list[int]] = {}
        """The errnos that the next calls of that kind, on what has that name, fail with."""
        self.before: dict[tuple[str, str], Callable[[], object]] = {}
        """What somebody else does just before such a call."""
        self._lock = threading.Lock()

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the call is
        """Wrap each call."""
        found = super().__getattribute__(name)
        if name.startswith("_") or not hasattr(Files, name):
            return found

        def call(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - as the call's
            key = (name, named(args[0]))
            with self._lock:
                if name in LOGGED:
                    self.log.append(key)
                numbers = self.faults.get(key)
                number = numbers.pop(0) if numbers else None
                interference = self.before.pop(key, None)
            if interference is not None:
                interference()
            if number is not None:
                if name == "close":  # close(2) releases the descriptor whatever it reports
                    found(*args, **kwargs)
                raise OSError(number, os.strerror(number))
            return found(*args, **kwargs)

        return call

    def position(self, call: str, what: str, *, last: bool = False) -> int:
        """Return where a call stands in the log: its first one, or its last one."""
        places = [index for index, key in enumerate(self.log) if key == (call, what)]
        return places[-1 if last else 0]


def named(what: object) -> str:
    """Return the last part of a name, or of the name that a descriptor's file has now."""
    return (Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else Path(str(what))).name


@pytest.fixture
def journal() -> JournalledFiles:
    """Return such files."""
    return JournalledFiles()


@pytest.fixture
def umask() -> Iterator[Callable[[int], object]]:
    """Return a function that sets the umask for the rest of the test."""
    before = os.umask(0o077)
    os.umask(before)
    yield os.umask
    os.umask(before)
