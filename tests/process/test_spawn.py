"""The way from a launch to a transport, cancelled at every point (contract F5, F6, F10)."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import SpawnError
from supervisor.process import Launch, spawn, spawner
from supervisor.process.spawn import spawn_watched
from supervisor.process.start import Started
from supervisor.process.status import PidfdWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Recorder, Start


module: Any = sys.modules["supervisor.process.spawn"]
FOREVER = Launch((sys.executable, "-S", "-c", "import signal; signal.pause()"), stdin="pipe")


class Gate:
    """Stands in for `start`, and holds the thread where a test wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.before = threading.Event()
        self.started: list[Started] = []
        self.real: Callable[..., Started] = module.start
        monkeypatch.setattr(module, "start", self)

    def __call__(self, launch: Launch, **options: Any) -> Started:  # noqa: ANN401
        """Start only when the gate is open."""
        self.begun.set()
        assert self.before.wait(30)
        started = self.real(launch, **options)
        self.started.append(started)
        return started


def childless() -> bool:
    """Whether this process has no child, zombies included."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


async def in_time(event: threading.Event) -> None:
    """Return when another thread has set it."""
    async with asyncio.timeout(30):
        while not event.is_set():  # noqa: ASYNC110 - set by a thread, not by the loop
            await asyncio.sleep(0)


@pytest.mark.asyncio
@pytest.mark.parametrize("by_pidfd", [True, False])
@pytest.mark.parametrize("turns", [*range(12), 20, 40, 80, 160, 320])
async def test_cancelled_after_any_number_of_turns_leaves_nothing(
    recorder: Recorder,
    turns: int,
    by_pidfd: bool,  # noqa: FBT001
) -> None:
    """The child was never there, or is killed and reaped, when the cancellation comes out; or it is ours in full."""
    task = asyncio.ensure_future(spawn_watched(recorder, FOREVER, by_pidfd=by_pidfd))
    for _turn in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        child = await task
    except asyncio.CancelledError:
        assert recorder.events == []
        assert childless()
    else:
        child.close()
        await recorder.heard("exited", ("gone", None))


@pytest.mark.asyncio
async def test_cancelled_in_the_middle_of_the_start_kills_the_late_arrival(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CancelledError waits for it, and a second and third cancel do not make it leave earlier."""
    gate = Gate(monkeypatch)
    task = asyncio.ensure_future(spawn(recorder, FOREVER))
    await in_time(gate.begun)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gate.before.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(gate.started[0].pid, 0)


@pytest.mark.asyncio
async def test_cancelled_while_queued_is_never_started(
    start: Start, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves at once, whatever holds the thread, and the one before it is not touched."""
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 60)
    gate = Gate(monkeypatch)
    first = asyncio.ensure_future(start("true"))
    await in_time(gate.begun)
    second = asyncio.ensure_future(spawn(recorder, FOREVER))
    await asyncio.sleep(0)
    second.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await second
    assert not first.done()
    gate.before.set()
    _child, heard = await first
    await heard.heard("exited")
    assert len(gate.started) == 1


@pytest.mark.asyncio
async def test_cancelled_between_arrival_and_return_is_destroyed(recorder: Recorder) -> None:
    """The result is there, the task has not run yet: nobody else could end the child."""
    task = asyncio.ensure_future(spawn(recorder, FOREVER))
    real = module.Ticket._settle

    def settle_and_cancel(settled: asyncio.Future[None]) -> None:
        real(settled)
        task.cancel()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Ticket, "_settle", staticmethod(settle_and_cancel))
        with pytest.raises(asyncio.CancelledError):
            await task
    assert childless()
    assert recorder.events == []


@pytest.mark.asyncio
async def test_arrival_is_destroyed_on_the_loop_when_no_thread_is_to_be_had(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the interpreter's exit, or at the limit of processes."""
    ticket = module.Ticket(FOREVER, asyncio.get_running_loop(), by_pidfd=True)
    ticket.run()

    def refuse(_function: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(spawner.shared, "submit", refuse)
    await ticket.abandon()
    assert childless()
    assert recorder.events == []


@pytest.mark.asyncio
async def test_cancellation_does_not_wait_for_a_stuck_exec(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the deadline it comes out, and the daemon thread cleans up when the exec returns."""
    monkeypatch.setattr(module, "CANCEL_PATIENCE", 0.01)
    gate = Gate(monkeypatch)
    task = asyncio.ensure_future(spawn(recorder, FOREVER))
    await in_time(gate.begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.started == []
    gate.before.set()  # the fixture that looks for leftovers sees the child go


@pytest.mark.asyncio
async def test_stuck_exec_does_not_hold_up_other_starts(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread joins after a while (contract D8 in spirit): the loop and all other jobs stay free."""
    monkeypatch.setattr(spawner, "STUCK_AFTER", 0.01)
    gate = Gate(monkeypatch)
    stuck = asyncio.ensure_future(start("true"))
    await in_time(gate.begun)
    monkeypatch.setattr(module, "start", gate.real)
    _child, heard = await start("echo", "free")
    assert await heard.line() == "free"
    assert not stuck.done()
    gate.before.set()
    await stuck


def test_loop_that_ends_under_a_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can come for the child any more, so the thread ends it."""
    gate = Gate(monkeypatch)
    loop = asyncio.new_event_loop()
    ticket = module.Ticket(FOREVER, loop, by_pidfd=True)
    spawner.shared.submit(ticket.run)
    assert gate.begun.wait(30)
    loop.close()
    gate.before.set()  # the fixture that looks for leftovers sees the child go
    failing = module.Ticket(Launch(("/no/such/program",)), loop, by_pidfd=True)
    failing.run()
    assert failing._outcome is None


def test_coroutine_that_is_thrown_away_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`close()` on it, as the end of an interpreter does, gives the start up without waiting."""
    gate = Gate(monkeypatch)
    gate.before.set()

    async def main() -> None:
        coroutine = spawn(asyncio.SubprocessProtocol(), FOREVER)
        coroutine.send(None)
        coroutine.close()

    asyncio.run(main())


@pytest.mark.asyncio
async def test_no_thread_for_the_start_is_resources(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of processes counts threads too; the next start works again."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(SpawnError) as caught:
            await spawn(recorder, FOREVER)
    assert (caught.value.fault, caught.value.errno) == ("resources", errno.EAGAIN)
    child = await spawn(recorder, FOREVER)
    child.close()
    await recorder.heard(("gone", None))


@pytest.mark.asyncio
@pytest.mark.parametrize("by_pidfd", [True, False])
async def test_no_room_for_the_watch_ends_the_child(
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    by_pidfd: bool,  # noqa: FBT001
) -> None:
    """The selector's own limit, or the thread's: the child is killed and reaped, the protocol hears nothing."""
    loop = asyncio.get_running_loop()

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(PidfdWatch, "_begin", refuse)
    ticket = module.Ticket(FOREVER, loop, by_pidfd=by_pidfd)
    ticket.run()
    started = ticket.take()

    async def arrived(*_arguments: object, **_options: object) -> Started:
        return started

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "start_on_thread", arrived)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(OSError, match=r"space|unavailable"):
        await spawn_watched(recorder, FOREVER, by_pidfd=by_pidfd)
    assert recorder.events == []


@pytest.mark.asyncio
async def test_system_without_pidfd_is_served_by_threads(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call, and the limitation is named."""
    monkeypatch.setattr(module, "pidfd_supported", lambda: False)
    child = await spawn(recorder, Launch(("true",)))
    await recorder.heard("exited")
    assert child.limitations == ("no-pidfd",)
    child.close()
    await recorder.heard(("gone", None))


def test_forked_host_starts_with_an_idle_spawner() -> None:
    """Threads do not survive a fork, and a lock that one of them held would never be given back."""
    ours = spawner.Spawner()
    ours._threads = 3
    ours._queue.append(lambda: None)
    ours._lock.acquire()
    ours.forget()
    done = threading.Event()
    ours.submit(done.set)
    assert done.wait(30)


def test_relief_without_need_or_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty queue needs none, the cap holds, and a refused thread is no error."""
    monkeypatch.setattr(spawner, "STUCK_AFTER", 0.0)
    ours = spawner.Spawner()
    ours.relieve()
    assert ours._threads == 0
    ours._queue.append(lambda: None)
    ours._threads = spawner.MAX_THREADS
    ours.relieve()
    assert ours._threads == spawner.MAX_THREADS

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ours._threads = 1
    monkeypatch.setattr(threading.Thread, "start", refuse)
    ours.relieve()
    assert ours._threads == 1


@pytest.mark.asyncio
async def test_two_loops_start_at_the_same_time() -> None:
    """Loops in several threads share the one spawner (uvloop's own spawn raises there)."""

    async def some() -> list[int]:
        codes: list[int] = []
        for _ in range(5):
            code = asyncio.get_running_loop().create_future()

            class Exit(asyncio.SubprocessProtocol):
                def process_exited(self) -> None:
                    code.set_result(child.get_returncode())  # noqa: B023

            child = await spawn(Exit(), Launch(("sh", "-c", "exit 5")))
            codes.append(await code)
            child.release()
            await asyncio.sleep(0)
        return codes

    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(some()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    await asyncio.get_running_loop().run_in_executor(None, functools.partial(list, map(threading.Thread.join, threads)))
    await asyncio.get_running_loop().shutdown_default_executor()
    assert found == [[5] * 5] * 3


def test_child_that_the_system_reaped_is_not_killed_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """With SIGCHLD ignored it can be gone before the pidfd; its pid may be anybody's then."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: sent.append(pid))
    reading, writing = os.pipe()
    os.close(writing)
    Started(os.getpid(), -1, {1: reading}, 0).destroy()
    assert sent == []
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(reading)
