"""Who belongs to a command, given what the system shows of its processes [F3].

A command's tree has no register of its own, so each process is judged by what it carries. Any one mark is enough:

- it is the leader, or in the leader's process group or session: the kernel keeps both numbers taken while a member is
  left, so they mean the leader's as long as nobody else has the leader's pid;
- it is marked: its environment names the job (`VARIABLE`), which stays with every descendant that does not clear it; or
  it has the writing end of the job's pipe, which nobody outside the tree was ever given; or it is in the job's cgroup;
- its parent is a member: what cleared its environment and left the session, but whose parent still lives;
- it was a member once: `known` identities stay members when their parent dies;
- it was handed to us as an orphan, where nobody else can have left it (`adopter`).

None of it counts for a process that is older than the leader: a number or a copied environment is then no kinship.
A process is a pid *and* a start time; a pid alone may be somebody else's by the next moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

VARIABLE: Final = "SPOOLVISOR_JOB"
"""Names the jobs that a process belongs to, outermost first, separated by colons."""
NESTED_MARKS: Final = 16
"""Of supervisors inside supervisors the innermost stay: the variable must not grow for ever (execve(2), E2BIG)."""
DEAD: Final = frozenset("ZXx")
"""proc_pid_stat(5): zombies and the dead. A zombie counts as dead: no signal changes anything about it."""
PIDS_PER_SECOND: Final = 200_000
"""More pids (threads take one, too) than a machine of many processors gives out in a second."""


class Identity(NamedTuple):
    """One process for good: pids come back, but not with the same start."""

    pid: int
    start: int
    """In ticks since the boot."""


@dataclass(frozen=True, slots=True)
class Process:
    """What the system shows of one process."""

    identity: Identity
    state: str
    """The letter of proc_pid_stat(5)."""
    parent: int
    group: int
    session: int
    marked: bool = False
    """Its environment names the job, it can write to the job's pipe, or it is in the job's cgroup."""

    @property
    def pid(self) -> int:
        """Return its number alone."""
        return self.identity.pid

    @property
    def alive(self) -> bool:
        """Whether it is more than an entry that waits to be reaped."""
        return self.state not in DEAD


@dataclass(frozen=True, slots=True)
class Family:
    """What is known of a command before its processes are looked at."""

    leader: Identity
    known: frozenset[Identity] = frozenset()
    """Members of earlier looks."""
    adopter: int | None = None
    """The process whose children can only be the leader or orphans of its tree; None: there is no such process."""


def members(processes: Iterable[Process], family: Family) -> tuple[Process, ...]:
    """Return the members of the family among `processes`, dead ones too, by pid."""
    young = {process.pid: process for process in processes if process.identity.start >= family.leader.start}
    leader = young.get(family.leader.pid)
    # Somebody else under the leader's number: group and session were given up before it could have that number.
    trusted = leader is None or leader.identity == family.leader
    found = {process.pid: process for process in young.values() if _bears_a_mark(process, family, trusted=trusted)}
    children: dict[int, list[Process]] = {}
    for process in young.values():
        children.setdefault(process.parent, []).append(process)
    fresh = list(found.values())
    while fresh:
        parent = fresh.pop()
        for child in children.get(parent.pid, ()):
            if child.pid not in found and child.identity.start >= parent.identity.start:
                found[child.pid] = child
                fresh.append(child)
    return tuple(found[pid] for pid in sorted(found))


def _bears_a_mark(process: Process, family: Family, *, trusted: bool) -> bool:
    number = family.leader.pid
    return (
        process.identity == family.leader
        or (trusted and number in {process.group, process.session})
        or process.marked
        or process.identity in family.known
        or process.parent == family.adopter
    )


def could_descend(pid: int, leader: int, *, age: float, pid_max: int) -> bool:
    """Whether a process of that pid can be younger than a leader that was started `age` seconds ago.

    Pids are given out in a circle, so a smaller one is older unless the circle may have been closed since.
    """
    return pid > leader or leader + PIDS_PER_SECOND * age >= pid_max


def with_mark(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return the environment with the job's mark behind those that it inherits."""
    outer = environment.get(VARIABLE, "").split(":")
    marks = [*filter(None, outer), mark][-NESTED_MARKS:]
    return {**environment, VARIABLE: ":".join(marks)}


def names_mark(environment: bytes, mark: str) -> bool:
    """Whether an environment, as `/proc/<pid>/environ` has it, names the job."""
    wanted = mark.encode()
    return any(wanted in value.split(b":") for value in _values(environment.split(b"\0")))


def _values(entries: Sequence[bytes]) -> Iterator[bytes]:
    prefix = VARIABLE.encode() + b"="
    return (entry.removeprefix(prefix) for entry in entries if entry.startswith(prefix))


def parse_stat(text: bytes) -> Process:
    """Return the process of a `/proc/<pid>/stat` text. Raises ValueError for one that is cut short.

    The second field is the program's name in parentheses; it may itself contain blanks and parentheses, so the
    fields are counted from the last one.
    """
    head, _, rest = text.rpartition(b") ")
    fields = rest.split()
    if len(fields) < _START + 1:
        raise ValueError("a process's status is cut short")
    pid = int(head.partition(b" ")[0])
    return Process(
        Identity(pid, int(fields[_START])), fields[0].decode("ascii"), int(fields[1]), int(fields[2]), int(fields[3])
    )


_START: Final = 19
"""`starttime` is field 22; the fields after the name are counted from 0."""
