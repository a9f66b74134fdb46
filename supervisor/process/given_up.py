"""Children that outlived every signal and were given up: named in a receipt, and reaped once they have died (F3, F10).

Nothing waits for them, since that may be for ever (a process in state D): they are looked at whenever a child is
started, which is when a zombie too many could matter. One is known by pid and start time, so that a child which the
host started later, under the same pid, keeps its status.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .proc import process

if TYPE_CHECKING:
    from ..sansio.membership import Identity

_left: Final[dict[int, Identity]] = {}


def remember(pid: int) -> None:
    """A child of this process was given up; where nobody can see it, nobody will reap it."""
    found = process(pid)
    if found is not None:
        _left[pid] = found.identity


def reap() -> None:
    """Reap those that have died since, and forget those that somebody else has reaped. Never waits."""
    for pid, identity in tuple(_left.items()):
        found = process(pid)
        if found is not None and found.identity == identity and found.alive:
            continue
        _left.pop(pid, None)
        if found is not None and found.identity == identity:
            with suppress(ChildProcessError):  # in a fork of the host it is nobody's child
                os.waitpid(pid, os.WNOHANG)
