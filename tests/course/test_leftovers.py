"""What a command leaves behind: ended or left, named or unknown (contract F2, F3)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from supervisor.course import TREE_WATCH_SECONDS
from supervisor.sansio.exits import Exited, Signalled

if TYPE_CHECKING:
    from conftest import MakeCourse, ScriptedChild, VirtualClock

    from supervisor.course import Course

pytestmark = pytest.mark.asyncio


def clock_of(course: Course) -> VirtualClock:
    """Return the course's clock, as the virtual one that it is."""
    return course.services.clock  # type: ignore[return-value]


def exit_cleanly(course: Course, child: ScriptedChild) -> None:
    """The child is adopted and exits with 0."""
    course.adopt(child)  # type: ignore[arg-type]
    child.exit = Exited(0)
    course.exit_noticed()


async def test_what_is_left_is_ended_before_the_pipes_are_drained(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """`on_exit="end"`: TERM, its grace, and a limitation, because something was ended."""
    course = make_course(on_exit="end", kill_after=1)
    child.members = (5000,)
    exit_cleanly(course, child)
    assert child.signals == [signal.SIGTERM, signal.SIGCONT]
    clock_of(course).advance(1)
    assert child.signals[2:] == [signal.SIGKILL]
    child.members = ()
    clock_of(course).advance(TREE_WATCH_SECONDS)
    course.pipe_ended("stdout", None)
    course.pipe_ended("stderr", None)
    assert course.over.done()
    course.release()
    assert course.limitations == ["a-limitation", "tree-by-something"]
    assert course.lifecycle.process_facts() == ("exited", None)


async def test_with_nobody_left_nothing_is_ended(make_course: MakeCourse, child: ScriptedChild) -> None:
    """The exit is an ordinary one."""
    course = make_course(on_exit="end")
    child.members = ()
    exit_cleanly(course, child)
    assert child.signals == []
    course.pipe_ended("stdout", None)
    course.pipe_ended("stderr", None)
    assert course.lifecycle.ended_normally
    course.release()
    assert course.limitations == ["a-limitation"]


async def test_where_nobody_can_see_what_is_left_the_group_is_ended(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """None is not nobody."""
    course = make_course(on_exit="end")
    child.members = None
    exit_cleanly(course, child)
    assert child.signals == [signal.SIGTERM, signal.SIGCONT, signal.SIGKILL]
    assert course.unseen


async def test_what_is_left_alone_is_left_alone(course: Course, child: ScriptedChild) -> None:
    """Which is the default."""
    child.members = (5000,)
    exit_cleanly(course, child)
    assert child.signals == []


@pytest.mark.parametrize(
    ("holding", "left", "survivors"),
    [((5000,), (5000,), (5000,)), ((5000,), (), ()), (None, (6000,), (6000,)), (None, (), None), (None, None, None)],
)
async def test_a_cut_pipe_proves_that_somebody_lives(
    course: Course,
    child: ScriptedChild,
    holding: tuple[int, ...] | None,
    left: tuple[int, ...] | None,
    survivors: tuple[int, ...] | None,
) -> None:
    """Somebody whom nobody can name is unknown; one who was named may have ended since."""
    exit_cleanly(course, child)
    child.holding, child.left_behind = holding, left
    course.pipe_ended("stderr", None)
    clock_of(course).advance(1)
    assert course.pumps["stdout"].cut
    course.pipe_ended("stdout", None)
    course.release()
    assert (course.holders, course.survivors) == (holding, survivors)


async def test_who_holds_a_pipe_is_asked_before_it_is_closed(course: Course, child: ScriptedChild) -> None:
    """Afterwards there would be nothing to look for."""
    closed: list[bool] = []

    def holders() -> tuple[int, ...]:
        closed.append(child.pipes[1].closed)  # type: ignore[union-attr]
        return (5000,)

    child.holders = holders  # type: ignore[method-assign]
    exit_cleanly(course, child)
    clock_of(course).advance(1)
    assert closed == [False]


async def test_an_end_that_nobody_could_see_is_not_confirmed(course: Course, child: ScriptedChild) -> None:
    """The receipt says null, neither yes nor no (A4)."""
    course.adopt(child)  # type: ignore[arg-type]
    child.members = None
    course.request_end("caller")
    assert not course.unseen
    child.exit = Signalled(15)
    course.exit_noticed()
    assert course.unseen
    assert course.kill_confirmed is None


@pytest.mark.parametrize(("left", "confirmed"), [((), True), ((5000,), False), (None, None)])
async def test_an_end_is_confirmed_by_what_is_left(
    course: Course,
    child: ScriptedChild,
    left: tuple[int, ...] | None,
    confirmed: bool | None,  # noqa: FBT001
) -> None:
    """Whatever was seen while it was ended: the last look counts."""
    course.adopt(child)  # type: ignore[arg-type]
    child.members = ()
    course.request_end("caller")
    child.exit = Signalled(15)
    course.exit_noticed()
    child.left_behind = left
    course.release()
    assert course.kill_confirmed is confirmed
