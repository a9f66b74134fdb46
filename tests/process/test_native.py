"""Children of hosts with unusual signals (contract F7, field reports H5-057, H5-058)."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.process import native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Start

BOTH_LOST = (("lost", 1, None), ("lost", 2, None))
CUSTOM = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGRTMIN)


@pytest.fixture
def ignoring() -> Iterator[None]:
    """A host as `nohup`, a background job of a script, or a careless daemon leaves it."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in CUSTOM}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def blocking() -> Iterator[None]:
    """A host that blocks signals, to fetch them with sigwait(3)."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def masks(start: Start) -> dict[str, int]:
    """Return the signal sets of a child, which execs once and is no Python."""
    child, heard = await start("cat", "/proc/self/status")
    await heard.heard("exited", *BOTH_LOST)
    assert child.limitations == ()
    lines = [line.split(":") for line in heard.data[1].decode().splitlines()]
    return {name: int(value, 16) for name, value in lines if name in {"SigBlk", "SigIgn", "SigCgt"}}


@pytest.mark.asyncio
async def test_ordinary_host_has_default_children(start: Start) -> None:
    """Nothing ignored, blocked or caught; Python's own ignored SIGPIPE and SIGXFSZ are set back."""
    assert native.signal_oddities() == ()
    found = await masks(start)
    assert found == {"SigBlk": 0, "SigIgn": 0, "SigCgt": 0}


@pytest.mark.usefixtures("ignoring")
@pytest.mark.asyncio
async def test_ignored_signals_are_default_in_the_child_and_untouched_in_the_host(start: Start) -> None:
    """The child can be interrupted; the host goes on ignoring, at every moment."""
    assert native.signal_oddities() == ("ignored-signals",)
    found = await masks(start)
    assert found == {"SigBlk": 0, "SigIgn": 0, "SigCgt": 0}
    assert all(signal.getsignal(number) is signal.SIG_IGN for number in CUSTOM)


@pytest.mark.usefixtures("blocking")
@pytest.mark.asyncio
async def test_blocked_signals_are_free_in_the_child_and_blocked_in_the_host(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM reaches the child (H5-057), and the thread that starts it never becomes one that TERM could kill."""
    seen: list[set[int]] = []
    real = native.spawn

    def look(*arguments: Any) -> int:  # noqa: ANN401
        seen.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        pid = real(*arguments)
        seen.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        return pid

    monkeypatch.setattr(native, "spawn", look)
    found = await masks(start)
    assert found == {"SigBlk": 0, "SigIgn": 0, "SigCgt": 0}
    assert seen == [{signal.SIGTERM, signal.SIGUSR1}] * 2


@pytest.mark.usefixtures("ignoring")
@pytest.mark.asyncio
async def test_native_start_gives_what_the_ordinary_one_gives(
    start: Start,
    tmp_path: os.PathLike[str],
) -> None:
    """Session, directory, environment, PATH of the child, stdin and no other descriptors."""
    inheritable = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inheritable, True)  # noqa: FBT003
    command = (
        'echo "$A"; pwd; read x; echo "$x"; ls /proc/self/fd | tr "\\n" " "; cut -d" " -f5,6 /proc/$$/stat; echo e >&2'
    )
    try:
        child, heard = await start(
            "sh", "-c", command, stdin="pipe", cwd=str(tmp_path), env={"A": "é", "PATH": "/none:/bin:/usr/bin"}
        )
        assert child.stdin is not None
        child.stdin.write(b"in\n")
        await heard.heard("exited", *BOTH_LOST)
    finally:
        os.close(inheritable)
    pid = child.get_pid()
    assert heard.data[1].decode() == f"é\n{tmp_path}\nin\n0 1 2 3 {pid} {pid}\n"
    assert heard.data[2] == b"e\n"


@pytest.mark.usefixtures("ignoring")
@pytest.mark.asyncio
async def test_native_start_can_merge(start: Start) -> None:
    """One pipe for both, with the inherited environment."""
    _child, heard = await start("sh", "-c", 'echo "$HOME"; echo 2 >&2; echo 3', merge=True)
    await heard.heard("exited", ("lost", 1, None))
    assert heard.data[1].decode() == f"{os.environ['HOME']}\n2\n3\n"


@pytest.mark.usefixtures("ignoring", "blocking")
@pytest.mark.asyncio
async def test_where_the_library_cannot_the_child_says_so(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Named, not hidden (contract, preamble): the child inherits, and the host is left alone all the same."""
    monkeypatch.setattr(native, "available", lambda: False)
    child, heard = await start("true")
    await heard.heard("exited")
    assert child.limitations == ("ignored-signals", "blocked-signals")


def test_library_without_the_functions_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As musl and an old glibc lack the newest of them."""
    native.available.cache_clear()
    monkeypatch.setattr(native, "library", object)
    assert not native.available()
    native.available.cache_clear()


def test_error_number_of_the_library_is_raised() -> None:
    """posix_spawn(3) and its family return it."""
    native.check(0)
    with pytest.raises(PermissionError):
        native.check(1)
