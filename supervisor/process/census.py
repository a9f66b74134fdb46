"""The processes of the system, looked at as seldom as possible (contract F3).

Reading one process takes 10 µs and more, and with a thousand commands a thousand looks would each read a thousand
processes. Kinship is never acquired: who was no member of a tree when it was read becomes none later. So the commands
of this process share one full look for as long as what has been started since can be told by its pid, and each look
of theirs reads only that.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ..sansio.membership import Identity, Process, could_descend
from . import proc

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

LASTING_SECONDS: Final = 1.0
"""After so long there is a new full look."""
NEWCOMERS: Final = 64
"""And after so many newcomers, each of which every look would read."""


class Look(NamedTuple):
    """What is seen of the system's processes."""

    processes: tuple[Process, ...]
    fresh: frozenset[int]
    """The pids of those that were read for this look; the others are shown as they were, and may have ended since."""


class Census:
    """The last full look, for any number of trees and threads."""

    def __init__(self, root: Path) -> None:
        self._root: Final = root
        self._lock: Final = threading.Lock()
        self._base: dict[int, Process] = {}
        self._newest: int | None = None
        self._at = 0.0

    def younger(
        self, leader: Identity, leaders: Collection[int], notice: Callable[[Process], object] = lambda _: None
    ) -> Look | None:
        """Return the leader and all processes that are no older; None without `/proc`. No other leader is looked at.

        The newest are read first, and `notice` is called as soon as one is read that is no older than the leader, for
        some live no longer than a look takes. A process that is forked meanwhile can be
        missed, if its parent ends meanwhile, too.
        """
        with self._lock:
            return self._younger(
                leader, leaders, lambda process: process.identity.start >= leader.start and notice(process)
            )

    def _younger(self, leader: Identity, leaders: Collection[int], notice: Callable[[Process], object]) -> Look | None:
        now = time.monotonic()
        newest = proc.newest(self._root)
        try:
            names = filter(str.isdecimal, os.listdir(self._root))
        except OSError:
            return None
        pids = sorted({int(name) for name in names} - frozenset(leaders), reverse=True)
        fresh = self._newcomers(pids, now)
        if fresh is None or len(fresh) > NEWCOMERS:
            read = self._base = self._read(pids, notice)
            self._newest, self._at = newest, now
        else:
            read = self._read(fresh, notice)
        read = read | self._read([leader.pid], notice)
        seen = {pid: self._base[pid] for pid in pids if pid in self._base} | read
        young = tuple(process for process in seen.values() if process.identity.start >= leader.start)
        return Look(young, frozenset(read))

    def _newcomers(self, pids: list[int], now: float) -> list[int] | None:
        """Return which pids may have been given out since the full look; None if that cannot be told."""
        age = now - self._at
        if self._newest is None or age >= LASTING_SECONDS:
            return None
        pid_max = proc.pid_max(self._root)
        return [pid for pid in pids if could_descend(pid, self._newest, age=age, pid_max=pid_max)]

    def _read(self, pids: list[int], notice: Callable[[Process], object]) -> dict[int, Process]:
        found: dict[int, Process] = {}
        for pid in pids:
            process = proc.process(pid, self._root)
            if process is not None:
                found[pid] = process
                notice(process)
        return found


@functools.cache
def census(root: Path) -> Census:
    """Return the one of this process."""
    return Census(root)
