"""The processes of the system, looked at as seldom as possible (contract F3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor.process import census as census_module
from supervisor.process import proc
from supervisor.process.census import LASTING_SECONDS, NEWCOMERS, Census
from supervisor.sansio.membership import Identity, Process

if TYPE_CHECKING:
    from pathlib import Path

LEADER = Identity(10, 1000)


class World:
    """A `/proc` whose processes a test makes up, and a clock."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.starts: dict[int, int] = {}
        self.read: list[int] = []
        self.now = 50.0
        self.newest: int | None = 10
        monkeypatch.setattr(proc, "process", self.process)
        monkeypatch.setattr(proc, "newest", lambda _root: self.newest)
        monkeypatch.setattr(proc, "pid_max", lambda _root: 2**22)
        monkeypatch.setattr(census_module.time, "monotonic", lambda: self.now)
        (root / "self").mkdir()
        self.add(10, 1000)

    def add(self, pid: int, start: int) -> None:
        """Start a process."""
        (self.root / str(pid)).mkdir()
        self.starts[pid] = start
        self.newest = pid

    def end(self, pid: int) -> None:
        """End it."""
        (self.root / str(pid)).rmdir()
        del self.starts[pid]

    def process(self, pid: int, _root: Path) -> Process | None:
        """Return what is seen of it, and note that it was looked at."""
        self.read.append(pid)
        return Process(Identity(pid, self.starts[pid]), "S", 1, pid, pid) if pid in self.starts else None

    def looked_at(self) -> list[int]:
        """Return the pids read since the last call, in order."""
        read, self.read = self.read, []
        return read


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return one with a leader alone."""
    return World(tmp_path, monkeypatch)


def pids(look: census_module.Look | None) -> list[int]:
    """Return whom a look shows."""
    assert look is not None
    return sorted(process.pid for process in look.processes)


def test_a_look_shows_what_is_no_older_than_the_leader(world: World) -> None:
    """Other leaders are not read, the newest are first, and each is told at once."""
    world.add(3, 1001)
    world.add(11, 999)
    world.add(12, 1001)
    world.add(13, 1001)
    noticed: list[int] = []
    look = Census(world.root).younger(LEADER, {10, 13}, lambda process: noticed.append(process.pid))
    assert pids(look) == [3, 10, 12]
    assert world.looked_at() == [12, 11, 3, 10]
    assert noticed == [12, 3, 10]


def test_a_later_look_reads_newcomers_and_the_leader(world: World) -> None:
    """Those of the full look are shown as they were, as long as they are there; another tree shares it."""
    shared = Census(world.root)
    world.add(11, 1001)
    world.add(12, 1001)
    shared.younger(LEADER, {10})
    world.looked_at()
    world.end(11)
    world.add(13, 1002)
    look = shared.younger(LEADER, {10})
    assert look is not None
    assert (pids(look), look.fresh) == ([10, 12, 13], {10, 13})
    assert world.looked_at() == [13, 10]
    assert pids(shared.younger(Identity(12, 1001), {10, 12})) == [12, 13]
    assert world.looked_at() == [13, 12]


def test_a_full_look_is_made_again(world: World) -> None:
    """When it is too old, when too much is new, and when nobody says what is."""
    shared = Census(world.root)
    world.add(11, 1001)
    shared.younger(LEADER, {10})
    world.now += LASTING_SECONDS
    world.looked_at()
    shared.younger(LEADER, {10})
    assert world.looked_at() == [11, 10]
    for pid in range(20, 20 + NEWCOMERS + 1):
        world.add(pid, 1002)
    shared.younger(LEADER, {10})
    assert 11 in world.looked_at()
    shared.younger(LEADER, {10})
    assert world.looked_at() == [10]
    world.newest = None
    world.now += LASTING_SECONDS
    shared.younger(LEADER, {10})
    world.looked_at()
    shared.younger(LEADER, {10})
    assert 11 in world.looked_at()


def test_without_proc_there_is_no_look(world: World, tmp_path: Path) -> None:
    """None, and never "nobody" (contract A4); a leader that is gone is not shown."""
    assert Census(tmp_path / "nowhere").younger(LEADER, ()) is None
    world.end(10)
    assert pids(Census(world.root).younger(LEADER, {10})) == []
