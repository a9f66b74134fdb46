"""Threads that may hang, and everything that must not hang with them [D8]."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING

import pytest

from supervisor.errors import StorageError
from supervisor.storage.writers import Writers

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 20.0
"""Seconds after which a test gives up; far more than anything here takes."""


class Gate:
    """A call that hangs until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def __call__(self, result: object = None) -> object:
        """Hang, then return `result`."""
        self.entered.set()
        assert self.released.wait(PATIENCE)
        return result


def test_idle_thread_is_used_again() -> None:
    """Calls one after the other run on one thread."""
    writers = Writers()
    names = {writers.submit(threading.get_ident).result(PATIENCE) for _ in range(50)}
    writers.shutdown()
    assert len(names) == 1


def test_threads_are_daemons() -> None:
    """A hung one does not keep the interpreter from ending."""
    writers = Writers()
    thread = writers.submit(threading.current_thread).result(PATIENCE)
    assert thread.daemon
    writers.shutdown()
    assert not thread.is_alive()


def test_more_calls_than_threads_queue_and_all_run() -> None:
    """At most the limit runs at one time; what queues runs as soon as a thread is free."""
    writers = Writers(threads=3)
    gates = [Gate() for _ in range(3)]
    hanging = [writers.submit(gate, number) for number, gate in enumerate(gates)]
    for gate in gates:
        assert gate.entered.wait(PATIENCE)
    queued = [writers.submit(threading.get_ident) for _ in range(10)]
    assert not any(future.done() for future in queued)
    for gate in gates:
        gate.released.set()
    assert [future.result(PATIENCE) for future in hanging] == [0, 1, 2]
    assert len({future.result(PATIENCE) for future in queued}) <= 3
    writers.shutdown()


def test_exception_goes_to_the_caller() -> None:
    """As with every executor; the thread lives on."""
    writers = Writers()
    with pytest.raises(ZeroDivisionError):
        writers.submit(lambda: 1 // 0).result(PATIENCE)
    assert writers.submit(len, "four").result(PATIENCE) == 4
    writers.shutdown()


def test_queued_call_can_be_cancelled() -> None:
    """It never runs, and the thread that would have run it is free for the next one."""
    writers = Writers(threads=1)
    gate, ran = Gate(), threading.Event()
    hanging = writers.submit(gate)
    assert gate.entered.wait(PATIENCE)
    queued = writers.submit(ran.set)
    assert queued.cancel()
    assert not hanging.cancel()
    gate.released.set()
    assert writers.submit(len, "four").result(PATIENCE) == 4
    assert not ran.is_set()
    with pytest.raises(CancelledError):
        queued.result(PATIENCE)
    writers.shutdown()


def test_written_off_thread_is_replaced() -> None:
    """With every thread hung, queued calls run as soon as one of the hung is written off."""
    writers = Writers(threads=2)
    gates = [Gate(), Gate()]
    hanging = [writers.submit(gate) for gate in gates]
    for gate in gates:
        assert gate.entered.wait(PATIENCE)
    queued = writers.submit(len, "four")
    writers.abandon(hanging[0])
    assert queued.result(PATIENCE) == 4
    assert writers.stuck == 1
    for gate in gates:
        gate.released.set()
    for future in hanging:
        future.result(PATIENCE)
    writers.shutdown()


def test_written_off_thread_ends_when_its_call_returns() -> None:
    """It takes no further call; the result is there for whoever looks."""
    writers = Writers(threads=1)
    gate, thread = Gate(), Future[threading.Thread]()

    def hang() -> str:
        thread.set_result(threading.current_thread())
        gate()
        return "late"

    hanging = writers.submit(hang)
    stuck = thread.result(PATIENCE)
    writers.abandon(hanging)
    writers.abandon(hanging)
    assert writers.submit(threading.current_thread).result(PATIENCE) is not stuck
    gate.released.set()
    assert hanging.result(PATIENCE) == "late"
    stuck.join(PATIENCE)
    assert not stuck.is_alive()
    assert writers.stuck == 0
    writers.shutdown()


def test_threads_never_exceed_the_cap() -> None:
    """Past it calls queue, until a hung call returns; then they run."""
    writers = Writers(threads=2, cap=3)
    gates: list[Gate] = []
    hanging: list[Future[object]] = []
    for _ in range(3):
        gate = Gate()
        future = writers.submit(gate)
        assert gate.entered.wait(PATIENCE)
        gates.append(gate)
        hanging.append(future)
        writers.abandon(future)
    queued = writers.submit(len, "four")
    assert not queued.done()
    assert writers.stuck == 3
    gates[0].released.set()
    assert queued.result(PATIENCE) == 4
    for gate in gates:
        gate.released.set()
    for future in hanging:
        future.result(PATIENCE)
    writers.shutdown()


def test_done_or_queued_call_is_not_written_off() -> None:
    """There is no thread to write off."""
    writers = Writers(threads=1)
    done = writers.submit(len, "four")
    done.result(PATIENCE)
    gate = Gate()
    writers.submit(gate)
    assert gate.entered.wait(PATIENCE)
    queued = writers.submit(len, "four")
    writers.abandon(done)
    writers.abandon(queued)
    assert writers.stuck == 0
    gate.released.set()
    assert queued.result(PATIENCE) == 4
    writers.shutdown()


def test_without_any_thread_the_call_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """[B5] No process slots left: an OSError for whoever waits, not a call that is never made."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    writers = Writers()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        failed = writers.submit(len, "four")
    with pytest.raises(OSError, match="thread") as caught:
        failed.result(PATIENCE)
    assert caught.value.errno == errno.EAGAIN
    assert writers.submit(len, "four").result(PATIENCE) == 4
    writers.shutdown()


def test_shutdown_runs_what_is_queued_and_takes_no_more() -> None:
    """As with every executor."""
    writers = Writers(threads=1)
    gate = Gate()
    hanging, queued = writers.submit(gate), writers.submit(len, "four")
    assert gate.entered.wait(PATIENCE)
    writers.shutdown(wait=False)
    with pytest.raises(RuntimeError):
        writers.submit(len, "four")
    gate.released.set()
    hanging.result(PATIENCE)
    assert queued.result(PATIENCE) == 4
    writers.shutdown()


def test_shutdown_can_cancel_what_is_queued() -> None:
    """What runs is left alone."""
    writers = Writers(threads=1)
    gate = Gate()
    hanging, queued = writers.submit(gate, 1), writers.submit(len, "four")
    assert gate.entered.wait(PATIENCE)
    writers.shutdown(wait=False, cancel_futures=True)
    gate.released.set()
    assert hanging.result(PATIENCE) == 1
    assert queued.cancelled()
    writers.shutdown()


@pytest.mark.asyncio
async def test_run_returns_the_result() -> None:
    """The call is made on a thread, with its arguments, for the loop's two implementations."""
    writers = Writers()
    assert await writers.run("adding", divmod, 7, 2, deadline=PATIENCE) == (3, 1)
    assert await writers.run("looking", threading.get_ident, deadline=float("inf")) != threading.get_ident()
    await writers.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "no-space"),
        (errno.EDQUOT, "no-space"),
        (errno.EFBIG, "no-space"),
        (errno.EIO, "io-error"),
        (errno.EMFILE, "io-error"),
        (errno.EROFS, "io-error"),
        (errno.ENOENT, "no-directory"),
        (errno.ENOTDIR, "unsafe-directory"),
        (errno.ELOOP, "unsafe-directory"),
        (errno.EACCES, "unsafe-directory"),
        (errno.ETIMEDOUT, "io-error"),
    ],
)
async def test_run_names_the_error(number: int, reason: str) -> None:
    """[A3] Each errno has its word; ETIMEDOUT, a TimeoutError, is the call's own and no missed deadline."""

    def fail() -> None:
        raise OSError(number, os.strerror(number), "/secret/path")

    writers = Writers()
    with pytest.raises(StorageError, match="failing: ") as caught:
        await writers.run("failing", fail, deadline=PATIENCE)
    await writers.close()
    assert (caught.value.reason, caught.value.errno) == (reason, number)
    assert "secret" not in str(caught.value)


async def late_result(writers: Writers, cause: Callable[[asyncio.Task[object]], object], deadline: float) -> object:
    """Run a call that hangs, let `cause` end the waiting for it, free it, and return what `undo` was given."""
    gate, undone = Gate(), Future[object]()
    task = asyncio.create_task(writers.run("hanging", gate, "descriptor", deadline=deadline, undo=undone.set_result))
    await asyncio.to_thread(gate.entered.wait, PATIENCE)
    cause(task)
    with pytest.raises((StorageError, asyncio.CancelledError)) as caught:
        await task
    if isinstance(caught.value, StorageError):
        assert caught.value.reason == "writer-stuck"
        assert writers.stuck == 1
    assert not undone.done()
    gate.released.set()
    await writers.settle_late(PATIENCE)
    return await asyncio.to_thread(undone.result, PATIENCE)


@pytest.mark.asyncio
async def test_missed_deadline_is_typed_and_a_late_result_is_undone() -> None:
    """[D8] The thread is written off, and what it opens too late is closed again (F10)."""
    writers = Writers()
    assert await late_result(writers, lambda task: task, deadline=0.01) == "descriptor"
    await writers.close()


@pytest.mark.asyncio
async def test_cancelled_call_is_undone_when_it_returns() -> None:
    """What was opened for nobody is closed again, before `settle_late` returns (F10)."""
    writers = Writers()
    assert await late_result(writers, lambda task: task.cancel(), deadline=PATIENCE) == "descriptor"
    await writers.close()


@pytest.mark.asyncio
async def test_failed_late_call_is_not_undone() -> None:
    """There is nothing to undo."""
    writers = Writers()
    gate, undone = Gate(), list[object]()

    def fail() -> object:
        gate()
        raise OSError(errno.EIO, "late")

    task = asyncio.create_task(writers.run("hanging", fail, deadline=PATIENCE, undo=undone.append))
    await asyncio.to_thread(gate.entered.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.released.set()
    await writers.settle_late(PATIENCE)
    await writers.close()
    assert undone == []


@pytest.mark.asyncio
async def test_close_does_not_wait_for_a_written_off_thread() -> None:
    """[D8, F10] All other threads are gone when it returns."""
    writers = Writers()
    gate = Gate()
    hanging = writers.submit(gate)
    await asyncio.to_thread(gate.entered.wait, PATIENCE)
    other = writers.submit(threading.current_thread).result(PATIENCE)
    writers.abandon(hanging)
    async with asyncio.timeout(PATIENCE):
        await writers.close()
    assert not other.is_alive()
    assert not hanging.done()
    gate.released.set()


@pytest.mark.asyncio
async def test_close_leaves_no_thread() -> None:
    """[F10] Not even one that is about to end, a hundred times."""
    for _ in range(100):
        writers = Writers()
        threads = await asyncio.gather(
            *(writers.run("looking", threading.current_thread, deadline=PATIENCE) for _ in range(4))
        )
        await writers.close()
        assert not any(thread.is_alive() for thread in threads)
