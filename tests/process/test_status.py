"""Exit, status and usage without a loop (contract A2, A4)."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.process import Launch, fallback, spawn, status
from supervisor.sansio.exits import Exited, ExitStatus, Lost, Signalled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Start


def reap(pid: int) -> None:
    """Take the status away, as another part of the host may."""
    os.waitpid(pid, 0)


def until_dead(pid: int) -> None:
    """Return when a child is a zombie."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def exited_child(code: int, number: int = 0) -> int:
    """Fork a child that ends at once, by code or by signal, and return its pid when it is a zombie."""
    pid = os.fork()
    if pid == 0:
        if number:
            os.kill(os.getpid(), number)
        os._exit(code)
    until_dead(pid)
    return pid


@pytest.mark.parametrize("code", [0, 1, 7, 128, 255])
def test_code_is_read_from_the_file_of_the_pidfd_after_a_foreign_reap(code: int) -> None:
    """The kernel keeps it as long as the descriptor lives (Linux 6.15); nothing is filed before the reap."""
    pid = exited_child(code)
    pidfd = os.pidfd_open(pid)
    try:
        assert status.filed_status(pidfd) is None
        reap(pid)
        assert status.filed_status(pidfd) in {Exited(code), None}
    finally:
        os.close(pidfd)


def test_signal_is_read_from_the_file_of_the_pidfd() -> None:
    """It is a wait status, and a signal is no code."""
    pid = exited_child(0, signal.SIGKILL)
    pidfd = os.pidfd_open(pid)
    reap(pid)
    try:
        assert status.filed_status(pidfd) in {Signalled(signal.SIGKILL), None}
    finally:
        os.close(pidfd)


def test_kernel_without_the_question_has_no_answer() -> None:
    """Any other descriptor gives ENOTTY, as an old kernel does."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        assert status.filed_status(descriptor) is None
    finally:
        os.close(descriptor)


def test_wait_results_become_variants() -> None:
    """A dumped core is a death by signal."""
    assert status.from_wait_status(7 << 8) == Exited(7)
    assert status.from_wait_status(9) == Signalled(9)
    for code, expected in [(os.CLD_EXITED, Exited(3)), (os.CLD_KILLED, Signalled(3)), (os.CLD_DUMPED, Signalled(3))]:
        assert status.from_waitid(os.waitid_result((1, 0, 17, 3, code))) == expected


@pytest.mark.parametrize(
    ("peak", "expected"), [(1000, None), (1124, None), (1126, 1126 * status.RSS_UNIT), (9000, 9000 * status.RSS_UNIT)]
)
def test_memory_is_known_only_above_the_hosts_own(peak: int, expected: int | None) -> None:
    """execve(2) books the host's peak to a child that was vforked; a tenth above it is measured, not booked."""
    counted = resource.struct_rusage((1.5, 0.25, peak, *[0] * 13))
    assert status.usage(counted, 1000) == status.Usage(1.75, expected)


def fail(number: int) -> Callable[..., Any]:
    """Return a call that fails."""

    def call(*_arguments: object) -> object:
        raise OSError(number, os.strerror(number))

    return call


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Forget what is remembered of this system, before and after."""
    status.pidfd_supported.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    status.pidfd_supported.cache_clear()


def test_this_system_has_pidfds(fresh: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Otherwise these tests would test the fallback only."""
    assert status.pidfd_supported()


@pytest.mark.parametrize("name", ["pidfd_open", "P_PIDFD"])
def test_python_without_the_call_has_none(fresh: pytest.MonkeyPatch, name: str) -> None:
    """As on macOS."""
    fresh.delattr(os, name)
    assert not status.pidfd_supported()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_kernel_or_sandbox_without_the_call_has_none(fresh: pytest.MonkeyPatch, number: int) -> None:
    """Before Linux 5.3, or filtered."""
    fresh.setattr(os, "pidfd_open", fail(number))
    assert not status.pidfd_supported()


def test_kernel_that_cannot_wait_by_pidfd_has_none(fresh: pytest.MonkeyPatch) -> None:
    """Linux 5.3 has the one call without the other."""
    fresh.setattr(os, "waitid", fail(errno.EINVAL))
    assert not status.pidfd_supported()


def test_passing_shortage_is_not_remembered(fresh: pytest.MonkeyPatch) -> None:
    """No descriptor for the question says nothing about the answer."""
    with fresh.context() as patch:
        patch.setattr(os, "pidfd_open", fail(errno.EMFILE))
        with pytest.raises(OSError, match="open files"):
            status.pidfd_supported()
    assert status.pidfd_supported()


def watch_of(by_pidfd: bool, pid: int) -> status.Watch:  # noqa: FBT001
    """Return a watch for a child that the test has forked."""
    loop = asyncio.get_running_loop()
    return status.PidfdWatch(loop, pid, os.pidfd_open(pid), 0) if by_pidfd else fallback.ThreadWatch(loop, pid, 0)


@pytest.mark.asyncio
@pytest.mark.parametrize("by_pidfd", [True, False])
async def test_reap_tolerates_everything_and_never_waits(by_pidfd: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """Alive: None. A zombie: its usage. Gone, or gone just now: None."""
    ready, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        os.read(ready, 1)
        os._exit(0)
    os.close(ready)
    watch = watch_of(by_pidfd, pid)
    assert watch.held()
    assert watch.reap() is None
    os.close(release)
    until_dead(pid)
    assert watch.held()
    assert isinstance(watch.reap(), status.Usage)
    assert not watch.held()
    assert watch.reap() is None
    with monkeypatch.context() as patch:
        patch.setattr(watch, "held", lambda: True)
        assert watch.reap() is None
    watch.close()
    watch.close()
    assert not watch.held()
    with pytest.raises(ProcessLookupError):
        watch.send_signal(signal.SIGTERM)


@pytest.mark.asyncio
async def test_child_that_was_gone_before_a_pidfd_could_be_had_is_lost() -> None:
    """Told from the loop, with nothing to be signalled or reaped."""
    watch = status.PidfdWatch(asyncio.get_running_loop(), 2**22 + 1, -1, 0)
    seen: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
    watch.start(seen.set_result)
    assert not seen.done()
    assert await seen == Lost()
    assert not watch.held()
    assert watch.reap() is None
    watch.close()


@pytest.mark.asyncio
async def test_closed_watch_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an exit nor a retry that was under way."""
    pid = exited_child(1)
    pidfd = os.pidfd_open(pid)
    reap(pid)
    monkeypatch.setattr(status, "filed_status", lambda _pidfd: None)
    watch = status.PidfdWatch(asyncio.get_running_loop(), pid, pidfd, 0)
    told: list[ExitStatus] = []
    watch.start(told.append)
    watch._look()
    watch.close()
    watch._announce(Lost())
    await asyncio.sleep(3 * status.RETRY_AFTER)
    assert told == []


@pytest.mark.asyncio
async def test_system_without_waitid_reaps_at_the_exit(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS before Python 3.13: the code is exact, the zombie is not held, usage is unknown."""
    del start  # its module is the one that is patched
    pid = os.fork()
    if pid == 0:
        os._exit(6)
    watch = fallback.ThreadWatch(asyncio.get_running_loop(), pid, 0)
    seen: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
    with monkeypatch.context() as patch:
        patch.delattr(os, "waitid")
        assert watch.held()
        watch.start(seen.set_result)
        async with asyncio.timeout(30):
            assert await seen == Exited(6)
        assert not watch.held()
        assert watch.reap() is None


@pytest.mark.asyncio
async def test_thread_of_a_reaped_child_says_lost() -> None:
    """Somebody else has the status."""
    pid = exited_child(1)
    reap(pid)
    watch = fallback.ThreadWatch(asyncio.get_running_loop(), pid, 0)
    seen: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
    watch.start(seen.set_result)
    async with asyncio.timeout(30):
        assert await seen == Lost()


def test_thread_outlives_its_loop() -> None:
    """A loop that was closed before the child ended hears nothing, and the thread ends without an error."""
    pid = exited_child(0)
    loop = asyncio.new_event_loop()
    loop.close()
    told: list[ExitStatus] = []
    watch = fallback.ThreadWatch(loop, pid, 0)
    watch._seen = told.append
    watch._work()
    assert told == []
    reap(pid)


class Exits(asyncio.SubprocessProtocol):
    """Tells when the exit was seen."""

    def __init__(self) -> None:
        self.seen = asyncio.Event()

    def process_exited(self) -> None:
        """The exit was seen."""
        self.seen.set()


@pytest.mark.parametrize("call", ["waitid", "wait4"])
@pytest.mark.asyncio
async def test_an_unknown_error_of_a_wait_neither_spins_nor_leaks(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H5-029 (python/cpython#151179): whatever the error is, the child is let go and its descriptors are closed."""
    protocol = Exits()
    child = await spawn(protocol, Launch(("true",)))

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "invalid argument")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        async with asyncio.timeout(10):
            await protocol.seen.wait()
        child.release()
    assert child.exit == (Lost() if call == "waitid" else Exited(0))
    assert child.usage is None
    await asyncio.to_thread(os.waitpid, child.get_pid(), 0)
    await asyncio.get_running_loop().shutdown_default_executor()
