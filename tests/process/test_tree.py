"""The facade over a command's tree, against made-up and real processes (contract F3)."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from supervisor.process import census, cgroup, group, proc, signals, subreaper, tree
from supervisor.process.tree import Tree
from supervisor.sansio.membership import Identity, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEADER = Identity(2**22 + 10, 1000)
"""Above the largest pid that Linux gives (proc(5), pid_max)."""


class World:
    """A system whose processes, and whose time, a test makes up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: list[Process] = [member(0)]
        self.sent: list[tuple[int, int]] = []
        self.group_signals: list[int] = []
        self.looks = 0
        self.stale: dict[int, Process | None] = {}
        """Those that are shown as they were at an earlier look, and what they are now."""
        self.environments: list[int] = []
        self.in_exec: set[int] = set()
        self.newest = LEADER.pid
        self.now = 100.0
        self.programs: dict[int, str] = {}
        monkeypatch.setattr(proc, "process", lambda pid, _root: self.find(pid))
        monkeypatch.setattr(census.Census, "younger", self.younger)
        monkeypatch.setattr(proc, "marked", self.marked)
        monkeypatch.setattr(proc, "newest", lambda _root: self.newest)
        monkeypatch.setattr(proc, "program", lambda pid, _root: self.programs.get(pid, "sh"))
        monkeypatch.setattr(signals, "send", self.send)
        monkeypatch.setattr(group, "signal_group", self.signal_group)
        monkeypatch.setattr(tree.time, "monotonic", lambda: self.now)

    def find(self, pid: int) -> Process | None:
        """Return a process; this one is always there."""
        if pid in self.stale:
            return self.stale[pid]
        return next((found for found in self.processes if pid in {found.pid, os.getpid()}), None)

    def younger(self, _leader: Identity, _leaders: object, notice: Callable[[Process], object]) -> census.Look:
        """Return all of them; those in `stale` as they were."""
        self.looks += 1
        self.on_look()
        for process in self.processes:
            if process.pid not in self.stale:
                notice(process)
        return census.Look(tuple(self.processes), frozenset(p.pid for p in self.processes) - self.stale.keys())

    def marked(self, pid: int, _mark: str, _root: object) -> bool | None:
        """Return what the environment says, and note that it was read."""
        self.environments.append(pid)
        found = self.find(pid)
        return None if pid in self.in_exec else found is not None and found.marked

    def on_look(self) -> None:
        """Nothing happens meanwhile, unless a test says so."""

    def send(self, target: Identity, number: int, _root: object) -> bool:
        """Note it."""
        self.sent.append((target.pid - LEADER.pid, number))
        return True

    def signal_group(self, _leader: int, number: int, *, held: bool) -> bool:
        """Note it."""
        assert held
        self.group_signals.append(number)
        return True


def member(number: int, *, inside: bool = True, state: str = "S") -> Process:
    """Return a member, in the leader's group or in one of its own."""
    pid = LEADER.pid + number
    own = LEADER.pid if inside else pid
    return Process(Identity(pid, LEADER.start + number), state, 1, own, own, marked=True)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return one with a leader alone."""
    return World(monkeypatch)


@pytest.fixture
def family(world: World) -> Iterator[Tree]:  # noqa: ARG001 - it is looked at
    """Yield its tree."""
    made = Tree(LEADER.pid, "m", lambda: True)
    yield made
    made.forget()


def test_those_outside_the_group_are_signalled_one_by_one(world: World, family: Tree) -> None:
    """And the group as one, so that none of it is told twice; the dead are not told."""
    world.processes += [member(1), member(2, inside=False), member(3, inside=False, state="Z")]
    assert family.signal(signal.SIGTERM)
    assert family.signal(signal.SIGCONT)
    assert world.group_signals == [signal.SIGTERM, signal.SIGCONT]
    assert world.sent == [(2, signal.SIGTERM), (2, signal.SIGCONT)]
    assert world.looks == 1  # the second signal goes to those who got the first
    assert family.press() == tuple(LEADER.pid + number for number in range(3))
    assert world.sent == [(2, signal.SIGTERM), (2, signal.SIGCONT)]


def test_newcomers_get_the_last_signal_once(world: World, family: Tree) -> None:
    """Before any signal a look is a look alone."""
    family.press()
    family.signal(signal.SIGTERM)
    world.processes += [member(1), member(2, inside=False)]
    family.press()
    family.press()
    assert world.sent == [(1, signal.SIGTERM), (2, signal.SIGTERM)]


def test_who_left_the_group_or_became_another_program_is_told_again(world: World, family: Tree) -> None:
    """It may have left before the group was signalled; a shell's child may have taken the signal before its exec."""
    world.processes += [member(1), member(2)]
    family.signal(signal.SIGTERM)
    world.processes[1] = member(1, inside=False)
    world.programs[LEADER.pid + 2] = "sleep"
    family.press()
    family.press()
    assert world.sent == [(1, signal.SIGTERM), (2, signal.SIGTERM)]


def test_a_kill_goes_on_until_nobody_new_is_seen(world: World, family: Tree) -> None:
    """Each look finds one more, three times; the next look after the loop's turn begins the same again."""
    numbers = iter(range(1, 4))

    def fork() -> None:
        if (number := next(numbers, None)) is not None:
            world.processes.append(member(number, inside=False))

    world.on_look = fork  # type: ignore[method-assign]
    family.signal(signal.SIGKILL)
    assert world.sent == [(1, signal.SIGKILL), (2, signal.SIGKILL), (3, signal.SIGKILL)]
    world.processes.append(member(4))
    family.press()
    assert world.sent[3:] == [(4, signal.SIGKILL)]


def test_what_outlives_the_plain_rounds_is_enclosed(
    world: World, family: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on every round goes through the cgroup; without one the rounds are bounded."""
    counter = iter(range(1, 1000))
    world.on_look = lambda: world.processes.append(member(next(counter), inside=False))  # type: ignore[method-assign]
    taken: list[Identity] = []
    calls: list[str] = []

    class Enclosed:
        def take(self, target: Identity) -> bool:
            taken.append(target)
            return True

        def kill(self) -> bool:
            calls.append("kill")
            world.on_look = lambda: None  # type: ignore[method-assign]
            return True

        def members(self) -> frozenset[int]:
            return frozenset()

        def remove(self) -> None:
            calls.append("remove")

    monkeypatch.setattr(cgroup, "make", lambda _name, _root: None)
    family.signal(signal.SIGKILL)
    assert world.looks == 1 + tree.KILL_ROUNDS
    monkeypatch.setattr(cgroup, "make", lambda _name, _root: Enclosed())
    family.signal(signal.SIGKILL)
    assert calls[0] == "kill"
    assert {target.pid for target in taken} == {process.pid for process in world.processes}
    family.forget()
    assert calls[-1] == "remove"


def test_an_empty_tree_was_empty_twice(world: World, family: Tree) -> None:
    """The second time while nothing was started; where something always is, after some looks."""
    world.processes = [member(0, state="Z")]
    assert family.press() == ()
    assert world.looks == 2
    world.looks = 0

    def start_something() -> None:
        world.newest += 1

    world.on_look = start_something  # type: ignore[method-assign]
    assert family.press() == ()
    assert world.looks == tree.EMPTY_LOOKS


def test_one_that_was_missed_is_found_by_the_second_look(world: World, family: Tree) -> None:
    """It was forked behind the first one's back."""
    world.processes = [member(0, state="Z")]
    family.signal(signal.SIGTERM)

    def fork() -> None:
        if world.looks == 3:
            world.processes.append(member(1, inside=False))

    world.on_look = fork  # type: ignore[method-assign]
    assert family.press() == (LEADER.pid + 1,)
    assert world.sent == [(1, signal.SIGTERM)]


def test_who_was_seen_to_be_a_stranger_is_not_asked_again(world: World, family: Tree) -> None:
    """Kinship is not acquired. One whose environment is empty may be in an exec, and is asked again."""
    world.processes += [replace(member(number, inside=False), marked=False) for number in (1, 2)]
    world.in_exec = {LEADER.pid + 2}
    assert family.members() == (LEADER.pid,)
    world.environments.clear()
    world.in_exec = set()
    world.processes[2] = member(2, inside=False)
    assert family.members() == (LEADER.pid, LEADER.pid + 2)
    assert LEADER.pid + 1 not in world.environments
    world.processes = [member(0)]
    family.members()
    world.processes.append(replace(member(1, inside=False), marked=False))
    world.environments.clear()
    family.members()
    assert LEADER.pid + 1 in world.environments  # what has vanished is not remembered


def test_members_of_an_earlier_look_are_read_again(world: World, family: Tree) -> None:
    """They may have ended, or be somebody else by now."""
    others = [member(number, inside=False) for number in (1, 2, 3)]
    world.processes += others
    world.stale = {
        others[0].pid: others[0],
        others[1].pid: None,
        others[2].pid: replace(others[2], identity=Identity(others[2].pid, 5000)),
    }
    assert family.members() == (LEADER.pid, LEADER.pid + 1)


def test_this_process_is_never_a_member(world: World, family: Tree) -> None:
    """Whatever is inherited, copied or forged."""
    world.processes.append(replace(member(1, inside=False), identity=Identity(os.getpid(), 2000)))
    assert family.members() == (LEADER.pid,)


def test_what_vanishes_from_sight_is_unknown(
    world: World, family: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """/proc is not mounted, or not any more: None, and the group is signalled all the same."""
    assert family.limitation == "tree-by-snapshot"
    monkeypatch.setattr(census.Census, "younger", lambda *_: None)
    assert family.press() is None
    assert (family.members(), family.holders(), family.limitation) == (None, None, "tree-by-group")
    assert family.signal(signal.SIGKILL)
    assert world.group_signals == [signal.SIGKILL]
    monkeypatch.setattr(proc, "process", lambda *_: None)
    blind = Tree(LEADER.pid, "m", lambda: True, tmp_path)
    assert (blind.press(), blind.members(), blind.limitation) == (None, None, "tree-by-group")


def test_orphans_count_only_while_one_command_runs(world: World, family: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two, nobody knows whose they are."""
    monkeypatch.setattr(subreaper, "adopter", os.getpid)
    world.processes.append(replace(member(1, inside=False), marked=False, parent=os.getpid()))
    assert family.limitation is None
    assert family.members() == (LEADER.pid, LEADER.pid + 1)
    other = Tree(LEADER.pid + 7, "n", lambda: True)
    world.processes.append(replace(member(2, inside=False), marked=False, parent=os.getpid()))
    assert family.members() == (LEADER.pid, LEADER.pid + 1)
    assert family.limitation == "tree-by-snapshot"
    other.forget()


def test_a_leader_that_was_gone_before_it_was_seen_has_marks_left() -> None:
    """SIGCHLD is ignored, so the pid is free at once: what it left is known by its environment alone."""
    leader = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!"], env={"SPOOLVISOR_JOB": "m"}, stdout=subprocess.PIPE)
    assert leader.stdout is not None
    left = int(leader.stdout.readline())
    leader.stdout.close()
    leader.wait()
    family = Tree(leader.pid, "m", lambda: False)
    assert family.members() == (left,)
    family.signal(signal.SIGKILL)
    family.forget()
    while family.press():
        pass
