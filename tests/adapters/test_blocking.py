"""The blocking façade: every method from any thread, many conversations on one loop, a limit for every wait."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapters.blocking import BlockingSupervisor, call, loop
from supervisor import (
    PIPE,
    Limits,
    SpawnError,
    Supervisor,
    SupervisorClosed,
    TooManyJobs,
    UnknownCapture,
    list_captures,
    read_capture,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

PATIENCE: Final = 30.0
SHORT: Final = 0.05
"""A limit of a wait that is to run out."""
LONG: Final = ("sleep", "1000")


def test_a_job_from_its_start_to_its_end(supervisor: BlockingSupervisor, tmp_path: Path) -> None:
    """Each of the handle's words."""
    job = supervisor.start(["sh", "-c", "read a; echo got $a; cat; exit 3"], stdin=PIPE, label="mine")
    assert (job.id, job.done, job.receipt.capture.state) == ("1", False, "pending")
    assert job.receipt.process is not None
    assert job.pid == job.receipt.process.pid
    job.write(b"one\n")
    with job.follow(timeout=PATIENCE) as pages:
        assert next(pages).text == "got one\n"
    job.write(b"two\n")
    job.write_eof()
    receipt = job.wait(PATIENCE)
    assert receipt.process is not None
    assert (job.done, receipt.process.code, receipt.label) == (True, 3, "mine")
    assert job.receipt == receipt == job.wait() == job.terminate()
    assert job.read_text() == "got one\ntwo\n"
    page = job.read("stdout", None, 4)
    assert page.text == "got "
    assert job.read(cursor=page.cursor).text == "one\ntwo\n"
    assert [page.text for page in job.follow("stdout", page.cursor)] == ["one\ntwo\n"]
    job.acknowledge()
    assert supervisor.job("1").capture_id == job.capture_id
    assert [each.id for each in supervisor.jobs] == ["1"]
    assert [each.capture_id for each in call(lambda: list_captures(tmp_path))] == [job.capture_id]
    assert call(lambda: read_capture(tmp_path, job.capture_id), PATIENCE).text == "got one\ntwo\n"


def test_signals_and_endings(supervisor: BlockingSupervisor) -> None:
    """To the leader, and to the tree with the host's reason."""
    job = supervisor.start(LONG)
    job.send_signal(signal.SIGINT)
    receipt = job.wait(PATIENCE)
    assert receipt.process is not None
    assert receipt.process.signal == signal.SIGINT
    receipt = supervisor.start(LONG).terminate("memory", PATIENCE)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("cancelled", "memory")


def test_errors_come_as_they_are(supervisor: BlockingSupervisor) -> None:
    """The caller's at once, the world's typed."""
    with pytest.raises(TypeError):
        supervisor.start("echo without shell")
    with pytest.raises(SpawnError) as caught:
        supervisor.run(["no-such-program"])
    assert caught.value.receipt is not None
    with pytest.raises(UnknownCapture):
        supervisor.job("77")
    job = supervisor.start(["true"])
    with pytest.raises(ValueError, match="PIPE"):
        job.write(b"x")
    with pytest.raises(ValueError, match="reason"):
        job.terminate("mood")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_bytes"):
        job.follow(max_bytes=1)
    job.wait(PATIENCE)


def test_options_go_to_the_supervisor(tmp_path: Path) -> None:
    """Those of the class, and one that was made otherwise."""
    with BlockingSupervisor(tmp_path, limits=Limits(max_jobs=1), secrets={"PLANTED": "Vq7Zt2mXw9LcR4bKd8"}) as first:
        first.add_secret("LATE", "Hs3NfJ6yPgT5uEx0Qw")
        job = first.start(["sh", "-c", "echo Vq7Zt2mXw9LcR4bKd8 Hs3NfJ6yPgT5uEx0Qw; cat"], stdin=PIPE)
        with pytest.raises(TooManyJobs):
            first.start(["true"])
        job.write_eof()
        text = job.read_text(timeout=PATIENCE)
        assert "Vq7Zt2mXw9LcR4bKd8" not in text
        assert "Hs3NfJ6yPgT5uEx0Qw" not in text
    with pytest.raises(ValueError, match="durability"):
        BlockingSupervisor(durability="perhaps")  # type: ignore[arg-type]
    made = Supervisor(tmp_path)
    with BlockingSupervisor(supervisor=made) as second:
        assert second.call(Supervisor.join) is None
        assert second.run(["echo", "x"]).stdout == "x\n"


def test_every_wait_has_a_limit_and_the_job_goes_on(supervisor: BlockingSupervisor) -> None:
    """TimeoutError at each; the job and what is waited for are as before."""
    job = supervisor.start(["sh", "-c", "read a; echo $a"], stdin=PIPE)
    pages, ends = job.follow(timeout=SHORT), supervisor.completions(timeout=SHORT)
    waits: list[Callable[[], Any]] = [lambda: job.wait(SHORT), lambda: supervisor.join(SHORT), lambda: next(pages)]
    waits += [lambda: next(ends), lambda: job.acknowledge(SHORT), lambda: job.read_text(timeout=SHORT)]
    waits += [lambda: pages.next(SHORT), lambda: ends.next(SHORT), lambda: call(asyncio.Event().wait, SHORT)]
    waits += [lambda: supervisor.run(["sleep", "0.5"], SHORT)]
    for wait in waits:
        with pytest.raises(TimeoutError):
            wait()
    assert not job.done
    run = supervisor.jobs[-1]
    assert (run.id, run.done) == ("2", False)
    receipt = run.wait(PATIENCE)
    assert receipt.process is not None
    assert receipt.process.code == 0
    job.write(b"after all\n")
    assert pages.next(PATIENCE).text == "after all\n"
    assert job.wait(PATIENCE).capture.state == "complete"
    assert ends.next(PATIENCE).receipt.capture_id == job.capture_id


def test_what_a_start_that_took_too_long_started_is_ended(tmp_path: Path) -> None:
    """Nobody has a handle on it."""
    entered, go = threading.Event(), threading.Event()

    class Slow(Supervisor):
        async def start(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as `Supervisor.start`
            job = await super().start(*arguments, **options)
            entered.set()
            while not go.is_set():
                try:
                    await asyncio.sleep(0.001)
                except asyncio.CancelledError:  # it was not to be stopped any more
                    continue
            return job

    with BlockingSupervisor(supervisor=Slow(tmp_path)) as supervisor:
        with pytest.raises(TimeoutError):
            supervisor.start(LONG, SHORT)
        assert entered.wait(PATIENCE)
        (job,) = supervisor.jobs
        go.set()
        receipt = job.wait(PATIENCE)
        assert receipt.process is not None
        assert receipt.process.state == "cancelled"


def test_many_threads_and_many_conversations_share_one_loop(tmp_path: Path, any_loop: None) -> None:  # noqa: ARG001
    """Each supervisor has its own directory and jobs; one thread is for all of them, and ends with the last."""
    directories = [tmp_path / str(number) for number in range(6)]
    for directory in directories:
        directory.mkdir()
    supervisors = [BlockingSupervisor(directory, durability="none") for directory in directories]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(BlockingSupervisor.open, supervisors))

        def work(number: int) -> tuple[int, str]:
            job = supervisors[number % 6].start(["echo", str(number)])
            return number, job.read_text(timeout=PATIENCE)

        for number, text in pool.map(work, range(24)):
            assert text == f"{number}\n"
        loops = [thread for thread in threading.enumerate() if thread.name == "spoolvisor-loop"]
        assert len(loops) == 1
        for each in supervisors:
            assert len(each.jobs) == 4
        list(pool.map(BlockingSupervisor.close, supervisors * 2))
    assert not loops[0].is_alive()


def test_closing_ends_jobs_and_waits_and_handles_stay_readable(tmp_path: Path, any_loop: None) -> None:  # noqa: ARG001
    """Who waits gets the receipt; later calls are answered from what is known and from the files."""
    supervisor = BlockingSupervisor(tmp_path).open()
    job = supervisor.start(["sh", "-c", "echo begun; cat"], stdin=PIPE)
    pages = job.follow(timeout=PATIENCE)
    assert next(pages).text == "begun\n"
    ends = supervisor.completions()
    with ThreadPoolExecutor(4) as pool:
        waiting = pool.submit(job.wait)
        texts = pool.submit(lambda: [page.text for page in pages])
        told = pool.submit(lambda: [end.receipt.capture_id for end in ends])
        supervisor.close(PATIENCE)
        receipt = waiting.result(PATIENCE)
        assert texts.result(PATIENCE) == [""]
        assert told.result(PATIENCE) in ([], [job.capture_id])
    assert receipt.process is not None
    assert receipt.process.reason == "supervisor-shutdown"
    assert (job.done, job.wait(), job.receipt) == (True, receipt, receipt)
    assert job.read().text == job.read_text() == "begun\n"
    assert [page.text for page in job.follow()] == ["begun\n"]
    with job.follow() as left_early:
        next(left_early)
    job.acknowledge()
    assert supervisor.job(job.id).capture_id == job.capture_id
    assert list(ends) == []
    for step in (lambda: supervisor.start(["true"]), lambda: supervisor.run(["true"]), supervisor.completions):
        with pytest.raises(SupervisorClosed):
            step()
    supervisor.close()


def test_it_is_opened_once_and_used_while_it_is_open() -> None:
    """Else a clear error; closing what was never opened is nothing."""
    supervisor = BlockingSupervisor()
    with pytest.raises(RuntimeError, match="after `open`"):
        supervisor.run(["true"])
    with supervisor, pytest.raises(RuntimeError, match="once"):
        supervisor.open()
    never = BlockingSupervisor()
    never.close()
    with pytest.raises(RuntimeError, match="once"):
        never.open()


def test_a_directory_that_does_not_answer_is_left(tmp_path: Path) -> None:
    """`open` has a limit, too, and may be tried again; no thread is left."""
    go = threading.Event()

    class Stuck(Supervisor):
        async def __aenter__(self) -> Self:
            if not go.is_set():
                await asyncio.Event().wait()
            return await super().__aenter__()

    supervisor = BlockingSupervisor(supervisor=Stuck(tmp_path))
    with pytest.raises(TimeoutError):
        supervisor.open(SHORT)
    assert all(thread.name != "spoolvisor-loop" for thread in threading.enumerate())
    go.set()
    with supervisor:
        assert supervisor.run(["echo", "x"]).stdout == "x\n"


def test_a_close_that_takes_longer_goes_on(tmp_path: Path) -> None:
    """A second call waits for the same closing."""
    supervisor = BlockingSupervisor(tmp_path).open()
    job = supervisor.start(["sh", "-c", "trap '' TERM; echo ready; cat"], stdin=PIPE, kill_after=1000.0)
    with job.follow() as pages:
        next(pages)
    with pytest.raises(TimeoutError):
        supervisor.close(SHORT)
    with pytest.raises(SupervisorClosed):
        supervisor.start(["true"])
    supervisor.kill()
    supervisor.close(PATIENCE)
    assert job.done


def test_a_blocking_call_on_the_loop_itself_is_refused(supervisor: BlockingSupervisor) -> None:
    """It would wait for itself."""
    job = supervisor.start(["cat"], stdin=PIPE)

    async def wrong(_: Supervisor) -> None:
        job.wait()

    with pytest.raises(RuntimeError, match="wait for itself"):
        supervisor.call(wrong)
    job.write_eof()


def test_a_follower_that_is_dropped_leaves_nothing(supervisor: BlockingSupervisor) -> None:
    """In the middle of a step, between two steps, before the first; the fixture looks for threads and tasks."""
    job = supervisor.start(["sh", "-c", "echo one; cat"], stdin=PIPE)
    first, second, third = (job.follow(timeout=SHORT) for _ in range(3))
    assert first.next(PATIENCE).text == second.next(PATIENCE).text == "one\n"
    with pytest.raises(TimeoutError):
        next(first)
    del first, second, third
    job.write_eof()
    job.wait(PATIENCE)

    async def tasks(_: Supervisor) -> int:
        for _ in range(1000):
            if len(asyncio.all_tasks()) == 1:
                break
            await asyncio.sleep(0.002)
        return len(asyncio.all_tasks())

    assert supervisor.call(tasks, PATIENCE) == 1


def test_the_loop_is_uvloops_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else asyncio's own."""
    uvloop = pytest.importorskip("uvloop")
    made = loop._new_loop()
    assert isinstance(made, uvloop.Loop)
    made.close()
    monkeypatch.setitem(sys.modules, "uvloop", None)
    made = loop._new_loop()
    assert not isinstance(made, uvloop.Loop)
    made.close()
