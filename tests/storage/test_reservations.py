"""Owners in one directory [D5, I7]: used and reserved stay within the limit, whatever they do and whoever dies."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from supervisor.storage import Files, look_at_allowance
from supervisor.storage.allowance import SharedAccount
from supervisor.storage.directory import Rooms, open_rooms
from supervisor.storage.owners import Owner, take_ownership
from supervisor.storage.reservations import SLOT_BYTES, Reservations, reserved_by_others
from supervisor.storage.retained import RetainedSizes

FILES: Final = Files()
LIMIT: Final = 1000
OWNERS: Final = 3
STREAM: Final = "stdout"


@dataclass
class Process:
    """One owner, as a process of its own would have it."""

    rooms: Rooms
    owner: Owner
    account: SharedAccount
    captures: dict[str, int] = field(default_factory=dict)
    """The live captures, and what their files hold."""


def open_process(directory: Path) -> Process:
    """Open the directory once more."""
    rooms = open_rooms(FILES, directory)
    owner = take_ownership(FILES, rooms.state)
    return Process(rooms, owner, SharedAccount(FILES, rooms, owner.name, LIMIT))


def close_process(process: Process, *, killed: bool) -> None:
    """Let it end, or do only what the kernel does."""
    if killed:
        process.owner.descriptor.discard()
    else:
        process.account.reservations.discard()
        process.owner.release(FILES)
    process.rooms.discard()


class World:
    """A directory, what should be in it, and the processes that have it open."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: dict[int, Process] = {}
        self.sizes: dict[str, int] = {}
        self.count = 0

    @property
    def captures(self) -> Path:
        """The directory of all captures."""
        return self.directory / "tool-outputs" / "captures"

    def process(self, which: int) -> Process:
        """Return that process, started if it does not run."""
        if which not in self.processes:
            self.processes[which] = open_process(self.directory)
        return self.processes[which]

    def write(self, which: int, capture: int, wanted: int) -> None:
        """Let a live capture, a new one if there is none, reserve and write as far as it may."""
        process = self.process(which)
        names = list(process.captures)
        if capture >= len(names):
            self.count += 1
            name = f"capture-{self.count}"
            (self.captures / name).mkdir(mode=0o700)
            (self.captures / name / f"{STREAM}.live").touch(0o600)
            process.account.reservations.admit(name)
            process.captures[name] = self.sizes[name] = 0
        else:
            name = names[capture]
        reservations = process.account.reservations
        if reservations.ceiling(name) < self.sizes[name] + wanted:
            missing = self.sizes[name] + wanted - reservations.ceiling(name)
            process.account.reserve(name, max(64, missing), missing)
        granted = min(wanted, reservations.ceiling(name) - self.sizes[name])
        assert granted >= 0
        with (self.captures / name / f"{STREAM}.live").open("ab") as file:
            file.write(b"x" * granted)
        self.sizes[name] += granted

    def settle(self, which: int, capture: int, *, published: bool) -> None:
        """End a live capture, if there is that one."""
        process = self.process(which)
        names = list(process.captures)
        if capture < len(names):
            name = names[capture]
            if published:
                (self.captures / name / f"{STREAM}.live").rename(self.captures / name / f"{STREAM}.log")
                (self.captures / name / "receipt.json").touch(0o600)
            process.account.reservations.let_go(name)
            del process.captures[name]

    def remove(self, number: int) -> None:
        """Remove a capture that nobody writes, if there is that one."""
        live = {name for process in self.processes.values() for name in process.captures}
        names = sorted(set(self.sizes) - live)
        if number < len(names):
            for file in (self.captures / names[number]).iterdir():
                file.unlink()
            (self.captures / names[number]).rmdir()
            del self.sizes[names[number]]

    def end(self, which: int, *, killed: bool) -> None:
        """End a process, with all that it has live."""
        if which in self.processes:
            close_process(self.processes.pop(which), killed=killed)

    def check(self) -> None:
        """Compare the directory with what should be in it."""
        used = sum(self.sizes.values())
        reserved = sum(
            process.account.reservations.ceiling(name) - size
            for process in self.processes.values()
            for name in process.captures
            for size in (self.sizes[name],)
        )
        assert used + reserved <= LIMIT
        rooms = open_rooms(FILES, self.directory)
        seen = look_at_allowance(FILES, rooms)
        rooms.discard()
        assert (seen.used, seen.reserved) == (used, reserved)


ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, OWNERS - 1), st.integers(0, 3), st.integers(0, 300)),
    st.tuples(st.just("write"), st.integers(0, OWNERS - 1), st.integers(0, 3), st.integers(0, 30)),
    st.tuples(st.just("publish"), st.integers(0, OWNERS - 1), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("abandon"), st.integers(0, OWNERS - 1), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("remove"), st.integers(0, 5), st.just(0), st.just(0)),
    st.tuples(st.just("close"), st.integers(0, OWNERS - 1), st.just(0), st.just(0)),
    st.tuples(st.just("kill"), st.integers(0, OWNERS - 1), st.just(0), st.just(0)),
)


def play(world: World, action: str, which: int, capture: int, wanted: int) -> None:
    """Do one thing."""
    match action:
        case "write":
            world.write(which, capture, wanted)
        case "publish" | "abandon":
            world.settle(which, capture, published=action == "publish")
        case "remove":
            world.remove(which)
        case "close" | "kill":
            world.end(which, killed=action == "kill")


@given(actions=st.lists(ACTIONS, max_size=40))
def test_i7_used_and_reserved_never_exceed_the_limit_and_dead_owners_release(
    actions: list[tuple[str, int, int, int]],
) -> None:
    """Any interleaving of writing, settling, removing, closing and killing; the figures are exact after each step.

    In the end, with nobody left, one more capture gets the rest of the limit to the byte.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        world = World(Path(name))
        stack.callback(lambda: [world.end(which, killed=True) for which in range(OWNERS + 1)])
        world.process(0)
        for action in actions:
            play(world, *action)
            world.check()
        for which in range(OWNERS):
            world.end(which, killed=which != 1)
        left = LIMIT - sum(world.sizes.values())
        world.write(OWNERS, 9, LIMIT)
        world.check()
        assert world.sizes[f"capture-{world.count}"] == left


def test_a_slot_is_used_again_and_a_page_holds_whole_ones(tmp_path: Path) -> None:
    """The file grows with the captures that live at once, not with all that there were."""
    process = open_process(tmp_path)
    reservations = process.account.reservations
    path = tmp_path / "tool-outputs" / ".supervisor" / reservations.name
    assert not path.exists()
    for round_number in range(3):
        names = [f"{round_number}-{count}-{'n' * 120}" for count in range(20)]
        for name in names:
            reservations.admit(name)
            reservations.raise_by(name, 5)
            reservations.raise_by(name, 2)
        with process.rooms.state.borrow() as state:
            assert reserved_by_others(FILES, state) == dict.fromkeys(names, 7)
            assert reserved_by_others(FILES, state, reservations.name) == {}
        for name in names:
            reservations.let_go(name)
    assert path.stat().st_size == 20 * SLOT_BYTES
    assert os.sysconf("SC_PAGE_SIZE") % SLOT_BYTES == 0
    assert path.stat().st_mode & 0o777 == 0o600
    close_process(process, killed=False)
    assert not path.exists()


def test_a_late_step_raises_no_ceiling_of_a_capture_that_was_let_go(tmp_path: Path) -> None:
    """A call that hung past its deadline may come back after the capture was settled, and its slot is another's."""
    process = open_process(tmp_path)
    reservations = process.account.reservations
    reservations.admit("gone")
    reservations.raise_by("gone", 5)
    reservations.let_go("gone")
    reservations.admit("next")
    reservations.raise_by("next", 3)
    process.account.reserve("gone", 100, 100)
    assert reservations.all() == {"next": 3}
    with process.rooms.state.borrow() as state:
        assert reserved_by_others(FILES, state) == {"next": 3}
    close_process(process, killed=False)


def test_what_dead_owners_left_is_ignored_and_removed_by_the_next_one(tmp_path: Path) -> None:
    """A torn slot of a live one, a file that is no owner's, a symlink: nothing of it is counted."""
    dead, live = open_process(tmp_path), open_process(tmp_path)
    for process, name in ((dead, "of-the-dead"), (live, "of-the-living")):
        process.account.reservations.admit(name)
        process.account.reserve(name, 10, 10)
    close_process(dead, killed=True)
    state = tmp_path / "tool-outputs" / ".supervisor"
    (state / "nobody.reserved").write_text("99 somebody\n")
    with (state / live.account.reservations.name).open("ab") as file:
        file.write(b"\xff\xff torn slot\n7 half")
    look = open_process(tmp_path)
    with look.rooms.state.borrow() as number:
        assert reserved_by_others(FILES, number) == {"of-the-living": 10, "half": 7}
    look.account.reservations.admit("new")
    look.account.reserve("new", 10, 10)
    names = {path.name for path in state.iterdir() if path.suffix == ".reserved"}
    assert names == {live.account.reservations.name, look.account.reservations.name}
    for process in (live, look):
        close_process(process, killed=False)


def test_published_captures_are_looked_at_once(tmp_path: Path) -> None:
    """A thousand of them must not be a thousand calls for each step; whatever may still change is looked at again."""
    process = open_process(tmp_path)
    captures = tmp_path / "tool-outputs" / "captures"
    for name, files in {"published": ("stdout.log", "receipt.json"), "left": ("stdout.live",)}.items():
        (captures / name).mkdir(mode=0o700)
        for file in files:
            (captures / name / file).write_bytes(b"xxx")
    opened: list[str] = []

    class Counting(Files):
        """Notes which directories are opened."""

        def open_directory(self, name: str, *, parent: int | None = None) -> int:
            opened.append(name)
            return super().open_directory(name, parent=parent)

    sizes = RetainedSizes(Counting(), process.rooms.captures)
    assert [sizes.by_name() for _ in range(3)] == [{"published": 3, "left": 3}] * 3
    assert (opened.count("published"), opened.count("left")) == (1, 3)
    sizes.forget()
    assert sizes.by_name(but={"left"}) == {"published": 3}
    assert opened.count("published") == 2
    close_process(process, killed=False)


def test_a_reservation_is_dropped_with_its_owner(tmp_path: Path) -> None:
    """Closed, it takes nothing more, and leaves no file."""
    process = open_process(tmp_path)
    reservations = Reservations(FILES, process.rooms.state, process.owner.name)
    reservations.admit("one")
    reservations.discard()
    reservations.raise_by("one", 3)
    assert reservations.all() == {}
    close_process(process, killed=False)


def test_an_owner_that_ends_while_it_is_looked_at_reserves_nothing(tmp_path: Path) -> None:
    """Its file may lose its name before it is opened, or between that and its check: that is no fault of the disk."""

    class Ending(Files):
        """The other owner removes its file at one of the two moments."""

        early = False

        def open_existing(self, name: str, *, parent: int, flags: int = os.O_RDONLY) -> int:
            """Open it, around its end."""
            if self.early and name.endswith(".reserved"):
                os.unlink(name, dir_fd=parent)
            number = super().open_existing(name, parent=parent, flags=flags)
            if name.endswith(".reserved"):
                os.unlink(name, dir_fd=parent)
            return number

    for early in (False, True):
        one, other = open_process(tmp_path), open_process(tmp_path)
        try:
            one.account.reservations.admit("capture")
            one.account.reserve("capture", 600, 600)
            files = Ending()
            files.early = early
            with other.rooms.state.borrow() as state:
                assert reserved_by_others(files, state, other.account.reservations.name) == {}
        finally:
            close_process(one, killed=False)
            close_process(other, killed=False)
