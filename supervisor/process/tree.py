"""The process group of one child: who is in it, and how to signal all of it (contract F3).

Each child leads a session and a group whose id is its pid. The id stays taken while the leader is alive or an
unreaped zombie, *and* while any member is left. Only once the leader was reaped by somebody and the group is empty
can the number come back; it then comes back as a process of that pid, which is how a stranger is told here.
"""

from __future__ import annotations

import os
from pathlib import Path

DEAD = frozenset((b"Z", b"X", b"x"))
"""proc_pid_stat(5): zombies and the dead. A zombie counts as dead: no signal changes anything about it."""


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


def group_left(leader: int) -> bool:
    """Whether the group of a leader that was reaped still has members, of whatever user, zombies included.

    Where its pid is in use again the group had ended before: the number was not free until then.
    """
    if pid_in_use(leader):
        return False
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def state_and_group(stat: bytes) -> tuple[bytes, int]:
    """Return the state letter and the group id from the text of `/proc/<pid>/stat`.

    The second field is the program's name in parentheses; it may itself contain blanks and parentheses, so the
    fields are counted from the last one.
    """
    state, _parent, group = stat[stat.rindex(b")") + 2 :].split(b" ", 3)[:3]
    return state, int(group)


def group_members(leader: int, proc: Path = Path("/proc")) -> tuple[int, ...] | None:
    """Return the pids of the group's live members, its leader included, in no order; None if `proc` cannot tell.

    One directory listing and one small read for each process of the system: about 10 µs each. A member that is
    forked meanwhile can be missed, so "empty" is final only once the killed ones are gone too.
    """
    if not (proc / "self" / "stat").exists():
        return None
    members: list[int] = []
    for name in os.listdir(proc):
        if not name.isdecimal():
            continue
        try:
            descriptor = os.open(f"{proc}/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # it ended since the listing
        try:
            state, group = state_and_group(os.read(descriptor, 512))
        except (OSError, ValueError):
            continue  # ESRCH: it ended since the open
        finally:
            os.close(descriptor)
        if group == leader and state not in DEAD:
            members.append(int(name))
    return tuple(members)
