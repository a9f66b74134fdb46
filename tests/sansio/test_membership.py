"""Who belongs to a command, from a snapshot of processes (contract F3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.membership import (
    NESTED_MARKS,
    PIDS_PER_SECOND,
    VARIABLE,
    Family,
    Identity,
    Process,
    could_descend,
    members,
    names_mark,
    parse_stat,
    with_mark,
)

LEADER = Identity(100, 1000)
FAMILY = Family(LEADER)


def process(
    pid: int, start: int = 1001, *, parent: int = 1, group: int = 7, session: int = 7, marked: bool = False
) -> Process:
    """Return a process that by itself has nothing to do with the leader."""
    return Process(Identity(pid, start), "S", parent, group, session, marked)


def pids(processes: list[Process], family: Family = FAMILY) -> list[int]:
    """Return the members' pids."""
    return [member.pid for member in members(processes, family)]


@pytest.mark.parametrize(
    "member",
    [
        process(100, 1000),
        process(101, group=100),
        process(101, session=100),
        process(101, parent=100),
        process(101, marked=True),
    ],
    ids=["leader", "group", "session", "child", "marked"],
)
def test_each_mark_is_enough(member: Process) -> None:
    """A daemon sheds one after the other; the last one counts as much as all of them."""
    leader = process(100, 1000)
    assert member.pid in pids([leader, member])
    assert pids([process(100, 1000), process(102)]) == [100]


def test_a_chain_of_parents_is_followed_to_its_end() -> None:
    """Whatever a member started is a member, in any order of the list."""
    chain = [process(104, parent=103), process(103, parent=102), process(102, parent=101), process(101, marked=True)]
    assert pids(chain) == [101, 102, 103, 104]
    assert pids(chain[::-1]) == [101, 102, 103, 104]


def test_what_was_a_member_stays_one() -> None:
    """Its parent died, and it has shed all else since it was last seen; a stranger under its pid is none."""
    family = Family(LEADER, known=frozenset({Identity(105, 1005)}))
    assert pids([process(105, 1005)], family) == [105]
    assert pids([process(105, 1006)], family) == []


def test_an_orphan_that_only_we_can_have_is_a_member() -> None:
    """Of a process whose children are orphans of this tree, and not of any other."""
    orphan = process(105, parent=50)
    assert pids([orphan], Family(LEADER, adopter=50)) == [105]
    assert pids([orphan]) == []


def test_what_is_older_than_the_leader_is_no_member() -> None:
    """A terminal's server that was there before may have got a copy of the environment; it is not ended (H5-018)."""
    older = Process(Identity(90, 999), "S", 100, 100, 100, marked=True)
    assert pids([older], Family(LEADER, known=frozenset({older.identity}), adopter=100)) == []


def test_numbers_of_a_leader_whose_pid_is_somebody_elses_mean_nothing() -> None:
    """Group and session are free before the pid can be given away; a mark is still a mark (H5-018)."""
    stranger = process(100, 2000, group=100, session=100)
    theirs = process(201, 2001, group=100, session=100, parent=100)
    ours = process(202, 2001, marked=True)
    assert pids([stranger, theirs, ours]) == [202]


def test_a_parent_that_is_younger_than_its_child_is_another_process() -> None:
    """The two were read at different moments, and the pid changed hands in between."""
    assert pids([process(101, 1010, marked=True), process(102, 1005, parent=101)]) == [101]


def test_a_circle_of_parents_ends() -> None:
    """No system shows one, but reads that are not of one moment could."""
    assert pids([process(101, parent=102, marked=True), process(102, parent=101)]) == [101, 102]


def test_zombies_are_members_and_not_alive() -> None:
    """They tell of their children, and no signal changes anything about them."""
    zombie = Process(Identity(101, 1001), "Z", 100, 100, 100)
    assert pids([zombie]) == [101]
    assert [Process(LEADER, state, 1, 1, 1).alive for state in "ZXxSRDTt"] == [False] * 3 + [True] * 5


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Process], set[int]]:
    """Processes of which some descend from the leader, with the pids of those; each has one mark left at least."""
    world = [process(100, 1000)]
    family = {100}
    for pid in range(101, 101 + draw(st.integers(0, 20))):
        start = 1000 + pid - 100
        if draw(st.booleans()):
            parent = draw(st.sampled_from(sorted(family)))
            how = draw(st.sampled_from(["group", "session", "marked", "parent"]))
            world.append(
                process(
                    pid,
                    start,
                    parent=parent if how == "parent" else 1,
                    group=100 if how == "group" else pid,
                    session=100 if how == "session" else pid,
                    marked=how == "marked",
                )
            )
            family.add(pid)
        else:
            parent = draw(st.sampled_from(sorted({1, *(other.pid for other in world)} - family)))
            world.append(process(pid, start, parent=parent, group=pid, session=pid))
    return draw(st.permutations(world)), family


@given(worlds())
def test_exactly_the_descendants_are_members(world: tuple[list[Process], set[int]]) -> None:
    """No descendant is missed that has a mark left, and no stranger is ever one, whatever strangers there are."""
    processes, family = world
    assert set(pids(processes)) == family


@given(worlds(), st.data())
def test_members_stay_members_when_their_ancestors_are_gone(
    world: tuple[list[Process], set[int]], data: st.DataObject
) -> None:
    """A later look knows everybody of the earlier one, whichever of them have died meanwhile."""
    processes, family = world
    known = frozenset(member.identity for member in members(processes, FAMILY))
    dead = data.draw(st.sets(st.sampled_from(sorted(family))))
    later = [process for process in processes if process.pid not in dead]
    assert set(pids(later, Family(LEADER, known=known))) == family - dead


def test_a_smaller_pid_is_older_unless_pids_may_have_begun_anew() -> None:
    """They are given out in a circle of `pid_max`."""
    assert could_descend(101, 100, age=0.01, pid_max=2**22)
    assert not could_descend(99, 100, age=0.01, pid_max=2**22)
    assert could_descend(99, 100, age=2**22 / PIDS_PER_SECOND, pid_max=2**22)
    assert could_descend(99, 100, age=0.01, pid_max=0)


@given(st.lists(st.text("abcdef0123456789", min_size=1, max_size=16), min_size=1, max_size=NESTED_MARKS + 4))
def test_marks_nest_and_are_bounded(marks: list[str]) -> None:
    """A supervisor inside a supervised command adds its job behind those that contain it; the innermost stay."""
    environment: dict[str, str] = {"PATH": "/bin"}
    for mark in marks:
        environment = with_mark(environment, mark)
    block = b"\0".join(f"{name}={value}".encode() for name, value in environment.items()) + b"\0"
    assert environment["PATH"] == "/bin"
    assert all(names_mark(block, mark) for mark in marks[-NESTED_MARKS:])
    assert len(environment[VARIABLE].split(":")) == min(len(marks), NESTED_MARKS)


@pytest.mark.parametrize(
    "block",
    [b"", b"A=ab12\0", b"X" + VARIABLE.encode() + b"=ab12\0", VARIABLE.encode() + b"=ab123:1ab12\0", b"ab12"],
)
def test_only_the_whole_mark_in_its_variable_counts(block: bytes) -> None:
    """Another variable may hold the same text, and another job's mark may contain it."""
    assert not names_mark(block, "ab12")
    assert names_mark(block.rstrip(b"\0") + b"\0" + VARIABLE.encode() + b"=1:ab12\0Z=", "ab12")


STAT = b"(%b) %b 1 %d 9 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0"


@given(
    st.binary(max_size=16).filter(lambda name: b"\0" not in name), st.integers(1, 2**22), st.sampled_from("RSDZTtXx")
)
def test_any_name_is_skipped(name: bytes, group: int, state: str) -> None:
    """A name may hold blanks, parentheses, line feeds and what looks like the fields after it."""
    text = b"12 " + STAT % (name, state.encode(), group, 4711)
    assert parse_stat(text) == Process(Identity(12, 4711), state, 1, group, 9)


@pytest.mark.parametrize("text", [b"", b"12 (sh) S 1 2 3", b"12 (sh", b"x " + STAT % (b"sh", b"S", 1, 1)])
def test_a_text_that_is_cut_short_is_no_process(text: bytes) -> None:
    """Whoever ends while he is read is not seen."""
    with pytest.raises(ValueError, match=r"short|invalid"):
        parse_stat(text)
