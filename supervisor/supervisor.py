"""The supervisor: starts jobs, knows them, and leaves nothing behind when it closes."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, Self, Unpack

from . import ending, matching
from .admission import Door
from .clock import Clock, SystemClock
from .completions import Consumer
from .course import Course
from .errors import StorageError, SupervisorClosed, UnknownCapture
from .guarding import Guarding
from .job import Job
from .limits import Limits
from .process import spawn as spawn_child
from .request import Command, Options, OptionsDict, Request, checked, conversation_path
from .sansio.cursor import new_capture_id
from .sansio.needles import NeedleSet, credential_values
from .sansio.rules import DEFAULT_RULES
from .services import Services, Spawn
from .storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from types import TracebackType

    from .completions import Completion
    from .sansio.receipt import Receipt
    from .sansio.rules import Rule
    from .storage import Storage

REMEMBERED_JOBS: Final = 256
"""Ended jobs that `job()` still finds. Older ones are read from their files; nothing here is unbounded [B3]."""
REMEMBERED_NEEDLES: Final = 16
"""Sets of known values that stay built: environments differ rarely, and building one takes milliseconds."""


class Supervisor:
    """Runs commands and owns their output. One event loop; use as `async with Supervisor(directory) as supervisor`.

    Args:
        directory: The conversation that owns the captures; it must exist and be ours. None: nothing is kept (D1).
        limits: What may be kept, held and shown.
        admission: What becomes of a start while `Limits.max_jobs` are live: "refuse" raises `TooManyJobs`, "queue"
            waits for a free place, first come, first served (F9).
        secrets: Known values by name, besides those of credential-named variables (C5). A `UserWarning` says which
            cannot be searched for, being too short or too common.
        rules: Forms of secrets that are masked besides those that everybody knows (C5).
        redaction: "default", or "none" for text that is decoded and stripped only.
        durability: "barrier", or "none" to skip every sync; receipts say which (D4).
        guard: Keep a small process that ends the commands, each with its `kill_after`, if this one ends without
            closing, by SIGKILL as well. Where there can be none, or it was killed, receipts say `no-guard` (F10).
        spawn: Starts children; a seam for tests.
        storage: Opens the directory; a seam for tests.
        clock: What deadlines go by; a seam for tests.

    Raises: ValueError for an admission, redaction or durability that does not exist, TypeError for a rule that is none.
    A directory that cannot be used is no error: captures are then `unavailable`, and receipts say why (D2).
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        limits: Limits | None = None,
        admission: Literal["refuse", "queue"] = "refuse",
        secrets: Mapping[str, str] | None = None,
        rules: Iterable[Rule] = (),
        redaction: Literal["default", "none"] = "default",
        durability: Literal["barrier", "none"] = "barrier",
        guard: bool = False,
        spawn: Spawn | None = None,
        storage: Storage | None = None,
        clock: Clock | None = None,
    ) -> None:
        if admission not in {"refuse", "queue"}:
            raise ValueError('admission must be "refuse" or "queue"')
        if redaction not in {"default", "none"}:
            raise ValueError('redaction must be "default" or "none"')
        if durability not in {"barrier", "none"}:
            raise ValueError('durability must be "barrier" or "none"')
        self._directory: Final = conversation_path(directory)
        self._durability: Final[Literal["barrier", "none"]] = durability
        self._storage: Final[Storage] = storage or LocalStorage()
        self._secrets: tuple[Mapping[str, str], ...] = (dict(secrets or {}),)
        if redaction == "default":
            _warn_of_refused(*self._secrets)
        self._rules: Final = DEFAULT_RULES.with_rules(rules)
        self._needles: OrderedDict[tuple[tuple[tuple[str, str], ...], ...], NeedleSet] = OrderedDict()
        self._services: Final = Services(
            clock=clock or SystemClock(),
            limits=limits or Limits(),
            spawn=spawn or spawn_child,
            needles=self._needles_for,
            redact=redaction == "default",
        )
        self._door: Final = Door(self._services.limits.max_jobs, admission)
        self._live: dict[str, Job] = {}
        self._courses: dict[str, Course] = {}
        self._guarding: Final = Guarding(self._services.spawn, self._courses) if guard else None
        if self._guarding is not None:
            self._services.spawn = self._guarding.spawn
        self._ended: OrderedDict[str, Job] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._count = 0
        self._state: Literal["new", "open", "closed"] = "new"

    async def __aenter__(self) -> Self:
        """Open the conversation. Returns a supervisor that can start jobs, whatever the directory is like."""
        if self._state != "new":
            raise RuntimeError("a Supervisor is entered once")
        services = self._services
        if self._directory is not None:
            try:
                services.conversation = await self._storage.open(
                    self._directory, limits=services.limits, durability=self._durability
                )
            except StorageError as error:
                services.unavailable = error.reason
                services.limitations = (str(error),)
            else:
                services.unavailable = None
                services.limitations = services.conversation.limitations
                services.offers.open(services.conversation)
        if self._guarding is not None:
            await self._guarding.open()
        self._state = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what still runs (`supervisor-shutdown`), settle and publish it, release everything [F10].

        Cancellation: the closing is completed first; it is bounded by the jobs' own deadlines.
        """
        self._state = "closed"
        self._door.close()
        await ending.outlast(asyncio.get_running_loop().create_task(self._close()))

    async def start(self, command: Command, **options: Unpack[OptionsDict]) -> Job:
        """Start a command and return its job, once its launch is on record and before its first byte is read [A7].

        Args:
            command: A list, run without a shell; or one string with `shell=True`.
            **options: See `OptionsDict`.

        Raises:
            ValueError, TypeError: an argument cannot be used; nothing was started.
            SpawnError: the command could not be started; it carries a settled receipt [F6].
            TooManyJobs: `Limits.max_jobs` are live, and `admission` is "refuse".
            SupervisorClosed: the supervisor is closed, or was while this waited for a free place; nothing was started.

        With `admission="queue"` it first waits for a place, which a job gives back when it has settled. Every limit of
        the command's time begins with its process, not in the queue.

        Cancellation: the tree is ended, the receipt settled and published, then the cancellation goes on [F5]. In the
        queue there is no job yet: nothing is left, and the turn is the next one's.
        """
        course = await self._launch(command, Options(**options), kept=True)
        await ending.end_on_cancel(course, self._tasks[course.job_id], course.launched)
        return self._find(course.job_id)

    async def run(self, command: Command, **options: Unpack[OptionsDict]) -> Receipt:
        """Run a command to its end and return its receipt. A small success leaves no file [A7].

        Takes and raises what `start` does; a non-zero exit is no error, see `Receipt.check`.

        Cancellation: the tree is ended, the receipt settled and published, then the cancellation goes on; a second one
        changes nothing [F5].
        """
        course = await self._launch(command, Options(**options), kept=False)
        task = self._tasks[course.job_id]
        await ending.end_on_cancel(course, task, course.launched)
        await ending.end_on_cancel(course, task, course.settled)
        return course.settled.result()

    def add_secret(self, name: str, value: str) -> None:
        """Search for one more known value, in jobs that live and in later ones [C5]; a second value of a name is added.

        What a stream has decided by now stays as it is: it may be on disk or shown. A value that is too short or too
        common is not searched for, and a `UserWarning` says so without showing it.
        """
        secret = {name: value}
        if secret in self._secrets:
            return
        self._secrets = (*self._secrets, secret)
        for course in self._courses.values():
            course.know_anew()
        if self._services.redact:
            _warn_of_refused(secret)  # last, for a filter may make an exception of it

    def completions(self) -> AsyncIterator[Completion]:
        """Return an iterator over completions: what earlier supervisors left here, then our jobs' ends [E5].

        Each is claimed by whoever gets it, and is not offered again once it is acknowledged. Any number of iterators,
        of any number of processes, share them. It ends when the supervisor closes; what nobody asked for by then, the
        ends of jobs that the closing ended among it, the next supervisor of the directory offers.

        A job is told of after its receipt was published; one that was killed with its supervisor only after
        `recover`. One whose barrier failed is not told of [D4]. Waiting for a job does not take its completion, see
        `Job.acknowledge`.
        """
        return Consumer(self._services.offers)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The live jobs and the last ended ones, oldest first."""
        return (*self._ended.values(), *self._live.values())

    @property
    def waiting(self) -> int:
        """How many starts wait for a free place."""
        return len(self._door.waiting)

    def job(self, job_id: str) -> Job:
        """Return the job of that id. Raises: UnknownCapture, also for one that ended long ago."""
        return self._find(job_id)

    async def join(self) -> None:
        """Return when no job is live and no start waits, those started meanwhile included. Cancellation: all go on."""
        while waited := (*self._tasks.values(), *self._door.waiting):
            await asyncio.wait(waited)

    async def _launch(self, command: Command, options: Options, *, kept: bool) -> Course:
        """Let it in, and begin. From the door on nothing waits, so no cancellation comes between."""
        if self._state == "closed":
            raise SupervisorClosed("the supervisor is closed")
        if self._state != "open":
            raise RuntimeError("a Supervisor starts jobs inside its `async with` block")
        request = checked(command, options)
        await self._door.enter()
        return self._begin(request, kept=kept)

    def _begin(self, request: Request, *, kept: bool) -> Course:
        services = self._services
        self._count += 1
        job_id = str(self._count)
        capture_id = new_capture_id(services.clock.wall(), os.urandom(16))
        course = Course(job_id, capture_id, request, services, kept=kept)
        self._courses[job_id] = course
        if self._guarding is not None:
            self._guarding.expect(course)
        self._live[job_id] = Job(course)
        task = asyncio.get_running_loop().create_task(ending.carry(course), name=f"spoolvisor job {job_id}")
        self._tasks[job_id] = task
        task.add_done_callback(lambda _: self._retire(job_id))
        return course

    def _retire(self, job_id: str) -> None:
        self._door.leave()
        course = self._courses.pop(job_id)
        if self._guarding is not None:
            self._guarding.forget(course)
        del self._tasks[job_id]
        job = self._live.pop(job_id)
        if job.pid is not None:
            self._ended[job_id] = job
            while len(self._ended) > REMEMBERED_JOBS:
                self._ended.popitem(last=False)

    def _find(self, job_id: str) -> Job:
        job = self._live.get(job_id) or self._ended.get(job_id)
        if job is None:
            raise UnknownCapture(f"no job {job_id!r} is known to this supervisor")
        return job

    def _needles_for(self, environment: Mapping[str, str] | None) -> NeedleSet:
        """Return the known values for a child of that environment: the supervisor's, the child's, the caller's [C5]."""
        sources = (credential_values(os.environ), credential_values(environment or {}), *self._secrets)
        key = tuple(tuple(sorted(source.items())) for source in sources)
        if key not in self._needles:
            self._needles[key] = NeedleSet.build(*sources, rules=self._rules)
            while len(self._needles) > REMEMBERED_NEEDLES:
                self._needles.popitem(last=False)
        return self._needles[key]

    async def _close(self) -> None:
        for course in tuple(self._courses.values()):
            course.request_end("supervisor-shutdown")
        await self.join()
        if self._guarding is not None:
            await self._guarding.close()
        await self._services.offers.close()
        await matching.settled()
        if self._services.conversation is not None:
            await self._services.conversation.close()


def _warn_of_refused(secrets: Mapping[str, str]) -> None:
    """Warn the caller's caller of each value that is not, or not wholly, searched for; no value is shown [C5]."""
    for refused in NeedleSet.build(secrets).refused:
        warnings.warn(f"a secret cannot be searched for, or not all of it: {refused}", UserWarning, stacklevel=3)
