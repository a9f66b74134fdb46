"""What is still running when the interpreter ends though nobody closed its supervisor (contract F10).

A loop that was dropped, and `sys.exit` in a host that runs its loop in a thread, skip every `finally`. The commands are
then killed with their trees: there is no loop any more that could grant a grace. Their zombies go with the host.
"""

from __future__ import annotations

import atexit
import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .transport import Child

LIVE: Final[dict[Child, int]] = {}
"""The children that are not released, and which process started each: a fork of the host has none of its own."""


def kill_what_lives() -> None:
    """Kill each tree that is ours."""
    for child, owner in list(LIVE.items()):
        if owner == os.getpid() and child.exit is None:
            child.signal_group(signal.SIGKILL)


atexit.register(kill_what_lives)
