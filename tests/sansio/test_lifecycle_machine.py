"""Any order of events and any times: what must hold for every life of a job (contract A3, B4, F1-F4)."""

from __future__ import annotations

from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from supervisor.sansio.exits import Exited, ExitStatus, Lost, Signalled
from supervisor.sansio.lifecycle import CONFIRM_SECONDS, STATE_OF, Action, EndReason, Lifecycle, Phase, Pipes

SECONDS: Final = st.integers(0, 12)
NEVER: Final = float("inf")
LIMIT: Final = st.one_of(st.integers(1, 12), st.none())
GRACE: Final = st.one_of(st.integers(0, 6), st.just(NEVER))


class Life(RuleBasedStateMachine):
    """A shell without a child. Times are whole seconds, so that every deadline is met exactly.

    It keeps its own books: how much of each clock has passed, counted forwards, where the lifecycle keeps deadlines.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.actions: list[tuple[float, Action]] = []
        self.cause: EndReason | None = None
        self.spawned_at: float | None = None
        self.holds = 0
        self.idle = 0.0
        self.drained: float | None = None
        self.draining = False

    @initialize(
        time_limit=LIMIT,
        idle_limit=LIMIT,
        kill_after=GRACE,
        drain_timeout=GRACE,
        start=st.sampled_from(["launching", "running", "running", "exited", "exited"]),
    )
    def begin(
        self, time_limit: int | None, idle_limit: int | None, kill_after: float, drain_timeout: float, start: str
    ) -> None:
        """Any limits, also none, zero and endless; mostly on the way already, since a failed spawn leads nowhere."""
        self.time_limit = NEVER if time_limit is None else time_limit
        self.idle_limit = NEVER if idle_limit is None else idle_limit
        self.kill_after, self.drain_timeout = kill_after, drain_timeout
        self.life = Lifecycle(
            time_limit=time_limit, idle_limit=idle_limit, kill_after=kill_after, drain_timeout=drain_timeout
        )
        if start != "launching":
            self.spawn()
        if start == "exited":
            self.leader_exits(Exited(0))

    def at(self, action: Action) -> float | None:
        """Return when the lifecycle last asked for `action`."""
        return next((when for when, asked in reversed(self.actions) if asked is action), None)

    def do(self, actions: tuple[Action, ...]) -> None:
        """Note what has to be done, then fire what is due, as the shell does after each event."""
        while True:
            self.actions.extend((self.now, action) for action in actions)
            if Action.DRAIN in actions:
                self.draining, self.drained = True, None
            if Action.TERMINATE_TREE in actions:
                self.draining, self.drained = False, None
            if Action.CUT_PIPES in actions:
                assert self.drained == self.drain_timeout
                self.drained = None
            before = self.life.cause
            actions = self.life.tick(self.now)
            if not actions:
                return
            self.explain(before)

    def explain(self, before: EndReason | None) -> None:
        """A limit that ended the job was really reached."""
        if before is None and self.life.cause is not None:
            self.cause = self.life.cause
            if self.cause == "idle-limit":
                assert self.idle == self.idle_limit
            else:
                assert self.spawned_at is not None
                assert (self.cause, self.now) == ("time-limit", self.spawned_at + self.time_limit)

    @precondition(lambda self: not self.life.started and self.life.phase in {Phase.LAUNCHING, Phase.UNWANTED})
    @rule()
    def spawn(self) -> None:
        """The child comes."""
        self.spawned_at, self.idle = self.now, 0.0
        self.do(self.life.spawned(self.now))

    @precondition(lambda self: self.life.phase in {Phase.LAUNCHING, Phase.UNWANTED} and self.life.pipes is Pipes.OPEN)
    @rule()
    def fail_to_spawn(self) -> None:
        """It does not come."""
        self.do(self.life.not_spawned())

    @rule(reason=st.sampled_from(list(STATE_OF)))
    def request_end(self, reason: EndReason) -> None:
        """Somebody wants the end, at any time and any number of times."""
        if self.cause is None and self.life.phase in {Phase.LAUNCHING, Phase.RUNNING}:
            self.cause = reason
        self.do(self.life.request_end(reason, self.now))

    @precondition(lambda self: self.life.started and self.life.status is None)
    @rule(status=st.sampled_from([Exited(0), Exited(3), Signalled(9), Lost()]), end_rest=st.booleans())
    def leader_exits(self, status: ExitStatus, *, end_rest: bool = False) -> None:
        """By itself, or because it was told to; what it leaves running is ended if that is wanted."""
        self.do(self.life.leader_exited(status, end_rest_at=self.now if end_rest else None))

    @precondition(lambda self: self.life.phase in {Phase.STRAGGLING, Phase.KILLING} and self.life.status is not None)
    @rule()
    def tree_empties(self) -> None:
        """The last member is gone."""
        self.do(self.life.tree_empty())

    @precondition(lambda self: self.life.started and self.life.pipes is Pipes.OPEN)
    @rule()
    def write(self) -> None:
        """The child, or what it left, writes."""
        self.idle = 0.0
        self.life.output(self.now)
        self.do(())

    @precondition(lambda self: self.draining and self.life.pipes is Pipes.OPEN)
    @rule()
    def read_backlog(self) -> None:
        """What was in the pipes has been read."""
        if self.drained is None:
            self.drained = 0.0
        self.do(self.life.backlog_read(self.now))

    @precondition(lambda self: self.life.started and self.life.pipes is not Pipes.CLOSED)
    @rule()
    def end_pipes(self) -> None:
        """All streams end, by themselves or cut."""
        self.draining, self.drained = False, None
        self.do(self.life.pipes_ended())

    @precondition(lambda self: self.life.started and self.holds < 2)
    @rule()
    def hold(self) -> None:
        """We stop a stream."""
        self.holds += 1
        self.life.hold(self.now)
        self.do(())

    @precondition(lambda self: self.holds)
    @rule()
    def unhold(self) -> None:
        """We go on."""
        self.holds -= 1
        self.life.unhold(self.now)
        self.do(())

    @precondition(lambda self: self.life.started and self.life.pipes is Pipes.OPEN and self.holds < 2)
    @rule(before=SECONDS, after=SECONDS)
    def write_during_a_pause(self, before: int, after: int) -> None:
        """What a hypothesis of single steps seldom comes to: a clock that is set while it stands."""
        self.hold()
        self.wait(before)
        self.write()
        if self.draining:
            self.read_backlog()
        self.wait(after)
        self.unhold()

    @rule(seconds=SECONDS)
    def wait(self, seconds: int) -> None:
        """Time passes, from deadline to deadline."""
        until = self.now + seconds
        while (deadline := self.life.next_deadline()) is not None and deadline <= until:
            assert deadline > self.now, "what was due has been fired"
            self.pass_to(deadline)
            self.do(())
        self.pass_to(until)

    def pass_to(self, when: float) -> None:
        """Let the clocks of the child run, unless we hold it."""
        if not self.holds:
            self.idle += when - self.now
            if self.drained is not None:
                self.drained += when - self.now
        self.now = when

    @invariant()
    def it_settles_once_and_only_when_both_sides_have_ended(self) -> None:
        """Settled is a moment, not a level."""
        asked = [action for _, action in self.actions]
        over = self.life.phase in {Phase.EXITED, Phase.GONE} and self.life.pipes is not Pipes.OPEN
        assert asked.count(Action.SETTLE) == int(self.life.settled)
        assert self.life.settled or not over or asked[-1:] == [Action.CUT_PIPES], "nothing keeps it from settling"
        assert over or not self.life.settled
        if self.life.settled:
            assert self.life.next_deadline() is None

    @invariant()
    def the_first_cause_wins(self) -> None:
        """Neither a later request nor a later exit rewrites it."""
        assert self.life.cause == self.cause
        if self.cause is not None:
            assert self.life.process_facts() == (STATE_OF[self.cause], self.cause)

    @invariant()
    def nothing_is_forced_without_its_grace(self) -> None:
        """TERM comes once and first; KILL comes exactly when the grace is over, and once."""
        asked = [action for _, action in self.actions]
        term, kill = self.at(Action.TERMINATE_TREE), self.at(Action.KILL_TREE)
        assert asked.count(Action.TERMINATE_TREE) <= 1
        assert asked.count(Action.KILL_TREE) == int(self.life.forced)
        if kill is not None:
            assert term is not None
            assert kill == term + self.kill_after
            assert self.life.phase is not Phase.KILLING or self.now < kill + CONFIRM_SECONDS
        elif self.life.phase in {Phase.TERMINATING, Phase.STRAGGLING}:
            assert term is not None
            assert self.now < term + self.kill_after, "the grace is over and nobody was killed"
        assert self.life.kill_confirmed or self.life.phase is Phase.GONE

    @invariant()
    def no_limit_is_overrun(self) -> None:
        """A running child is within its limits, a drain within its window; while we hold it, their clocks stand."""
        if self.life.phase is Phase.RUNNING:
            assert self.spawned_at is not None
            assert self.now < self.spawned_at + self.time_limit
            assert self.holds or self.idle < self.idle_limit
        if self.drained is not None and not self.holds:
            assert self.drained < self.drain_timeout

    def teardown(self) -> None:
        """From wherever it is, the world can end, and then the job is settled."""
        if not hasattr(self, "life"):
            return
        while self.holds:
            self.unhold()
        if not self.life.started and not self.life.settled:
            self.spawn()
        if not self.life.settled and self.life.status is None:
            self.leader_exits(Exited(0))
        if self.life.phase in {Phase.STRAGGLING, Phase.KILLING}:
            self.tree_empties()
        if not self.life.settled:
            self.end_pipes()
        assert [action for _, action in self.actions].count(Action.SETTLE) == 1
        assert self.life.settled


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=300, deadline=None)
TestLife.__doc__ = "Hypothesis looks for an order of events and times that breaks an invariant."
