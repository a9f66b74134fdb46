"""The life of one job's process and pipes, as a table.

Two machines run side by side, because exit and end of file are separate facts [F1]. The *process* machine knows the
leader and, in a forced ending, its tree: nothing but an empty tree or a spent deadline ends it [F3]. The *pipes*
machine knows whether every stream has reached its end or was cut. A job settles when both have ended, once.

`TRANSITIONS` and `PIPE_TRANSITIONS` are the specification: a pair that is not in them is a defect of the caller and
raises without changing anything. Deadlines are data (`next_deadline`), time is an argument, and what the shell has to
do comes back as a tuple of `Action`. The first cause of an ending wins; later ones change nothing [A3].

While we ourselves hold the child up (a paused pipe), the clocks of its idle limit and of the drain window stand still
[B4, F2].
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Final, Literal

from .exits import Exited, ExitStatus, Lost, Signalled

if TYPE_CHECKING:
    from .words import ProcessReason, ProcessState

EndReason = Literal["time-limit", "idle-limit", "caller", "supervisor-shutdown", "memory", "output-limit"]
"""Why a tree is to be ended: the process reasons of contract A3 that are a request."""

STATE_OF: Final[dict[EndReason, ProcessState]] = {
    "time-limit": "timeout",
    "idle-limit": "timeout",
    "caller": "cancelled",
    "supervisor-shutdown": "cancelled",
    "memory": "cancelled",
    "output-limit": "cancelled",
}

CONFIRM_SECONDS: Final = 5.0
"""How long a killed tree may take to vanish. A member in state D does not end on SIGKILL (facts 2): past this the
outcome is "kill unconfirmed", not a hang."""


class Phase(enum.Enum):
    """Where the process side of a job is."""

    LAUNCHING = "the spawn is under way"
    UNWANTED = "the spawn is under way and its child is to be ended at once"
    RUNNING = "the leader runs"
    EXITED = "the leader ended by itself"
    TERMINATING = "the tree was asked to end; the leader has not"
    STRAGGLING = "the leader has ended; members of its tree have their grace"
    KILLING = "the tree was killed and has not vanished yet"
    GONE = "the forced ending is over, or nothing was ever started"


class Event(enum.Enum):
    """What can happen to the process side."""

    SPAWNED = "the child runs"
    NOT_SPAWNED = "the spawn failed or was not tried"
    END_REQUESTED = "a limit, the caller or the supervisor wants the tree to end"
    LEADER_EXITED = "the leader's exit was seen"
    TREE_EMPTY = "no live member of the tree is left, the leader included"
    GRACE_OVER = "`kill_after` has passed since the request"
    CONFIRM_OVER = "the killed tree did not vanish in time"


class Pipes(enum.Enum):
    """Where the output side of a job is."""

    OPEN = "at least one stream can still bring bytes"
    CLOSED = "every stream has reached its real end"
    CUT = "we closed what was still open when the drain window ended"


class PipeEvent(enum.Enum):
    """What can happen to the output side."""

    ALL_EOF = "the last open stream has ended"
    DRAIN_OVER = "the drain window has ended"


TRANSITIONS: Final[dict[tuple[Phase, Event], Phase]] = {
    (Phase.LAUNCHING, Event.SPAWNED): Phase.RUNNING,
    (Phase.LAUNCHING, Event.NOT_SPAWNED): Phase.GONE,
    (Phase.LAUNCHING, Event.END_REQUESTED): Phase.UNWANTED,
    (Phase.UNWANTED, Event.SPAWNED): Phase.TERMINATING,
    (Phase.UNWANTED, Event.NOT_SPAWNED): Phase.GONE,
    (Phase.UNWANTED, Event.END_REQUESTED): Phase.UNWANTED,
    (Phase.RUNNING, Event.END_REQUESTED): Phase.TERMINATING,
    (Phase.RUNNING, Event.LEADER_EXITED): Phase.EXITED,
    # A cancel in the drain window still ends what the command left running [F5].
    (Phase.EXITED, Event.END_REQUESTED): Phase.STRAGGLING,
    (Phase.TERMINATING, Event.LEADER_EXITED): Phase.STRAGGLING,
    (Phase.TERMINATING, Event.GRACE_OVER): Phase.KILLING,
    (Phase.TERMINATING, Event.END_REQUESTED): Phase.TERMINATING,
    (Phase.STRAGGLING, Event.TREE_EMPTY): Phase.GONE,
    (Phase.STRAGGLING, Event.GRACE_OVER): Phase.KILLING,
    (Phase.STRAGGLING, Event.END_REQUESTED): Phase.STRAGGLING,
    (Phase.KILLING, Event.LEADER_EXITED): Phase.KILLING,
    (Phase.KILLING, Event.TREE_EMPTY): Phase.GONE,
    (Phase.KILLING, Event.CONFIRM_OVER): Phase.GONE,
    (Phase.KILLING, Event.END_REQUESTED): Phase.KILLING,
    (Phase.GONE, Event.LEADER_EXITED): Phase.GONE,
    (Phase.GONE, Event.END_REQUESTED): Phase.GONE,
}

PIPE_TRANSITIONS: Final[dict[tuple[Pipes, PipeEvent], Pipes]] = {
    (Pipes.OPEN, PipeEvent.ALL_EOF): Pipes.CLOSED,
    (Pipes.OPEN, PipeEvent.DRAIN_OVER): Pipes.CUT,
    (Pipes.CUT, PipeEvent.ALL_EOF): Pipes.CUT,
}


class Action(enum.Enum):
    """What the shell has to do now, in the order given."""

    TERMINATE_TREE = "send TERM, then CONT, to the tree"
    KILL_TREE = "send KILL to the tree"
    WATCH_TREE = "look for live members from time to time and report an empty tree"
    DRAIN = "measure what is in the pipes now, and report when that much was read"
    CUT_PIPES = "close the pipes that are still open"
    SETTLE = "nothing more will come: settle the streams, publish, release"


class Timer(enum.Enum):
    """The clocks of a job."""

    TIME_LIMIT = "time limit"
    IDLE_LIMIT = "idle limit"
    GRACE = "kill after"
    CONFIRM = "kill confirmation"
    DRAIN = "drain timeout"


_OURS: Final = frozenset({Timer.IDLE_LIMIT, Timer.DRAIN})
"""The clocks that stand still while we hold the child up [B4, F2]."""
_OVER: Final = frozenset({Phase.EXITED, Phase.GONE})


class Lifecycle:
    """The facts of one job's process and pipes, and the rules that move them. All times are seconds of one clock."""

    def __init__(
        self, *, time_limit: float | None, idle_limit: float | None, kill_after: float, drain_timeout: float
    ) -> None:
        self.phase = Phase.LAUNCHING
        self.pipes = Pipes.OPEN
        self.status: ExitStatus | None = None
        self.cause: EndReason | None = None
        self.started = False
        """Whether the spawn gave us a child."""
        self.forced = False
        """Whether we sent KILL."""
        self.kill_confirmed = True
        """False once a killed tree outlived `CONFIRM_SECONDS`."""
        self.settled = False
        self._time_limit = time_limit
        self._idle_limit = idle_limit
        self._kill_after = kill_after
        self._drain_timeout = drain_timeout
        self._deadlines: dict[Timer, float] = {}
        self._held_since: float | None = None
        self._holds = 0
        self._draining = False

    def spawned(self, now: float) -> tuple[Action, ...]:
        """The child runs; its time limit and idle limit start."""
        phase = self._step(Event.SPAWNED)
        self.started = True
        if phase is Phase.TERMINATING:
            return self._begin_termination(now)
        self._arm(Timer.TIME_LIMIT, now, self._time_limit)
        self._arm(Timer.IDLE_LIMIT, now, self._idle_limit)
        return ()

    def not_spawned(self) -> tuple[Action, ...]:
        """There will be no child, because the spawn failed or the end was requested before it."""
        self._step(Event.NOT_SPAWNED)
        self.pipes = Pipes.CLOSED
        return self._settle_if_over()

    def request_end(self, reason: EndReason, now: float) -> tuple[Action, ...]:
        """Somebody wants the tree to end. Only the first request of a job that has not exited becomes its cause."""
        if self.settled:
            return ()
        before = self.phase
        after = self._step(Event.END_REQUESTED)
        if self.cause is None and before in {Phase.LAUNCHING, Phase.RUNNING}:
            self.cause = reason
        if after is before or after is Phase.UNWANTED:
            return ()
        self._deadlines.pop(Timer.DRAIN, None)
        return self._begin_termination(now)

    def leader_exited(self, status: ExitStatus, *, end_rest_at: float | None = None) -> tuple[Action, ...]:
        """The leader's exit was seen; from `end_rest_at` on, if that is a time, what it left running is ended."""
        phase = self._step(Event.LEADER_EXITED)
        self.status = status
        if phase is Phase.EXITED:
            self._stop_limits()
            if end_rest_at is not None:
                self._step(Event.END_REQUESTED)
                return self._begin_termination(end_rest_at)
            return self._process_over()
        return ()

    def tree_empty(self) -> tuple[Action, ...]:
        """No live member of the tree is left."""
        self._step(Event.TREE_EMPTY)
        self._deadlines.pop(Timer.GRACE, None)
        self._deadlines.pop(Timer.CONFIRM, None)
        return self._process_over()

    def output(self, now: float) -> None:
        """The child wrote something: its idle limit starts again."""
        if Timer.IDLE_LIMIT in self._deadlines:
            self._arm(Timer.IDLE_LIMIT, now, self._idle_limit)

    def backlog_read(self, now: float) -> tuple[Action, ...]:
        """What was in the pipes at the exit has been read: the drain window starts, once [F2]."""
        if self._draining and self.pipes is Pipes.OPEN and Timer.DRAIN not in self._deadlines:
            self._arm(Timer.DRAIN, now, self._drain_timeout)
        return ()

    def pipes_ended(self) -> tuple[Action, ...]:
        """Every stream has ended, by itself or because it was cut."""
        self.pipes = self._pipe_step(PipeEvent.ALL_EOF)
        self._deadlines.pop(Timer.DRAIN, None)
        self._draining = False
        return self._settle_if_over()

    def hold(self, now: float) -> None:
        """We stopped reading a stream. Calls nest: one for each stream."""
        self._holds += 1
        if self._holds == 1:
            self._held_since = now

    def unhold(self, now: float) -> None:
        """We read on; the time in between did not pass for the child."""
        self._holds -= 1
        if self._holds == 0 and self._held_since is not None:
            for timer in _OURS & self._deadlines.keys():
                self._deadlines[timer] += now - self._held_since
            self._held_since = None

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do, or None."""
        running = [at for timer, at in self._deadlines.items() if not (self._holds and timer in _OURS)]
        return min(running, default=None)

    def tick(self, now: float) -> tuple[Action, ...]:
        """Fire the earliest deadline that is due; call again until it returns nothing."""
        due = [
            (at, timer) for timer, at in self._deadlines.items() if at <= now and not (self._holds and timer in _OURS)
        ]
        if not due:
            return ()
        _, timer = min(due, key=lambda pair: pair[0])
        del self._deadlines[timer]
        match timer:
            case Timer.TIME_LIMIT:
                return self.request_end("time-limit", now)
            case Timer.IDLE_LIMIT:
                return self.request_end("idle-limit", now)
            case Timer.GRACE:
                return self._grace_over(now)
            case Timer.CONFIRM:
                return self._confirm_over()
            case Timer.DRAIN:  # pragma: no branch -- every timer is named
                self.pipes = self._pipe_step(PipeEvent.DRAIN_OVER)
                return (Action.CUT_PIPES,)

    def process_facts(self) -> tuple[ProcessState, ProcessReason | None]:
        """Return the receipt's process state and reason [A1, A3]."""
        if self.cause is not None:
            return STATE_OF[self.cause], self.cause
        if not self.started:
            return ("running" if self.phase is Phase.LAUNCHING else "not-started"), None
        match self.status:
            case Exited() | Signalled():
                return "exited", None
            case Lost():
                return "unknown", "status-lost"
            case None:  # pragma: no branch -- every status is named
                return "running", None

    @property
    def ended_normally(self) -> bool:
        """Whether the whole-text rule may be applied at the end of a stream [C7]: a real exit that nobody forced."""
        # EXITED and not GONE: an end that was asked for in the drain window cuts off whoever wrote last.
        return self.phase is Phase.EXITED and isinstance(self.status, Exited) and self.pipes is Pipes.CLOSED

    def _step(self, event: Event) -> Phase:
        try:
            self.phase = TRANSITIONS[self.phase, event]
        except KeyError:
            raise AssertionError(f"{event.name} cannot happen in {self.phase.name}") from None
        return self.phase

    def _pipe_step(self, event: PipeEvent) -> Pipes:
        try:
            return PIPE_TRANSITIONS[self.pipes, event]
        except KeyError:
            raise AssertionError(f"{event.name} cannot happen while the pipes are {self.pipes.name}") from None

    def _arm(self, timer: Timer, now: float, seconds: float | None) -> None:
        if seconds is None or math.isinf(seconds):
            return
        # `unhold` gives back the whole pause, the part before this moment too.
        since = self._held_since if timer in _OURS and self._held_since is not None else now
        self._deadlines[timer] = since + seconds

    def _stop_limits(self) -> None:
        self._deadlines.pop(Timer.TIME_LIMIT, None)
        self._deadlines.pop(Timer.IDLE_LIMIT, None)

    def _begin_termination(self, now: float) -> tuple[Action, ...]:
        self._stop_limits()
        self._draining = False
        self._arm(Timer.GRACE, now, self._kill_after)
        return Action.TERMINATE_TREE, Action.WATCH_TREE

    def _grace_over(self, now: float) -> tuple[Action, ...]:
        self._step(Event.GRACE_OVER)
        self.forced = True
        self._arm(Timer.CONFIRM, now, CONFIRM_SECONDS)
        return (Action.KILL_TREE,)

    def _confirm_over(self) -> tuple[Action, ...]:
        self._step(Event.CONFIRM_OVER)
        self.kill_confirmed = False
        return self._process_over()

    def _process_over(self) -> tuple[Action, ...]:
        if self.pipes is Pipes.OPEN:
            self._draining = True
            return (Action.DRAIN,)
        return self._settle_if_over()

    def _settle_if_over(self) -> tuple[Action, ...]:
        if self.settled or self.phase not in _OVER or self.pipes is Pipes.OPEN:
            return ()
        self.settled = True
        return (Action.SETTLE,)
