"""Orphans that come to this process instead of to init: prctl(2), PR_SET_CHILD_SUBREAPER (contract F3).

An orphan that left its session and cleared its environment bears no mark, but it cannot choose who adopts it. This is
state of the whole host application, and only the host knows whether it has children of its own, so it is asked for:
`adopt_orphans`. The command line does, whose only child is the command.
"""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .proc import children

if TYPE_CHECKING:
    from collections.abc import Collection

PR_SET_CHILD_SUBREAPER: Final = 36  # include/uapi/linux/prctl.h
REAP_SECONDS: Final = 1.0
"""How often orphans are looked for: they cost a pid each until then."""
SETTLED_SECONDS: Final = 0.5

_adopting: set[int] = set()
"""The pid for which it was asked: a fork of that process is no subreaper."""
_seen: dict[int, float] = {}
"""Children that are no commands, and when each was seen first."""


def adopt_orphans() -> bool:
    """Let the orphans of commands become children of this process, and count as theirs; whether the system can.

    Only for a process without children besides those of its supervisor: any child of it that is no command itself is
    ended with the command that runs, and reaped. With several commands at once orphans that bear no mark are let
    alone, for nobody knows whose they are. It cannot be taken back, and holds until the process ends.
    """
    try:
        done = bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except AttributeError:  # not Linux
        return False
    if done:
        _adopting.add(os.getpid())
    return done


def adopter() -> int | None:
    """Return this process's pid if it adopts orphans."""
    pid = os.getpid()
    return pid if pid in _adopting else None


def reap(leaders: Collection[int]) -> None:
    """Take the zombies of adopted orphans away, which nobody else will. Never waits.

    Only those that were seen a while ago: a command that is being started is a child of ours, too, and not yet among
    `leaders`.
    """
    now = time.monotonic()
    orphans = (children(os.getpid()) or frozenset()) - frozenset(leaders)
    for pid in _seen.keys() - orphans:
        del _seen[pid]
    for pid in orphans:
        if now - _seen.setdefault(pid, now) >= SETTLED_SECONDS:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
