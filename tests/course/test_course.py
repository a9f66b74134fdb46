"""A course tells its lifecycle what happened and does what it says (contract B4, F1-F5)."""

from __future__ import annotations

import asyncio
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from supervisor.course import TREE_WATCH_SECONDS
from supervisor.limits import Limits
from supervisor.sansio.exits import Exited, Signalled
from supervisor.sansio.lifecycle import CONFIRM_SECONDS, Action, Phase

if TYPE_CHECKING:
    from conftest import MakeCourse, ScriptedChild, VirtualClock

    from supervisor.course import Course
    from supervisor.sansio.exits import ExitStatus

pytestmark = pytest.mark.asyncio

TERMINATION = [signal.SIGTERM, signal.SIGCONT]


def clock_of(course: Course) -> VirtualClock:
    """Return the course's clock, as the virtual one that it is."""
    return course.services.clock  # type: ignore[return-value]


def exits(course: Course, child: ScriptedChild, status: ExitStatus) -> None:
    """The leader ends, and the transport tells."""
    child.exit = status
    course.exit_noticed()


def end_pipes(course: Course) -> None:
    """Both pipes reach their end."""
    course.pipe_ended("stdout", None)
    course.pipe_ended("stderr", None)


async def test_a_job_that_ends_by_itself_is_over_after_exit_and_both_pipes(
    course: Course, child: ScriptedChild
) -> None:
    """Its times are those of the spawn and of the exit, not of the last pipe's end (F1)."""
    course.adopt(child)  # type: ignore[arg-type]
    clock_of(course).advance(2)
    exits(course, child, Exited(3))
    clock_of(course).advance(0.5)
    course.exit_noticed()
    course.pipe_ended("stdout", None)
    assert not course.over.done()
    course.pipe_ended("stderr", None)
    assert course.over.done()
    assert (course.began, course.ended) == (100, 102)
    assert course.started_at is not None
    assert course.ended_at is not None
    assert (course.ended_at - course.started_at).total_seconds() == 2
    assert course.limitations == ["a-limitation"]
    assert child.signals == []
    course.stop_clock()
    assert clock_of(course).waiting == []


async def test_an_exit_before_the_adoption_is_not_lost(course: Course, child: ScriptedChild) -> None:
    """The transport may tell it while the spawn is still on its way back."""
    child.exit = Exited(0)
    course.exit_noticed()
    assert course.lifecycle.status is None
    course.adopt(child)  # type: ignore[arg-type]
    assert course.lifecycle.status == Exited(0)
    assert course.lifecycle.phase is Phase.EXITED


async def test_an_end_for_want_of_memory_is_no_exit_of_its_own(course: Course, child: ScriptedChild) -> None:
    """What the kernel left of the tree is ended, and the reason is the cgroup's limit (A3)."""
    course.adopt(child)  # type: ignore[arg-type]
    child.out_of_memory = True
    child.members = ()
    exits(course, child, Signalled(9))
    end_pipes(course)
    assert course.over.done()
    assert course.lifecycle.process_facts() == ("cancelled", "memory")
    assert course.lifecycle.status == Signalled(9)


async def test_a_limit_ends_the_tree_with_its_grace(make_course: MakeCourse, child: ScriptedChild) -> None:
    """TERM and CONT at the limit, KILL when members outlive the grace, and the end when none is seen any more (F3)."""
    course = make_course(time_limit=10, kill_after=2)
    clock = clock_of(course)
    course.adopt(child)  # type: ignore[arg-type]
    clock.advance(9.9)
    assert child.signals == []
    clock.advance(0.2)
    assert child.signals == TERMINATION
    child.members = (5000,)
    exits(course, child, Signalled(15))
    clock.advance(1.8)
    assert child.signals == TERMINATION, "the leader is gone, a member has its grace"
    clock.advance(0.2)
    assert child.signals == [*TERMINATION, signal.SIGKILL]
    end_pipes(course)
    assert not course.over.done()
    child.members = ()
    clock.advance(TREE_WATCH_SECONDS)
    assert course.over.done()
    course.stop_clock()
    assert clock.waiting == [], "nobody looks at the tree any more"


async def test_output_puts_the_idle_limit_off(make_course: MakeCourse, child: ScriptedChild) -> None:
    """One timer is set at a time, and it is set again when it finds the deadline moved."""
    course = make_course(idle_limit=4)
    clock = clock_of(course)
    course.adopt(child)  # type: ignore[arg-type]
    for _ in range(3):
        clock.advance(3)
        course.output_seen("stderr", b".")
        assert len(clock.waiting) == 1
    clock.advance(3.9)
    assert child.signals == []
    clock.advance(0.1)
    assert child.signals == TERMINATION
    assert course.lifecycle.cause == "idle-limit"
    assert course.last_output == 109


async def test_an_earlier_deadline_replaces_the_timer(make_course: MakeCourse, child: ScriptedChild) -> None:
    """A grace that ends before the time limit would have."""
    course = make_course(time_limit=1000, kill_after=1)
    clock = clock_of(course)
    course.adopt(child)  # type: ignore[arg-type]
    course.request_end("caller")
    clock.advance(1)
    assert child.signals == [*TERMINATION, signal.SIGKILL]


async def test_our_own_pauses_do_not_run_the_idle_limit(make_course: MakeCourse, child: ScriptedChild) -> None:
    """A pump at its high mark holds the clock, also when no timer was left to wake us (B4)."""
    course = make_course(idle_limit=4, limits=Limits(queue_bytes=10))
    clock = clock_of(course)
    course.adopt(child)  # type: ignore[arg-type]
    resumed = asyncio.Event()
    course.pumps["stdout"].valve = SimpleNamespace(pause_reading=lambda: None, resume_reading=resumed.set)
    course.output_seen("stdout", b"x" * 10)
    clock.advance(60)
    assert child.signals == []
    await asyncio.wait_for(resumed.wait(), 30)
    clock.advance(3.9)
    assert child.signals == []
    clock.advance(0.1)
    assert child.signals == TERMINATION


async def test_the_backlog_is_read_off_the_clock_then_the_window_is_fixed(course: Course, child: ScriptedChild) -> None:
    """What was in both pipes at the exit, however long that takes; what is open after the window is cut (F2)."""
    clock = clock_of(course)
    course.adopt(child)  # type: ignore[arg-type]
    child.waiting = {1: 10, 2: 5}
    exits(course, child, Exited(0))
    clock.advance(50)
    course.output_seen("stdout", b"x" * 4)
    course.output_seen("stderr", b"x" * 7)
    course.output_seen("stderr", b"x")
    assert clock.waiting == []
    course.output_seen("stdout", b"x" * 6)
    clock.advance(0.9)
    course.output_seen("stdout", b"a grandchild goes on")
    course.pipe_ended("stderr", None)
    assert not course.pumps["stdout"].cut
    clock.advance(0.1)
    assert course.pumps["stdout"].cut
    assert not course.pumps["stderr"].cut, "it had ended by itself"
    assert [child.pipes[fd].closed for fd in (1, 2)] == [True, False]  # type: ignore[union-attr]
    assert not course.over.done()
    course.pipe_ended("stdout", None)
    assert course.over.done()
    assert not course.lifecycle.ended_normally


async def test_a_backlog_whose_pipe_ends_has_been_read(course: Course, child: ScriptedChild) -> None:
    """The window of the other pipe begins there."""
    course.adopt(child)  # type: ignore[arg-type]
    child.waiting[1] = 10
    exits(course, child, Exited(0))
    assert clock_of(course).waiting == []
    course.pipe_ended("stdout", None)
    assert [alarm.when for alarm in clock_of(course).waiting] == [101]


async def test_an_end_that_comes_before_the_child_is_carried_out_on_it(course: Course, child: ScriptedChild) -> None:
    """A spawn cannot be called back (F5)."""
    course.request_end("caller")
    assert child.signals == []
    course.adopt(child)  # type: ignore[arg-type]
    assert child.signals == TERMINATION
    assert course.lifecycle.process_facts() == ("cancelled", "caller")


async def test_a_tree_that_nobody_can_see_is_killed_once_its_leader_is_gone(
    course: Course, child: ScriptedChild
) -> None:
    """There is no telling whether a grace is used, so none is given; whether anybody was hit stays unknown (F3)."""
    course.adopt(child)  # type: ignore[arg-type]
    child.members = None
    course.request_end("caller")
    exits(course, child, Signalled(15))
    clock_of(course).advance(TREE_WATCH_SECONDS)
    assert child.signals == [*TERMINATION, signal.SIGKILL]
    end_pipes(course)
    assert course.over.done()


async def test_a_child_that_cannot_be_killed_is_given_up_and_named(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """The job ends; the pid stays in the receipt as a survivor (F3, F10)."""
    course = make_course(kill_after=0)
    clock = clock_of(course)
    course.adopt(child)  # type: ignore[arg-type]
    course.request_end("supervisor-shutdown")
    clock.advance(CONFIRM_SECONDS)
    assert child.signals == [*TERMINATION, signal.SIGKILL]
    assert not course.lifecycle.kill_confirmed
    clock.advance(1)
    assert [child.pipes[fd].closed for fd in (1, 2)] == [True, True]  # type: ignore[union-attr]
    end_pipes(course)
    assert course.over.done()
    child.left_behind = (4242,)
    course.release()
    assert child.ending == "abandoned"
    assert course.survivors == (4242,)
    assert "tree-by-something" in course.limitations


async def test_an_ended_child_is_reaped_and_what_it_left_is_named(course: Course, child: ScriptedChild) -> None:
    """Of a job that nobody ended, its daemons are its own business: no limitation (F3)."""
    course.release()
    course.adopt(child)  # type: ignore[arg-type]
    exits(course, child, Exited(0))
    child.left_behind = (7, 8)
    course.release()
    assert child.ending == "released"
    assert course.survivors == (7, 8)
    assert "tree-by-something" not in course.limitations


async def test_a_pipe_that_fails_ends_retention_of_its_stream_alone(course: Course, child: ScriptedChild) -> None:
    """Its bytes are lost, the other stream's are not (B5)."""
    course.adopt(child)  # type: ignore[arg-type]
    course.pipe_ended("stdout", OSError("input/output error"))
    assert course.pumps["stdout"].stream.reason == "io-error"
    assert course.pumps["stdout"].ended
    assert course.pumps["stderr"].stream.retaining


async def test_the_receipt_carries_what_fits_both_ceilings(make_course: MakeCourse) -> None:
    """Each stream within its own, and both together within the bytes (A7, E6)."""
    limits = Limits(preview_stdout_chars=10, preview_stderr_chars=10, preview_bytes=16)
    course = make_course(limits=limits)
    out, err = course.pumps["stdout"].stream.preview, course.pumps["stderr"].stream.preview
    out.feed(b"x" * 10)
    err.feed(b"x" * 6)
    assert course.fits_receipt()
    err.feed(b"x")
    assert not course.fits_receipt()
    alone = make_course(limits=limits)
    alone.pumps["stdout"].stream.preview.feed(b"x" * 11)
    assert not alone.fits_receipt()


async def test_stdin_is_written_and_ended(course: Course, child: ScriptedChild) -> None:
    """A write waits while the pipe's buffer is full; after the end there is nobody to write to (F7)."""
    course.close_stdin()
    with pytest.raises(BrokenPipeError):
        await course.write(b"too early")
    course.adopt(child)  # type: ignore[arg-type]
    await course.write(b"one ")
    course.writable.clear()
    write = asyncio.ensure_future(course.write(b"two"))
    await asyncio.sleep(0)
    assert not write.done()
    course.writable.set()
    await write
    course.close_stdin()
    stdin = child.pipes[0]
    assert (stdin.written, stdin.ended) == (b"one two", True)  # type: ignore[union-attr]
    with pytest.raises(BrokenPipeError):
        await course.write(b"too late")
    child.pipes[0] = child.pipes[1]
    course.close_stdin()
    assert child.pipes[1].closed is False  # type: ignore[union-attr]


@pytest.mark.parametrize("action", [Action.TERMINATE_TREE, Action.KILL_TREE, Action.CUT_PIPES])
async def test_nothing_can_be_done_to_a_child_that_is_not_there(course: Course, action: Action) -> None:
    """It would be a defect of the lifecycle's."""
    with pytest.raises(AssertionError, match=f"{action.name} without a child"):
        course.act((action,))


async def test_a_stopped_clock_calls_nobody(make_course: MakeCourse, child: ScriptedChild) -> None:
    """Nothing is left of a job on the loop (F10)."""
    course = make_course(time_limit=10)
    course.stop_clock()
    course.adopt(child)  # type: ignore[arg-type]
    assert len(clock_of(course).waiting) == 1
    course.stop_clock()
    assert clock_of(course).waiting == []
