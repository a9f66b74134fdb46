"""A background job of gptme that runs on a supervisor.

It stands in gptme's own registry, beside the commands that gptme promotes itself, and has what gptme asks of a job. So
listing, waiting for the end, resetting a conversation and the ids are gptme's own, and work as they always did.
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from adapters.blocking import WrongProcess
from supervisor import StorageError, SupervisorError

from .reading import Part, Tail, part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapters.blocking import BlockingJob, BlockingSupervisor
    from supervisor import Receipt, Supervisor

    from .reading import StreamName

log: Final = logging.getLogger("spoolvisor.gptme")

KILL_SECONDS: Final = 20.0
"""For which `kill` waits: longer than the grace, the drain and the barrier take together."""
ACKNOWLEDGE_SECONDS: Final = 10.0
WINDOW_BYTES: Final = 64 * 1024
"""Of each stream, for a job whose directory turns out to be unusable."""
TAIL_BYTES: Final = 1024 * 1024
"""As much as gptme keeps of a stream in memory, here only where there is no file."""


class JobProcess:
    """What gptme asks of a job's `subprocess.Popen`. It has ended when the receipt is final."""

    stdin: Final = None
    stdout: Final = None
    stderr: Final = None

    def __init__(self, job: BlockingJob) -> None:
        self.pid: Final = job.pid
        self.receipt: Receipt | None = None
        """The final receipt."""
        self._settled: Final = threading.Event()

    def settle(self, receipt: Receipt) -> None:
        """Say how it ended."""
        self.receipt = receipt
        self._settled.set()

    @property
    def returncode(self) -> int | None:
        """As in `subprocess`: the code, or a signal's number below zero; -1 if nobody saw the end."""
        if self.receipt is None:
            return None
        process = self.receipt.process
        if process is None or (process.code is None and process.signal is None):
            return -1
        return process.code if process.signal is None else -process.signal

    def poll(self) -> int | None:
        """Return `returncode`."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the code when the receipt is final. Raises: subprocess.TimeoutExpired."""
        if not self._settled.wait(timeout):
            raise subprocess.TimeoutExpired("job", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode


class SpooledJob:
    """One job. Its public names, and those with an underscore, are gptme's `BackgroundJob`'s.

    Any number of consumers read it, each from where it was (`unread`); reading never takes the completion.

    Args:
        number: gptme's id of the job in its conversation.
        command: As it was given.
        job: The started job.
        conversation_id: Whose job it is; None outside of a conversation.
        log_dir: The conversation's directory.
        branch: Where a message about its end belongs.
    """

    def __init__(
        self,
        number: int,
        command: str,
        job: BlockingJob,
        *,
        conversation_id: str | None,
        log_dir: Path | None,
        branch: str,
    ) -> None:
        self.id: Final = number
        self.command: Final = command
        self.process: Final = JobProcess(job)
        self.start_time: Final = time.time()
        self.conversation_id: Final = conversation_id
        self.log_dir: Final = log_dir
        self.branch: Final = branch
        self.process_group_id: Final = job.pid
        self.kill_reason: str | None = None
        self.completion: Any = None
        """The message about its end, made before the end is told."""
        self.had_session = False
        """A server's session of its conversation was seen."""
        self._completion_notified = False
        self._wait_expired = False
        self._late_kill_notice: str | None = None
        self._reader_thread: threading.Thread | None = None
        self._job: Final = job
        self._lock: Final = threading.Lock()
        self._places: Final[dict[tuple[str, StreamName], int]] = {}
        self._tails: dict[StreamName, Tail] | None = None

    @property
    def receipt(self) -> Receipt:
        """The final receipt; a snapshot while the job runs."""
        return self.process.receipt or self._job.receipt

    @property
    def files(self) -> tuple[str, ...]:
        """Where the text is, relative to the conversation; nothing where no file could be opened."""
        return tuple(facts.reference for facts in self.receipt.streams.values() if facts and facts.reference)

    def is_running(self) -> bool:
        """Return whether the receipt is not final yet."""
        return self.process.poll() is None

    @property
    def ended(self) -> bool:
        """The end was told to gptme."""
        return self._completion_notified

    def is_output_complete(self) -> bool:
        """Return whether nothing is read any more."""
        return not self.is_running()

    def elapsed_time(self) -> float:
        """Return seconds since the start, to the end where there was one."""
        receipt = self.process.receipt
        if receipt is not None and receipt.duration is not None:
            return receipt.duration
        return time.time() - self.start_time

    def newest(self, stream: StreamName, characters: int) -> Part:
        """Return the newest text, for a consumer without a place."""
        return self._part(stream, 0, characters)

    def unread(self, consumer: str, stream: StreamName, characters: int) -> Part:
        """Return the newest text that this consumer was not given yet, and move its place; nobody else's."""
        with self._lock:
            start = self._places.get((consumer, stream), 0)
        shown = self._part(stream, start, characters)
        with self._lock:
            self._places[consumer, stream] = shown.end
        return shown

    def get_output(self, *, incremental: bool = False, consumer: str = "") -> tuple[str, str]:
        """Return the newest text of both streams, bounded; `incremental`: that this consumer was not given yet."""
        if incremental:
            return self.unread(consumer, "stdout", TAIL_BYTES).text, self.unread(consumer, "stderr", TAIL_BYTES).text
        return self.newest("stdout", TAIL_BYTES).text, self.newest("stderr", TAIL_BYTES).text

    def kill(self, *, memory: bool = False) -> None:
        """End the whole tree; `memory` says that gptme's memory guard wants it. Return when the receipt is final."""
        try:
            receipt = self._job.terminate("memory" if memory else "caller", KILL_SECONDS)
        except TimeoutError:
            log.warning("background job %s does not end; it is still being ended", self.id)
        except (WrongProcess, RuntimeError) as error:  # a fork at its exit; the interpreter's last moments
            log.debug("background job %s was not ended: %s", self.id, error)
        else:
            self.process.settle(receipt)

    def acknowledge(self) -> None:
        """Note on disk that its end was delivered; it never raises."""
        try:
            self._job.acknowledge(ACKNOWLEDGE_SECONDS)
        except (StorageError, TimeoutError, RuntimeError) as error:
            log.warning("that the end of background job %s was delivered could not be noted: %s", self.id, error)

    def supervise(self, supervisor: BlockingSupervisor, ended: Callable[[SpooledJob, Receipt], None]) -> None:
        """Have `ended` called on a thread of its own, with the final receipt."""
        if not self.files:
            self._tails = {"stdout": Tail(TAIL_BYTES), "stderr": Tail(TAIL_BYTES)}
        collectors = [
            threading.Thread(target=self._collect, args=(supervisor, stream, tail), daemon=True)
            for stream, tail in (self._tails or {}).items()
        ]
        for collector in collectors:
            collector.start()
        self._reader_thread = threading.Thread(
            target=self._await_end, args=(ended, collectors), name=f"gptme-job-{self.id}", daemon=True
        )
        self._reader_thread.start()

    def _await_end(self, ended: Callable[[SpooledJob, Receipt], None], collectors: list[threading.Thread]) -> None:
        try:
            receipt = self._job.wait()
        except RuntimeError:  # the interpreter ends
            return
        for collector in collectors:
            collector.join(KILL_SECONDS)
        ended(self, receipt)

    def _part(self, stream: StreamName, start: int, characters: int) -> Part:
        if self._tails is not None:
            return self._tails[stream].part(start, characters)
        return part(self._job, stream, start, characters)

    def _collect(self, supervisor: BlockingSupervisor, stream: StreamName, tail: Tail) -> None:
        async def collect(owner: Supervisor) -> None:
            async for shown in owner.job(self._job.id).live(stream):
                tail.add(shown.text, shown.skipped)

        try:
            supervisor.call(collect)
        except (SupervisorError, RuntimeError) as error:
            log.debug("the output of background job %s is not shown: %s", self.id, error)
