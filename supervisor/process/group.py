"""The process group of one child: the mechanism that every system has (contract F3).

Each child leads a session and a group whose id is its pid. The id stays taken while the leader is alive or an
unreaped zombie, *and* while any member is left. Only once the leader was reaped by somebody and the group is empty
can the number come back; it then comes back as a process of that pid, which is how a stranger is told here.
"""

from __future__ import annotations

import os


def pid_in_use(pid: int) -> bool:
    """Whether a process of this pid exists, ours to signal or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def signal_group(leader: int, number: int, *, held: bool) -> bool:
    """Send a signal to the group of `leader` and return whether at least one process took it.

    `held` says that the leader is alive or an unreaped zombie. If it is not and the pid is in use, then it is a
    stranger's, and nothing is sent (field report H5-018). False also if every member belongs to another user.
    """
    if not held and pid_in_use(leader):
        return False
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
