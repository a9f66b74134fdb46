"""The two tables of a job's life, walked over the whole product of states and events (contract F1, F3)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

import pytest

from supervisor.sansio.exits import Exited
from supervisor.sansio.lifecycle import (
    PIPE_TRANSITIONS,
    TRANSITIONS,
    Action,
    Event,
    Lifecycle,
    Phase,
    PipeEvent,
    Pipes,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def lifecycle() -> Lifecycle:
    """Return a new lifecycle without limits."""
    return Lifecycle(time_limit=None, idle_limit=None, kill_after=5.0, drain_timeout=1.0)


EVENTS: Final[dict[Event, Callable[[Lifecycle], object]]] = {
    Event.SPAWNED: lambda life: life.spawned(0),
    Event.NOT_SPAWNED: lambda life: life.not_spawned(),
    Event.END_REQUESTED: lambda life: life.request_end("caller", 0),
    Event.LEADER_EXITED: lambda life: life.leader_exited(Exited(0)),
    Event.TREE_EMPTY: lambda life: life.tree_empty(),
    # Only a deadline brings these two, and it exists only where they may happen.
    Event.GRACE_OVER: lambda life: life._grace_over(5),
    Event.CONFIRM_OVER: lambda life: life._confirm_over(),
}
PATHS: Final[dict[Phase, tuple[Event, ...]]] = {
    Phase.LAUNCHING: (),
    Phase.UNWANTED: (Event.END_REQUESTED,),
    Phase.RUNNING: (Event.SPAWNED,),
    Phase.EXITED: (Event.SPAWNED, Event.LEADER_EXITED),
    Phase.TERMINATING: (Event.SPAWNED, Event.END_REQUESTED),
    Phase.STRAGGLING: (Event.SPAWNED, Event.END_REQUESTED, Event.LEADER_EXITED),
    Phase.KILLING: (Event.SPAWNED, Event.END_REQUESTED, Event.GRACE_OVER),
    Phase.GONE: (Event.SPAWNED, Event.END_REQUESTED, Event.LEADER_EXITED, Event.TREE_EMPTY),
}


def in_phase(phase: Phase) -> Lifecycle:
    """Return a lifecycle that came to `phase` by events, its pipes still open."""
    life = lifecycle()
    for event in PATHS[phase]:
        EVENTS[event](life)
    assert life.phase is phase
    assert life.pipes is Pipes.OPEN
    return life


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_every_pair_of_phase_and_event_does_what_the_table_says(phase: Phase, event: Event) -> None:
    """A pair in the table moves; any other raises, names itself, and changes nothing."""
    life = in_phase(phase)
    before = copy.deepcopy(vars(life))
    after = TRANSITIONS.get((phase, event))
    if after is None:
        with pytest.raises(AssertionError, match=f"{event.name} cannot happen in {phase.name}"):
            EVENTS[event](life)
        assert vars(life) == before
    else:
        EVENTS[event](life)
        assert life.phase is after


def in_pipes(pipes: Pipes) -> Lifecycle:
    """Return a lifecycle of a running child whose pipes came to this state by events."""
    life = lifecycle()
    life.spawned(0)
    if pipes is Pipes.CLOSED:
        life.pipes_ended()
    elif pipes is Pipes.CUT:
        life.leader_exited(Exited(0))
        life.backlog_read(0)
        assert life.tick(1) == (Action.CUT_PIPES,)
    assert life.pipes is pipes
    return life


@pytest.mark.parametrize("pipes", Pipes)
@pytest.mark.parametrize("event", PipeEvent)
def test_every_pair_of_pipes_and_event_does_what_the_table_says(pipes: Pipes, event: PipeEvent) -> None:
    """The same for the other machine."""
    life = in_pipes(pipes)
    before = copy.deepcopy(vars(life))
    after = PIPE_TRANSITIONS.get((pipes, event))
    if after is None:
        with pytest.raises(AssertionError, match=f"{event.name} cannot happen while the pipes are {pipes.name}"):
            life.pipes_ended() if event is PipeEvent.ALL_EOF else life._pipe_step(event)
        assert vars(life) == before
    elif event is PipeEvent.ALL_EOF:
        life.pipes_ended()
        assert life.pipes is after
    else:
        assert life._pipe_step(event) is after


def test_the_table_has_the_shape_that_the_contract_wants() -> None:
    """An end may be asked for in each phase and never leads back; nothing but a grace that is over leads to KILL."""
    order = list(Phase)
    assert {phase for phase, event in TRANSITIONS if event is Event.END_REQUESTED} == set(Phase)
    assert all(order.index(after) >= order.index(before) for (before, _), after in TRANSITIONS.items())
    to_kill = {pair for pair, after in TRANSITIONS.items() if after is Phase.KILLING and pair[0] is not after}
    assert {event for _, event in to_kill} == {Event.GRACE_OVER}
    assert all((pipes, PipeEvent.DRAIN_OVER) not in PIPE_TRANSITIONS for pipes in (Pipes.CLOSED, Pipes.CUT))
