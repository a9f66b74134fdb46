"""What a command may use and as whom it runs, checked before anything is started."""

from __future__ import annotations

import grp
import math
import os
import pwd
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

RLIMITS: Final[dict[str, int]] = {
    name.removeprefix("RLIMIT_").lower(): number
    for name, number in vars(resource).items()
    if name.startswith("RLIMIT_") and isinstance(number, int)
}
"""The limits of this system by the names that bash's ulimit and setrlimit(2) have in common."""

NICENESS: Final = range(-20, 20)
OOM_SCORES: Final = range(-1000, 1001)
UMASKS: Final = range(0o1000)
IDENTIFIERS: Final = range(2**32 - 1)
"""All but the last, which means "leave it" to setresuid(2)."""

Amount = int | float
"""A whole number, or `math.inf` for no limit."""


class Refused(OSError):
    """The system refused a limit, which `limit` names."""

    def __init__(self, number: int, limit: str) -> None:
        super().__init__(number, os.strerror(number))
        self.limit: Final = limit


class Ids(NamedTuple):
    """As whom a command is to run, in numbers; None: as the supervisor."""

    user: int | None
    group: int | None
    groups: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a command may use, and as whom it runs; None leaves what it would inherit.

    All of it is in force before the command's first instruction, and so for everything that it starts.

    Raises:
        TypeError: at construction, for a value of the wrong type.
        ValueError: at construction, for an unknown name, a number out of range, a soft limit above its hard one, or a
            user or group that does not exist.
    """

    rlimits: Mapping[str, Amount | tuple[Amount, Amount]] = field(
        default_factory=dict[str, Amount | tuple[Amount, Amount]]
    )
    """By the names of setrlimit(2) in small letters ("nofile", "cpu", "as", ...), in its units: one number for both
    limits or (soft, hard); `math.inf` for none. A signal by which one acts ("cpu": SIGXCPU and SIGKILL, "fsize":
    SIGXFSZ) is an exit by that signal."""
    nice: int | None = None
    """The niceness itself, -20 to 19, not an increment."""
    oom_score_adj: int | None = None
    """-1000 to 1000; Linux."""
    umask: int | None = None
    """0 to 0o777."""
    user: str | int | None = None
    """Name or number. With its own primary and supplementary groups, unless `group` says otherwise."""
    group: str | int | None = None
    """Name or number. Without a `user` the supplementary groups stay."""
    memory_bytes: int | None = None
    """Of the whole tree, by a cgroup; past it the tree is killed, and the state is `cancelled` / `memory`."""
    pids: int | None = None
    """Processes and threads of the whole tree at one moment, by a cgroup; a fork past it fails with EAGAIN."""

    def __post_init__(self) -> None:
        """Check everything, and keep a copy of the mapping."""
        if not _is_mapping(self.rlimits):
            raise TypeError("rlimits must be a mapping of names to numbers")
        object.__setattr__(self, "rlimits", dict(self.rlimits))
        self.numbers()
        for name, allowed in (("nice", NICENESS), ("oom_score_adj", OOM_SCORES), ("umask", UMASKS)):
            _check_number(name, getattr(self, name), allowed)
        for name in ("memory_bytes", "pids"):
            _check_number(name, getattr(self, name), range(1, 2**63))
        self.ids()

    def numbers(self) -> tuple[tuple[str, int, int, int], ...]:
        """Return name, number, soft and hard limit of each resource limit."""
        found: list[tuple[str, int, int, int]] = []
        for name, value in self.rlimits.items():
            if name not in RLIMITS:
                raise ValueError(f"rlimits: this system has no limit {name!r}; it has {', '.join(sorted(RLIMITS))}")
            both = value if isinstance(value, tuple) else (value, value)
            if not _are_two_numbers(both):
                raise TypeError(f"rlimits: {name} must be a number or (soft, hard)")
            if not all(part >= 0 and (part == math.inf or part == int(part)) for part in both) or both[0] > both[1]:
                raise ValueError(f"rlimits: {name} must be whole numbers from 0 on or inf, the soft one not above")
            soft, hard = (resource.RLIM_INFINITY if part == math.inf else int(part) for part in both)
            if max(soft, hard) >= 2**63:
                raise ValueError(f"rlimits: {name} is above what the system can count")
            found.append((name, RLIMITS[name], soft, hard))
        return tuple(found)

    def ids(self) -> Ids:
        """Return the numbers of user and groups, from the system's databases. Raises: ValueError, TypeError."""
        group = None if self.group is None else _group(self.group)
        if self.user is None:
            return Ids(None, group, None)
        entry = _user(self.user)
        if entry is None:
            assert isinstance(self.user, int)
            if group is None:
                raise ValueError("user: no user has this number, so a group must be given, too")
            return Ids(self.user, group, ())
        primary = entry.pw_gid if group is None else group
        return Ids(entry.pw_uid, primary, tuple(os.getgrouplist(entry.pw_name, primary)))


def _user(user: object) -> pwd.struct_passwd | None:
    if isinstance(user, str):
        try:
            return pwd.getpwnam(user)
        except KeyError:
            raise ValueError("user: no user has this name") from None
    _check_number("user", user, IDENTIFIERS)
    assert isinstance(user, int)
    try:
        return pwd.getpwuid(user)
    except KeyError:
        return None


def _group(group: object) -> int:
    if isinstance(group, str):
        try:
            return grp.getgrnam(group).gr_gid
        except KeyError:
            raise ValueError("group: no group has this name") from None
    _check_number("group", group, IDENTIFIERS)
    assert isinstance(group, int)
    return group


def _check_number(name: str, value: object, allowed: range) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number")
    if value not in allowed:
        raise ValueError(f"{name} must be from {allowed[0]} to {allowed[-1]}")


def _are_two_numbers(values: tuple[object, ...]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return len(numbers) == len(values) == len(("soft", "hard"))


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)
