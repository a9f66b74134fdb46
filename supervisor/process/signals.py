"""A signal to one process that is no child of ours, and to nobody else (contract F3)."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from .proc import ROOT, process

if TYPE_CHECKING:
    from pathlib import Path

    from ..sansio.membership import Identity


def send(target: Identity, number: int, root: Path = ROOT) -> bool:
    """Signal exactly that process; False if it is gone, its pid is somebody else's by now, or it may not be signalled.

    A pidfd is taken before the start is compared, so that the pid cannot change hands in between. Without pidfds
    (kernels before 5.3, sandboxes) a few microseconds are left in which it can.
    """
    descriptor = _pidfd(target.pid)
    try:
        found = process(target.pid, root)
        if found is None or found.identity != target:
            return False
        if descriptor is None:
            os.kill(target.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # no such process, no such call, no descriptor left: the start is compared anyway
        return None
