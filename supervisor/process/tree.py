"""The whole tree of one command: one facade over what the system offers to see and to end it (contract F3).

`group` is what every system has. Where there is `/proc`, `proc` shows who else belongs to the command and
`sansio.membership` judges it; `signals` reaches those outside the group, and `cgroup` those that fork faster than that.
`subreaper` adds orphans without any mark.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..sansio.membership import Family, Identity, Process, members
from . import census, cgroup, group, proc, signals, subreaper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from .cgroup import Enclosure

REUSE_SECONDS: Final = 0.01
"""For so long a look is good enough for the signals that follow one another (TERM, CONT)."""
KILL_ROUNDS: Final = 16
"""How often a killed tree is looked at for those that were forked meanwhile before the loop gets its turn."""
PLAIN_ROUNDS: Final = 4
"""So many of them do without a cgroup: hardly a tree needs more than two."""
EMPTY_LOOKS: Final = 8
"""On a machine that always starts something, so many looks have to do."""
LEADERS: Final[set[int]] = set()
"""The pids of all commands of this process that were not released: none of them is in another's tree."""
GUARDS: Final[set[int]] = set()
"""The pids of this process's guards, which are in nobody's tree."""


class Tree:
    """The processes of one command. Used from one thread; `held` says whether the leader's pid is certainly its own."""

    def __init__(
        self,
        pid: int,
        mark: str,
        held: Callable[[], bool],
        root: Path = proc.ROOT,
        enclosure: Enclosure | None = None,
        leader: Identity | None = None,
    ) -> None:
        self._pid: Final = pid
        self._mark: Final = mark
        self._held: Final = held
        self._enclosure: Enclosure | None = enclosure
        self._root: Final = root
        self._mounted: Final = (root / "self" / "stat").exists()
        self._visible = self._mounted
        seen = proc.process(pid, root) if leader is None else None
        self.pipes: Callable[[], Collection[int]] = tuple
        """Return the inodes of the command's pipes that are still open."""
        self.terminals: Callable[[], Collection[str]] = tuple
        """Return the device of its terminal that is still open; anybody may open that, so it makes no member."""
        self._leader: Final = leader or (seen.identity if seen is not None else Identity(pid, _ticks_now()))
        self._known: frozenset[Identity] = frozenset()
        self._strangers: set[Identity] = set()
        self._told: dict[Identity, str] = {}
        self._told_as_group: dict[Identity, str] = {}
        self._number: int | None = None
        self._members: tuple[Process, ...] = ()
        self._looked = -REUSE_SECONDS
        LEADERS.add(pid)

    def forget(self) -> None:
        """The leader is released: its pid may be anybody's. Survivors of a cgroup go where they had been."""
        LEADERS.discard(self._pid)
        if self._enclosure is not None:
            self._enclosure.remove()

    @property
    def limitation(self) -> str | None:
        """Return the word for what an ending of this tree may not have reached; None: nothing is known to escape."""
        if not self._visible:
            return "tree-by-group"
        return "tree-by-snapshot" if self._adopter() is None else None

    @property
    def out_of_memory(self) -> bool:
        """Whether the limit on the memory of all members has killed one."""
        return self._enclosure is not None and self._enclosure.out_of_memory()

    def signal(self, number: int) -> bool:
        """Signal every member; return whether at least one process, the leader's zombie included, took it."""
        self._look(recent=number == signal.SIGCONT)
        if number != signal.SIGCONT:
            self._number = number
            self._told = {}
            self._told_as_group = {p.identity: self._program(p) for p in self._members if p.group == self._pid}
        reached = group.signal_group(self._pid, number, held=self._held())
        for process in self._members:
            if process.alive and process.group != self._pid:
                reached |= self._tell(process, number)
        if number == signal.SIGKILL:
            self._kill_the_rest()
        return reached

    def press(self) -> tuple[int, ...] | None:
        """Give the last signal to members that appeared since; return the live ones, None where nobody can know.

        Between two reads of `/proc` a process can fork and end, so an empty tree is one that was empty twice, the
        second time while nothing was started anywhere, or again and again.
        """
        for number in range(EMPTY_LOOKS):
            before = proc.newest(self._root)
            self._look()
            if self._members_alive_are_told() or not self._visible:
                break
            if number > 0 and before is not None and before == proc.newest(self._root):
                break
        return self._live() if self._visible else None

    def members(self) -> tuple[int, ...] | None:
        """Return the pids of the live members, the leader included; None where nobody can know."""
        self._look()
        return self._live() if self._visible else None

    def holders(self) -> tuple[int, ...] | None:
        """Return who can still write to the pipes that are open; None if nobody is found, for somebody must.

        Processes that are older than the command are not looked at, nor those of other users, without the right to.
        """
        held: tuple[int | str, ...] = (*self.pipes(), *self.terminals())
        return proc.holders(self.members() or (), held, self._root) or None

    def _live(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self._members if process.alive)

    def _adopter(self) -> int | None:
        return subreaper.adopter() if not LEADERS - {self._pid} else None

    def _look(self, *, recent: bool = False) -> None:
        if not self._mounted or (recent and time.monotonic() - self._looked < REUSE_SECONDS):
            return
        enclosed = frozenset[int]() if self._enclosure is None else self._enclosure.members()
        pipes = self.pipes()
        marked: dict[Identity, bool] = {}

        def notice(process: Process) -> None:
            if process.identity not in self._strangers:
                marked[process.identity] = process.pid in enclosed or self._is_marked(process, pipes)

        look = census.census(self._root).younger(self._leader, LEADERS | GUARDS, notice)
        # Where not even this process can be read, "nobody" would be a claim.
        self._visible = look is not None and proc.process(os.getpid(), self._root) is not None
        seen, fresh = ((), frozenset[int]()) if look is None else look
        self._strangers.intersection_update(process.identity for process in seen)
        for process in seen:
            if process.pid not in fresh:
                notice(process)
        judged = [replace(process, marked=marked.get(process.identity, False)) for process in seen]
        found = members(judged, Family(self._leader, self._known, self._adopter()))
        self._strangers.difference_update(process.identity for process in found)
        now = (process if process.pid in fresh else self._again(process) for process in found)
        self._members = tuple(process for process in now if process is not None and process.pid != os.getpid())
        self._known = frozenset(process.identity for process in self._members if process.alive)
        self._looked = time.monotonic()

    def _again(self, process: Process) -> Process | None:
        found = proc.process(process.pid, self._root)
        return found if found is not None and found.identity == process.identity else None

    def _is_marked(self, process: Process, pipes: Collection[int]) -> bool:
        """Whether it bears a mark. If not it counts as a stranger from now on, unless it may be in an exec."""
        if not process.alive:
            return False
        named = proc.marked(process.pid, self._mark, self._root)
        marked = named or bool(pipes and proc.holders((process.pid,), pipes, self._root))
        if not marked and named is not None:
            self._strangers.add(process.identity)
        return marked

    def _members_alive_are_told(self) -> bool:
        """Give the last signal to newcomers; whether there are live members at all."""
        if self._number == signal.SIGKILL and self._tell_newcomers(signal.SIGKILL):
            self._kill_the_rest()
        elif self._number is not None:
            self._tell_newcomers(self._number)
        return bool(self._live())

    def _tell(self, process: Process, number: int) -> bool:
        self._told[process.identity] = self._program(process)
        return signals.send(process.identity, number, self._root)

    def _tell_newcomers(self, number: int) -> bool:
        newcomers = [process for process in self._members if process.alive and not self._was_told(process)]
        for process in newcomers:
            self._tell(process, number)
        return bool(newcomers)

    def _was_told(self, process: Process) -> bool:
        """Whether the signal has come to this process, and to the program that it runs now.

        Who has left the group since may have done so before it was signalled. And a shell's child that is signalled
        before its exec takes the signal as the shell does: the program after the exec never hears of it.
        """
        program = self._told.get(process.identity)
        if program is None and process.group == self._pid:
            program = self._told_as_group.get(process.identity)
        return program is not None and program == self._program(process)

    def _program(self, process: Process) -> str:
        return proc.program(process.pid, self._root)

    def _kill_the_rest(self) -> None:
        for number in range(KILL_ROUNDS):
            self._look()
            if number >= PLAIN_ROUNDS or self._enclosure is not None:
                self._enclose()
            if not self._tell_newcomers(signal.SIGKILL):
                return

    def _enclose(self) -> None:
        """Kill the members as one, so that none of them is faster, where the system has a way."""
        if self._enclosure is None:
            self._enclosure = cgroup.make(f"spoolvisor-{self._mark}", self._root)
        if self._enclosure is not None:
            for process in self._members:
                if process.alive:
                    self._enclosure.take(process.identity)
            self._enclosure.kill()


def _ticks_now() -> int:
    """Return a second ago, in the unit of a process's start: no child that was just started is older."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return int((time.clock_gettime(clock) - 1) * os.sysconf("SC_CLK_TCK"))
