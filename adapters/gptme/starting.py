"""Starts background jobs where gptme starts its own: same shell, same directory, same environment, same memory cap."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from . import messages
from .jobs import WINDOW_BYTES, SpooledJob
from .names import BACKGROUND, SHELL, module
from .waking import is_registered

if TYPE_CHECKING:
    from supervisor import Receipt

    from .owners import Owners
    from .waking import Waker

KILL_AFTER: Final = 2.0
"""Seconds from TERM to KILL, as gptme has it."""
LABEL_CHARACTERS: Final = 200
"""What a label may have."""


class Starter:
    """Starts jobs and tells gptme of their ends."""

    def __init__(self, owners: Owners, waker: Waker) -> None:
        self._owners: Final = owners
        self._waker: Final = waker

    def start_background_job(self, command: str, memory_limit: int | None = None) -> SpooledJob:
        """Start a command as a job of the active conversation and return it, as gptme's own does.

        Who asks is read here, on the caller's thread: no other one knows the conversation and its directory.

        Raises: SpawnError: it could not be started.
        """
        gptme = module(BACKGROUND)
        conversation_id: str | None = gptme._current_conversation_id()  # noqa: SLF001 -- as gptme's own job
        directory = log_directory(conversation_id)
        supervisor = self._owners.take(directory)
        try:
            argv = gptme.apply_memory_limit(["bash", "-c", command], memory_limit)
            with gptme._job_lock:  # noqa: SLF001
                number: int = gptme._get_next_job_id_locked(conversation_id)  # noqa: SLF001
            started = supervisor.start(
                argv,
                label=" ".join(command.split())[:LABEL_CHARACTERS],
                call_id=f"shell-job-{number}",
                kill_after=KILL_AFTER,
                window_bytes=WINDOW_BYTES,
            )
        except BaseException:
            self._owners.give_back(directory, supervisor)
            raise
        job = SpooledJob(
            number, command, started, conversation_id=conversation_id, log_dir=directory, branch=current_branch()
        )
        with gptme._job_lock:  # noqa: SLF001
            gptme._jobs_for(conversation_id)[number] = job  # noqa: SLF001
        if started.pid is not None:
            module(SHELL)._record_shell_pgid(started.pid)  # noqa: SLF001
            _guard_memory(job, started.pid)
        self._waker.watch(job)

        def ended(job: SpooledJob, receipt: Receipt) -> None:
            self._end(job, receipt)
            self._owners.give_back(directory, supervisor)

        job.supervise(supervisor, ended)
        return job

    def _end(self, job: SpooledJob, receipt: Receipt) -> None:
        job.process.settle(receipt)
        job.completion = messages.completion(job, receipt)
        if is_registered(job):
            module(BACKGROUND)._notify_completion(job)  # noqa: SLF001
        self._waker.poke()


def log_directory(conversation_id: str | None) -> Path | None:
    """Return the directory of the active conversation; None if there is none, or it is not there."""
    directory: Path | None = module(BACKGROUND)._current_log_dir()  # noqa: SLF001
    if directory is None and conversation_id:
        directory = Path(module("gptme.dirs").get_logs_dir()) / conversation_id
    return directory if directory is not None and directory.is_dir() else None


def current_branch() -> str:
    """Return the branch on which the active conversation is."""
    manager: Any = module("gptme.logmanager").LogManager.get_current_log()
    return str(getattr(manager, "current_branch", None) or "main")


def _guard_memory(job: SpooledJob, pid: int) -> None:
    """Have gptme's memory guard watch it, as it watches gptme's own jobs."""
    guard = module("gptme.tools.shell_memory")

    def alive() -> bool:
        return job.is_running() or bool(guard.group_alive(pid))

    def record(reason: str) -> None:
        with suppress(RuntimeError):
            module(BACKGROUND)._record_kill_reason(job, reason)  # noqa: SLF001

    guard.watch(
        guard.Target(
            pgid=pid,
            label=f"background job #{job.id}",
            kill=lambda: job.kill(memory=True),
            alive=alive,
            on_killed=record,
        )
    )
