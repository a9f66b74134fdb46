"""The program of a guard: waits for its host's end, and then ends the commands that the host had not ended itself.

It is run without the site's packages, and imports nothing that is not needed: see `guard`. What it knows of a command
is its mark, its leader and the leader's start, so whatever `tree` finds by them is ended, and never a stranger. Other
ends of the pipe may be in forks of the host, so its end is not waited for alone.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..sansio.membership import Identity
from . import proc
from .tree import Tree

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_GRACE: Final = 60.0
"""Seconds: who is to be waited for longer is killed then, for nobody is left to ask."""
CONFIRM_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.02
SEARCHES: Final = 10
"""How often a command is searched for that was being started when the host ended: until its exec it bears no mark."""


@dataclass
class Ward:
    """A command that is to be ended if the host does not."""

    grace: float
    leader: Identity | None = None


class Wards:
    """The commands that live, by what the host tells."""

    def __init__(self) -> None:
        self.by_mark: Final[dict[str, Ward]] = {}
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in what came out of the pipe; a last line that is cut short tells nothing."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._hear(line.decode("ascii").split())

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["expect", mark, grace]:
                self.by_mark[mark] = Ward(min(float(grace), LONGEST_GRACE))
            case ["started", mark, pid, start] if mark in self.by_mark:
                self.by_mark[mark].leader = Identity(int(pid), int(start))
            case ["forget", mark]:
                self.by_mark.pop(mark, None)
            case _:
                pass


def run() -> None:
    """Guard the process whose pid is the last argument; return when it and what it ran have ended."""
    wards = Wards()
    await_end(int(sys.argv[-1]), 0, wards)
    end(wards)


def await_end(host: int, pipe: int, wards: Wards) -> None:
    """Return when the host, our parent, has closed the pipe or ended, and all that it said is heard."""
    try:
        watch = os.pidfd_open(host)
    except ProcessLookupError:
        watch = -1
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    os.set_blocking(pipe, False)
    if watch >= 0:
        poll.register(watch, select.POLLIN)
    alive = watch >= 0 and os.getppid() == host
    while alive:
        alive = watch not in {descriptor for descriptor, _ in poll.poll()} and hear(pipe, wards)
    hear(pipe, wards)


def hear(pipe: int, wards: Wards) -> bool:
    """Take in all that is in the pipe now; whether it is still open."""
    try:
        while data := os.read(pipe, 65536):
            wards.feed(data)
    except BlockingIOError:
        return True
    return False


def end(wards: Wards, root: Path = proc.ROOT) -> None:
    """End what lives of the commands: TERM, each one's grace, KILL."""
    trees = {mark: tree for mark, ward in wards.by_mark.items() if (tree := tree_of(mark, ward, root)) is not None}
    for tree in trees.values():
        tree.signal(signal.SIGTERM)
        tree.signal(signal.SIGCONT)
    began = time.monotonic()
    killed_at: dict[str, float] = {}
    while trees:
        for mark, tree in list(trees.items()):
            now = time.monotonic()
            if not tree.press() or now - killed_at.get(mark, math.inf) > CONFIRM_SECONDS:
                trees.pop(mark).forget()
            elif mark not in killed_at and now - began >= wards.by_mark[mark].grace:
                killed_at[mark] = now
                tree.signal(signal.SIGKILL)
        if trees:
            time.sleep(LOOK_SECONDS)


def tree_of(mark: str, ward: Ward, root: Path) -> Tree | None:
    """Return the tree of a command; None if nothing of it was ever started."""
    leader = ward.leader
    for _ in range(SEARCHES):
        if leader is not None:
            break
        marked = [pid for name in os.listdir(root) if name.isdecimal() and proc.marked(pid := int(name), mark, root)]
        seen = [process.identity for pid in marked if (process := proc.process(pid, root)) is not None]
        leader = min(seen, key=lambda identity: identity.start, default=None)
        if leader is None:
            time.sleep(LOOK_SECONDS)
    if leader is None:
        return None
    return Tree(leader.pid, mark, lambda: is_there(leader, root), root, leader=leader)


def is_there(leader: Identity, root: Path) -> bool:
    """Whether the leader lives or is a zombie, so that its pid is nobody else's."""
    found = proc.process(leader.pid, root)
    return found is not None and found.identity == leader
