"""The rules of a job's life (A3, B4, F1-F5), in virtual time. Its tables are walked in `test_lifecycle_tables`."""

from __future__ import annotations

import copy
import math
from typing import Final

import pytest

from supervisor.sansio.exits import Exited, ExitStatus, Lost, Signalled
from supervisor.sansio.lifecycle import (
    CONFIRM_SECONDS,
    STATE_OF,
    Action,
    EndReason,
    Lifecycle,
    Phase,
    Pipes,
)

TERMINATION: Final = (Action.TERMINATE_TREE, Action.WATCH_TREE)


def lifecycle(
    *,
    time_limit: float | None = None,
    idle_limit: float | None = None,
    kill_after: float = 5.0,
    drain_timeout: float = 1.0,
) -> Lifecycle:
    """Return a new lifecycle; no limits, unless they are given."""
    return Lifecycle(time_limit=time_limit, idle_limit=idle_limit, kill_after=kill_after, drain_timeout=drain_timeout)


def running(**limits: float) -> Lifecycle:
    """Return a lifecycle whose child was spawned at 0."""
    life = lifecycle(**limits)
    assert life.spawned(0) == ()
    return life


def test_a_job_that_ends_by_itself_settles_after_both_ends() -> None:
    """Exit and end of file are separate facts, in either order (F1)."""
    exit_first = running()
    assert exit_first.leader_exited(Exited(3)) == (Action.DRAIN,)
    assert not exit_first.settled
    assert exit_first.pipes_ended() == (Action.SETTLE,)
    pipes_first = running()
    assert pipes_first.pipes_ended() == ()
    assert pipes_first.leader_exited(Exited(3)) == (Action.SETTLE,)
    for life in (exit_first, pipes_first):
        assert life.settled
        assert life.process_facts() == ("exited", None)
        assert life.ended_normally
        assert life.next_deadline() is None


def test_what_an_exit_left_running_is_ended_with_its_grace() -> None:
    """The exit stays one by itself, without a reason; the pipes are drained after the tree (F3)."""
    life = running(time_limit=10, kill_after=2)
    assert life.leader_exited(Exited(3), end_rest_at=1) == TERMINATION
    assert life.next_deadline() == 3
    assert life.tick(3) == (Action.KILL_TREE,)
    assert life.tree_empty() == (Action.DRAIN,)
    assert life.pipes_ended() == (Action.SETTLE,)
    assert life.process_facts() == ("exited", None)
    assert life.forced
    assert not life.ended_normally


def test_a_forced_exit_is_not_ended_a_second_time() -> None:
    """The rest has its own grace, which began at the request."""
    life = running(kill_after=2)
    life.request_end("caller", 0)
    assert life.leader_exited(Signalled(15), end_rest_at=1) == ()
    assert life.next_deadline() == 2


def test_a_spawn_that_fails_settles_at_once() -> None:
    """There is nothing to wait for (F6)."""
    life = lifecycle(time_limit=1)
    assert life.process_facts() == ("running", None)
    assert life.not_spawned() == (Action.SETTLE,)
    assert life.process_facts() == ("not-started", None)
    assert not life.ended_normally
    assert life.request_end("caller", 0) == ()
    assert life.cause is None


def test_an_end_before_the_spawn_is_carried_out_when_the_child_comes() -> None:
    """The child of a spawn that cannot be called back is ended at once, with its grace (F5)."""
    life = lifecycle(time_limit=100, idle_limit=100)
    assert life.request_end("caller", 1) == ()
    assert life.next_deadline() is None
    assert life.request_end("supervisor-shutdown", 2) == ()
    assert life.spawned(3) == TERMINATION
    assert life.next_deadline() == 8
    assert life.process_facts() == ("cancelled", "caller")


def test_an_end_before_a_spawn_that_is_not_tried_settles() -> None:
    """No child ever was, and the state is that of the cause (A3)."""
    life = lifecycle()
    life.request_end("caller", 0)
    assert life.not_spawned() == (Action.SETTLE,)
    assert life.process_facts() == ("cancelled", "caller")
    assert not life.started


def test_an_end_in_the_drain_window_ends_what_was_left_and_keeps_the_exit() -> None:
    """The command had exited by itself, which stays true; what it left running is ended, and drained anew (F5, A3)."""
    life = running()
    life.leader_exited(Exited(0))
    life.backlog_read(0)
    assert life.next_deadline() == 1
    assert life.request_end("caller", 0.5) == TERMINATION
    assert life.next_deadline() == 5.5
    assert life.backlog_read(0.6) == ()
    assert life.next_deadline() == 5.5, "no drain window while the tree is being ended"
    assert life.tree_empty() == (Action.DRAIN,)
    assert life.pipes_ended() == (Action.SETTLE,)
    assert life.process_facts() == ("exited", None)
    assert life.cause is None
    assert not life.ended_normally, "the writer of the last bytes was cut off: no whole-text rule (C7)"


def test_an_end_after_the_settling_changes_nothing() -> None:
    """Nobody rewrites a receipt (A3)."""
    life = running()
    life.leader_exited(Exited(0))
    life.pipes_ended()
    before = copy.deepcopy(vars(life))
    assert life.request_end("supervisor-shutdown", 9) == ()
    assert vars(life) == before


def test_a_tree_that_obeys_is_not_killed() -> None:
    """TERM, the leader's exit, the last member's exit: nothing was forced (F3)."""
    life = running()
    assert life.request_end("memory", 10) == TERMINATION
    assert life.leader_exited(Signalled(15)) == ()
    assert life.phase is Phase.STRAGGLING
    assert life.tree_empty() == (Action.DRAIN,)
    assert life.next_deadline() is None
    assert life.pipes_ended() == (Action.SETTLE,)
    assert not life.forced
    assert life.kill_confirmed
    assert life.process_facts() == ("cancelled", "memory")
    assert not life.ended_normally


def test_members_are_killed_although_the_leader_obeyed() -> None:
    """The grace is the tree's, not the leader's (F3)."""
    life = running(kill_after=2)
    life.request_end("caller", 10)
    life.leader_exited(Exited(0))
    assert life.tick(11.9) == ()
    assert life.tick(12) == (Action.KILL_TREE,)
    assert life.forced
    assert life.tick(12) == ()
    assert life.tree_empty() == (Action.DRAIN,)
    assert life.next_deadline() is None


def test_a_tree_that_cannot_be_killed_is_an_outcome() -> None:
    """A member in state D: unconfirmed after `CONFIRM_SECONDS`, and the job goes on to its end (F3)."""
    life = running(kill_after=0)
    assert life.request_end("caller", 0) == TERMINATION
    assert life.tick(0) == (Action.KILL_TREE,)
    assert life.next_deadline() == CONFIRM_SECONDS
    assert life.tick(CONFIRM_SECONDS) == (Action.DRAIN,)
    assert not life.kill_confirmed
    life.backlog_read(6)
    assert life.tick(7) == (Action.CUT_PIPES,)
    assert life.pipes_ended() == (Action.SETTLE,)
    assert life.leader_exited(Signalled(9)) == (), "an exit that comes late is known, and settles nothing again"
    assert life.status == Signalled(9)


def test_an_endless_grace_never_kills() -> None:
    """`kill_after=inf` waits for the tree, however long."""
    life = running(kill_after=math.inf)
    life.request_end("caller", 0)
    assert life.next_deadline() is None
    assert life.tick(1e9) == ()
    assert not life.forced


@pytest.mark.parametrize(("timeout", "deadline"), [(0.0, 7), (2.0, 9), (math.inf, None)])
def test_the_drain_window_begins_when_the_backlog_was_read(timeout: float, deadline: float | None) -> None:
    """What was in the pipe at the exit is read off the clock; then the window is fixed, also 0 or endless (F2)."""
    life = running(drain_timeout=timeout)
    assert life.backlog_read(3) == ()
    assert life.leader_exited(Exited(0)) == (Action.DRAIN,)
    assert life.next_deadline() is None
    life.backlog_read(7)
    assert life.next_deadline() == deadline
    life.backlog_read(8)
    assert life.next_deadline() == deadline, "told again, it does not begin again"
    if deadline is not None:
        assert life.tick(deadline) == (Action.CUT_PIPES,)
        assert life.pipes is Pipes.CUT
        assert life.pipes_ended() == (Action.SETTLE,)
        assert not life.ended_normally


@pytest.mark.parametrize("reason", STATE_OF)
def test_the_first_cause_wins(reason: EndReason) -> None:
    """Each request is a distinct outcome, and later ones change nothing (A3, F4)."""
    life = running()
    life.request_end(reason, 0)
    for later in STATE_OF:
        assert life.request_end(later, 1) == ()
    assert life.process_facts() == (STATE_OF[reason], reason)
    assert life.next_deadline() == 5, "the grace does not begin again"


def test_what_cannot_happen_raises_and_changes_nothing() -> None:
    """A defect of the caller's, on either side."""
    life = running()
    life.pipes_ended()
    before = copy.deepcopy(vars(life))
    with pytest.raises(AssertionError, match="TREE_EMPTY cannot happen in RUNNING"):
        life.tree_empty()
    with pytest.raises(AssertionError, match="ALL_EOF cannot happen while the pipes are CLOSED"):
        life.pipes_ended()
    assert vars(life) == before


def test_limits_end_the_job_at_their_time() -> None:
    """The earlier one is the cause; output moves the idle limit and not the time limit (F4)."""
    life = running(time_limit=10, idle_limit=4)
    life.output(3)
    assert life.next_deadline() == 7
    life.output(7)
    assert life.tick(9.9) == ()
    assert life.tick(11) == TERMINATION, "both are due: the one that was due first"
    assert life.cause == "time-limit"
    life.output(12)
    assert life.next_deadline() == 16, "only the grace is left"
    idle = running(time_limit=10, idle_limit=4)
    assert idle.tick(4) == TERMINATION
    assert idle.process_facts() == ("timeout", "idle-limit")


@pytest.mark.parametrize(
    ("status", "facts"),
    [
        (Exited(7), ("exited", None)),
        (Signalled(11), ("exited", None)),
        (Lost(), ("unknown", "status-lost")),
        (None, ("running", None)),
    ],
)
def test_the_process_state_is_read_from_the_exit(status: ExitStatus | None, facts: tuple[str, str | None]) -> None:
    """A signal that was not ours is an exit; a status that nobody saw is no exit code (A1, A3)."""
    life = running()
    if status is not None:
        life.leader_exited(status)
        life.pipes_ended()
    assert life.process_facts() == facts
    assert life.ended_normally is (status == Exited(7))


def test_our_pauses_do_not_run_the_idle_limit() -> None:
    """The time for which we stopped a stream did not pass for the child; holds of two streams nest (B4)."""
    life = running(idle_limit=4, time_limit=100)
    life.hold(3)
    life.hold(5)
    assert life.next_deadline() == 100, "the time limit goes on"
    life.unhold(20)
    assert life.tick(50) == ()
    life.unhold(60)
    assert life.next_deadline() == 61
    assert life.tick(61) == TERMINATION


def test_output_during_a_pause_starts_the_idle_limit_at_the_end_of_the_pause() -> None:
    """The other stream writes while one is held: the child has its whole limit again, and no more (B4)."""
    life = running(idle_limit=4)
    life.hold(1)
    life.output(9)
    life.unhold(10)
    assert life.next_deadline() == 14


def test_our_pauses_do_not_run_the_drain_window() -> None:
    """Neither one that began before the window nor one within it (F2)."""
    life = running(drain_timeout=2)
    life.hold(0)
    life.leader_exited(Exited(0))
    life.backlog_read(10)
    assert life.next_deadline() is None
    life.unhold(11)
    assert life.next_deadline() == 13
    life.hold(12)
    assert life.tick(20) == ()
    life.unhold(30)
    assert life.tick(30) == ()
    assert life.tick(31) == (Action.CUT_PIPES,)


def test_our_pauses_do_not_stop_a_forced_ending() -> None:
    """Grace and confirmation are promises to whoever wants the end (F3)."""
    life = running(kill_after=2)
    life.hold(0)
    life.request_end("caller", 1)
    assert life.tick(3) == (Action.KILL_TREE,)
    assert life.tick(3 + CONFIRM_SECONDS) == (Action.DRAIN,)
