"""The course of one job: its parts, wired together on the loop.

A job's `Lifecycle` decides; a course tells it what happened and does what it says, at once and without waiting. What
has to wait is in `launching.py` (up to the first read) and `ending.py` (from the last one on).
"""

from __future__ import annotations

import asyncio
import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from .desk import Desk
from .matching import matcher_for
from .progress import Progress
from .sansio.lifecycle import Action, EndReason, Lifecycle, Phase

if TYPE_CHECKING:
    from datetime import datetime

    from .clock import Handle
    from .process import Child, PipeReport
    from .pump import Pump
    from .request import Options, Request
    from .sansio.needles import NeedleSet
    from .sansio.receipt import Receipt
    from .sansio.words import CaptureReason, StreamName
    from .services import Services
    from .storage import Capture

DESCRIPTORS: Final[dict[StreamName, int]] = {"stdout": 1, "stderr": 2}
TREE_WATCH_SECONDS: Final = 0.02
"""How often a tree that is being ended is looked at: below what a person notices, above what a scan of /proc costs."""


class Course:
    """What one job consists of while it lives. Everything runs on one loop."""

    def __init__(  # noqa: PLR0915 - one for each field
        self, job_id: str, capture_id: str, request: Request, services: Services, *, kept: bool
    ) -> None:
        self.job_id: Final = job_id
        """Its number in this supervisor."""
        self.capture_id: Final = capture_id
        """Its identity everywhere [A6]."""
        self.request: Final = request
        self.services: Final = services
        self.kept: Final = kept
        """Whether it has files from its start (`start`), or only if its ending calls for them (`run`) [A7]."""
        self.lifecycle: Final = _lifecycle(request.options)
        self.pumps: dict[StreamName, Pump] = {}
        self.capture: Capture | None = None
        self.unavailable: CaptureReason | None = None
        self.limitations: list[str] = []
        self.child: Child | None = None
        self.started_at: datetime | None = None
        self.began: float | None = None
        self.ended_at: datetime | None = None
        self.ended: float | None = None
        loop = asyncio.get_running_loop()
        self.launched: Final[asyncio.Future[None]] = loop.create_future()
        """Done when the first byte may be read, or with the `SpawnError`."""
        self.over: Final[asyncio.Future[None]] = loop.create_future()
        """Done when the lifecycle says that nothing more will come."""
        self.settled: Final[asyncio.Future[Receipt]] = loop.create_future()
        self.progress: Final[dict[StreamName, Progress]] = {name: Progress() for name in DESCRIPTORS}
        """Tells followers of a stream that text was committed, or that none will be any more."""
        self.settled.add_done_callback(self._tell_followers)
        self.desks: Final[dict[StreamName, Desk]] = {name: Desk() for name in DESCRIPTORS}
        """Where followers of a stream are served."""
        self.writable: Final = asyncio.Event()
        self.writable.set()
        self.opening: Final = asyncio.Lock()
        """Held while a foreground run's capture is opened, which both streams may ask for."""
        self.survivors: tuple[int, ...] | None = None
        """What is still alive of the child's tree, once it was released; None where nobody can know."""
        self.holders: tuple[int, ...] | None = None
        """Who kept a pipe open past the drain window; None if that did not happen, or nobody can know."""
        self.tree_ended = False
        """Whether the tree was asked to end."""
        self.unseen = False
        """Whether the tree was ended and nobody can know what is left of it."""
        self.feeder: asyncio.Task[None] | None = None
        self.clean_command: tuple[NeedleSet, tuple[str, ...]] | None = None
        """The argv as a receipt may show it, and the known values that were searched for in it."""
        self.last_output: float | None = None
        """When a pipe last gave something, by the job's clock; None: it never did."""
        self.pipe_report: PipeReport | None = None
        """What the members of the command's last pipeline returned, if that was asked for."""
        self._needles: NeedleSet | None = None
        self._timer: Handle | None = None
        self._timer_at: float | None = None
        self._awaiting_backlog: dict[StreamName, int] = {}

    @property
    def kill_confirmed(self) -> bool | None:
        """Whether all that was to be ended is seen to be gone; None where nobody can know. Settled after `release`."""
        if self.tree_ended and (self.unseen or self.survivors):
            return False if self.survivors else None
        return self.lifecycle.kill_confirmed

    @property
    def last_output_at(self) -> datetime | None:
        """The time of day that belongs to `last_output`, as far from `started_at` as the job's clock says."""
        if self.started_at is None or self.began is None or self.last_output is None:
            return None
        return self.started_at + timedelta(seconds=self.last_output - self.began)

    @property
    def idle_for(self) -> float | None:
        """Seconds from the last output, or from the start, to the exit or till now; None: there never was a child."""
        if self.began is None:
            return None
        until = self.services.clock.now() if self.ended is None else self.ended
        return max(0.0, until - (self.began if self.last_output is None else self.last_output))

    @property
    def needles(self) -> NeedleSet:
        """The known values: those of the environments as they were when the job began, and what was told since."""
        if self._needles is None:
            self._needles = self.services.needles(self.request.options.env)
        return self._needles

    def know_anew(self) -> None:
        """Search what the streams have not decided yet for all values that are known now [C5]."""
        needles = self._needles = self.services.needles(self.request.options.env)
        for pump in self.pumps.values():
            pump.stream.sanitizer.use(needles, engine=matcher_for(needles))

    def request_end(self, reason: EndReason) -> None:
        """Begin to end the tree."""
        self.act(self.lifecycle.request_end(reason, self.services.clock.now()))

    def close_stdin(self) -> None:
        """Close the child's stdin after what is buffered; nothing if it is closed."""
        writer = None if self.child is None else self.child.get_pipe_transport(0)
        if isinstance(writer, asyncio.WriteTransport):
            writer.write_eof()

    async def write(self, data: bytes) -> None:
        """Write to the child's stdin; return when its buffer has room. Raises: BrokenPipeError if it is closed."""
        writer = None if self.child is None else self.child.get_pipe_transport(0)
        if not isinstance(writer, asyncio.WriteTransport) or writer.is_closing():
            raise BrokenPipeError("the child's stdin is closed")
        writer.write(data)
        await self.writable.wait()

    def fits_receipt(self) -> bool:
        """Whether all text so far is within the previews' ceilings, so that a receipt can carry it whole [A7]."""
        previews = [pump.stream.preview for pump in self.pumps.values()]
        total = sum(preview.total for preview in previews)
        return total <= self.services.limits.preview_bytes and all(preview.fits for preview in previews)

    def adopt(self, child: Child) -> None:
        """Take the child that the spawn brought."""
        clock = self.services.clock
        self.child = child
        self.limitations.extend(child.limitations)
        self.began = clock.now()
        self.started_at = clock.wall()
        self.act(self.lifecycle.spawned(self.began))
        self.exit_noticed()

    def exit_noticed(self) -> None:
        """The leader may have ended. Before the child is adopted there is nobody to tell; `adopt` looks again."""
        if self.child is None or self.child.exit is None or self.lifecycle.status is not None:
            return
        if self.child.out_of_memory:
            self.request_end("memory")
        self.ended = self.services.clock.now()
        self.ended_at = self.services.clock.wall()
        end_rest = self.request.options.on_exit == "end" and self.child.group_members() != ()
        self.act(self.lifecycle.leader_exited(self.child.exit, end_rest_at=self.ended if end_rest else None))
        self._watch_tree()

    def output_seen(self, name: StreamName, data: bytes) -> None:
        """A pipe gave bytes."""
        now = self.services.clock.now()
        self.last_output = now
        self.lifecycle.output(now)
        self.pumps[name].data_received(data)
        if self._awaiting_backlog:
            self._backlog_shrank(name, len(data))

    def pipe_ended(self, name: StreamName, error: Exception | None) -> None:
        """A pipe gives nothing more."""
        pump = self.pumps[name]
        if error is not None:
            pump.end_retention("io-error")
        pump.pipe_ended()
        self._awaiting_backlog.pop(name, None)
        if all(pump.ended for pump in self.pumps.values()):
            self.act(self.lifecycle.pipes_ended())
        elif not self._awaiting_backlog:
            self.act(self.lifecycle.backlog_read(self.services.clock.now()))

    def release(self) -> None:
        """Look what the child left behind, and reap it. One that cannot be killed is given up [F3, F10]."""
        child = self.child
        if child is None:
            return
        self.survivors = child.survivors()
        if not self.survivors and self.holders is None and any(pump.cut for pump in self.pumps.values()):
            self.survivors = None  # somebody held the pipe, whom we cannot see
        if child.exit is None:
            child.abandon()
        else:
            child.release()
        if self.tree_ended and self.survivors is None:
            self.unseen = True
        if self.tree_ended and child.tree_limitation is not None:
            self.limitations.append(child.tree_limitation)

    def hold(self) -> None:
        """We stopped reading a stream: its child is held up by us."""
        self.lifecycle.hold(self.services.clock.now())

    def unhold(self) -> None:
        """We went on reading a stream."""
        self.lifecycle.unhold(self.services.clock.now())
        self._rearm()

    def act(self, actions: tuple[Action, ...]) -> None:
        """Do what the lifecycle said, and look at the clock again."""
        for action in actions:
            self._do(action)
        self._rearm()

    def _do(self, action: Action) -> None:
        child = self.child
        match action:
            case Action.SETTLE if self.over.done():
                pass  # a loop that is torn down has cancelled whoever waited
            case Action.SETTLE:
                self.over.set_result(None)
            case Action.TERMINATE_TREE if child is not None:
                self.tree_ended = True
                child.signal_group(signal.SIGTERM)
                # A stopped member would take the TERM only when somebody continues it (facts 2).
                child.signal_group(signal.SIGCONT)
            case Action.KILL_TREE if child is not None:
                child.signal_group(signal.SIGKILL)
            case Action.WATCH_TREE:
                self._watch_tree()
            case Action.DRAIN:
                self._measure_backlog()
            case Action.CUT_PIPES if child is not None:
                self._cut_pipes(child)
            case _:
                raise AssertionError(f"{action.name} without a child")

    def _watch_tree(self) -> None:
        child, lifecycle = self.child, self.lifecycle
        if child is None or lifecycle.phase not in {Phase.TERMINATING, Phase.STRAGGLING, Phase.KILLING}:
            return
        if lifecycle.status is None:
            return  # the leader's exit is told, and then the tree is looked at
        members = child.press()
        if members is None:
            self.unseen = True
            # Nobody can see whether a member is left, so none gets a grace that might never be used.
            child.signal_group(signal.SIGKILL)
        if not members:
            self.act(lifecycle.tree_empty())
            return
        clock = self.services.clock
        clock.call_at(clock.now() + TREE_WATCH_SECONDS, self._watch_tree)

    def _measure_backlog(self) -> None:
        assert self.child is not None
        for name, pump in self.pumps.items():
            if not pump.ended and (unread := self.child.unread(DESCRIPTORS[name])):
                self._awaiting_backlog[name] = unread
        if not self._awaiting_backlog:
            self.lifecycle.backlog_read(self.services.clock.now())

    def _backlog_shrank(self, name: StreamName, count: int) -> None:
        left = self._awaiting_backlog.get(name, 0) - count
        if left > 0:
            self._awaiting_backlog[name] = left
            return
        self._awaiting_backlog.pop(name, None)
        if not self._awaiting_backlog:
            self.act(self.lifecycle.backlog_read(self.services.clock.now()))

    def _cut_pipes(self, child: Child) -> None:
        self.holders = child.holders()
        for name, pump in self.pumps.items():
            if not pump.ended:
                pump.cut = True
                reader = child.get_pipe_transport(DESCRIPTORS[name])
                if reader is not None:
                    reader.close()

    def _rearm(self) -> None:
        deadline = self.lifecycle.next_deadline()
        if deadline is None or (self._timer_at is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self.services.clock.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = self._timer_at = None
        while actions := self.lifecycle.tick(self.services.clock.now()):
            for action in actions:
                self._do(action)
        self._rearm()

    def _tell_followers(self, _: asyncio.Future[Receipt]) -> None:
        for progress in self.progress.values():
            progress.happened()

    def stop_clock(self) -> None:
        """No deadline is left to keep."""
        if self._timer is not None:
            self._timer.cancel()


def _lifecycle(options: Options) -> Lifecycle:
    return Lifecycle(
        time_limit=options.time_limit,
        idle_limit=options.idle_limit,
        kill_after=options.kill_after,
        drain_timeout=options.drain_timeout,
    )
