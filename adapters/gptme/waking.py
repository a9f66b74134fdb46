"""Wakes the idle server of a conversation whose job has ended, and ends the jobs of a conversation that was closed.

A completion stands in gptme's own queue, from which a hook takes it before the next step of the conversation. An idle
server makes no step. So this takes it from the queue, has the server keep the message and make a step, and puts it back
if the server would not: it was busy, or there is no session. Whoever has taken it is the only one who delivers it.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from .names import BACKGROUND, SERVER, UnsupportedGptme, check_server, module

if TYPE_CHECKING:
    from .jobs import SpooledJob

log: Final = logging.getLogger("spoolvisor.gptme")

SOON: Final = 0.2
"""Seconds to the next try after something has happened, and the first pause between tries."""
LATER: Final = 2.0
"""The longest pause between tries; a conversation that was closed is noticed within it."""


def claim(job: SpooledJob) -> bool:
    """Take the completion out of gptme's queue; return whether it was there, and thereby is the caller's to deliver."""
    gptme = module(BACKGROUND)
    with gptme._job_lock, gptme._completion_queue.mutex:  # noqa: SLF001 -- gptme's own marker of a delivery
        queue = gptme._completion_queue.queue  # noqa: SLF001
        if not any(queued is job for queued in queue):
            return False
        gptme._completion_queue.queue = type(queue)(queued for queued in queue if queued is not job)  # noqa: SLF001
        return True


def is_waiting(job: SpooledJob) -> bool:
    """Return whether the completion is in gptme's queue."""
    queue = module(BACKGROUND)._completion_queue  # noqa: SLF001
    with queue.mutex:
        return any(queued is job for queued in queue.queue)


def give_back(job: SpooledJob) -> None:
    """Put a claimed completion back as the next one, unless its conversation was reset meanwhile."""
    gptme = module(BACKGROUND)
    with gptme._job_lock:  # noqa: SLF001
        if not is_registered(job):
            return
        with gptme._completion_queue.mutex:  # noqa: SLF001
            gptme._completion_queue.queue.appendleft(job)  # noqa: SLF001
        condition = gptme._job_conditions.get(job.conversation_id)  # noqa: SLF001
        if condition:
            condition.notify_all()


def is_registered(job: SpooledJob) -> bool:
    """Return whether gptme still knows this very job."""
    gptme = module(BACKGROUND)
    with gptme._job_lock:  # noqa: SLF001
        return gptme._background_jobs.get(job.conversation_id, {}).get(job.id) is job  # noqa: SLF001


class Waker:
    """Watches jobs in a daemon thread of its own, while there are any that a server may have to be woken for."""

    def __init__(self) -> None:
        self._changed: Final = threading.Condition()
        self._jobs: Final[list[SpooledJob]] = []
        self._thread: threading.Thread | None = None
        self._poked = False
        self._refused = False

    def watch(self, job: SpooledJob) -> None:
        """Watch a job from its start on; does nothing where there is no server."""
        if job.conversation_id is None or self._manager() is None:
            return
        with self._changed:
            self._jobs.append(job)
            if self._thread is None or not self._thread.is_alive():  # not alive: this is a fork
                self._thread = threading.Thread(target=self._work, name="spoolvisor-waker", daemon=True)
                self._thread.start()

    def poke(self) -> None:
        """Try now: a job has ended."""
        with self._changed:
            self._poked = True
            self._changed.notify_all()

    def _work(self) -> None:
        pause = SOON
        while True:
            with self._changed:
                if not self._jobs:
                    self._thread = None
                    return
                self._changed.wait_for(lambda: self._poked, pause)
                pause = SOON if self._poked else min(LATER, pause * 2)
                self._poked = False
                jobs = tuple(self._jobs)
            done = [job for job in jobs if self._step(job)]
            with self._changed:
                for job in done:
                    self._jobs.remove(job)

    def _step(self, job: SpooledJob) -> bool:
        """Do what there is to do for a job; return whether nothing will be any more."""
        manager = self._manager()
        if manager is None or not is_registered(job):
            return True
        try:
            if manager.get_sessions_for_conversation(job.conversation_id):
                job.had_session = True
                return job.ended and self._deliver(manager, job)
            if job.had_session:
                module(BACKGROUND).reset_background_jobs(job.conversation_id, all_conversations=False)
                return True
            # A command line's own loop waits for what is in the queue: not even for a moment is it taken out of it.
            return job.ended and not is_waiting(job)
        except Exception:  # the server's code: what it raises must not end the wakes of other jobs
            log.warning("the server could not be woken for background job %s", job.id, exc_info=True)
            return False

    def _deliver(self, manager: Any, job: SpooledJob) -> bool:  # noqa: ANN401 -- gptme's SessionManager
        if not claim(job):
            return True
        try:
            woken = manager.request_watch_wake(job.conversation_id, job.completion, branch=job.branch)
        except BaseException:
            give_back(job)
            raise
        if not woken:
            give_back(job)
            return False
        job.acknowledge()
        return True

    def _manager(self) -> Any:  # noqa: ANN401 -- gptme's SessionManager
        """Return the session manager of the server in this process, None if there is none to be woken."""
        server = sys.modules.get(SERVER)
        if server is None or self._refused:
            return None
        manager = getattr(server, "SessionManager", None)
        try:
            check_server(manager)
        except UnsupportedGptme as error:
            self._refused = True
            log.warning("%s", error)
            return None
        return manager
