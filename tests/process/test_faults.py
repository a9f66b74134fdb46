"""Commands that cannot start: one typed error each, and nothing left (contract F6)."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.errors import SpawnError
from supervisor.process import Launch, faults, native, spawn
from supervisor.process import start as start_module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Recorder, Start

OUT_OF_THREADS = RuntimeError("can't start new thread")


@pytest.fixture(params=["subprocess", "native"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start by either way, whatever this host's signals are."""
    oddities = ("ignored-signals",) if request.param == "native" else ()
    monkeypatch.setattr(native, "signal_oddities", lambda: oddities)


def script(path: Path, text: str, mode: int = 0o755) -> str:
    """Write a program and return its path."""
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def prepare(tmp_path: Path, case: str) -> tuple[tuple[str, ...], dict[str, Any], str | None]:
    """Return the command, the options and the path that must be named for one case."""
    directory = str(tmp_path)
    file = script(tmp_path / "file", "text\n", 0o644)
    text = script(tmp_path / "text", "no program at all\n")
    bad = script(tmp_path / "bad", "#!/no/such/interpreter -x\n")
    dull = script(tmp_path / "dull", f"#!{file}\n")
    chain = script(tmp_path / "chain", f"#! {directory}/bad\n")
    elf = tmp_path / "elf"
    loader = b"/lib64/ld-linux-x86-64.so.2"
    real = Path(shutil.which("true") or "/bin/true").read_bytes()
    elf.write_bytes(real.replace(loader, b"/lib64/no-such-loader.so.22"))
    elf.chmod(0o755)
    cases: dict[str, tuple[tuple[str, ...], dict[str, Any], str | None]] = {
        "missing": (("/no/such/program",), {}, "/no/such/program"),
        "not on path": (("no-such-program",), {"env": {"PATH": "/usr/bin"}}, "no-such-program"),
        "empty name": (("",), {}, ""),
        "below a file": ((f"{file}/x",), {}, f"{file}/x"),
        "cwd missing": (("true",), {"cwd": "/no/such/directory"}, "/no/such/directory"),
        "cwd is a file": (("true",), {"cwd": file}, file),
        "cwd same as program": (("/no/such/x",), {"cwd": "/no/such/x"}, "/no/such/x"),
        "relative program": (("./none",), {"cwd": directory}, "./none"),
        "not executable": ((file,), {}, file),
        "not executable on path": (("file",), {"env": {"PATH": directory}}, file),
        "a directory": ((directory,), {}, directory),
        "bad interpreter": ((bad,), {}, "/no/such/interpreter"),
        "bad interpreter in cwd": (("./bad",), {"cwd": directory}, "/no/such/interpreter"),
        "interpreter not executable": ((dull,), {}, file),
        "interpreter of interpreter": ((chain,), {}, f"{directory}/bad"),
        "loader missing": ((str(elf),), {}, str(elf)),
        "no format": ((text,), {}, text),
        "argument too long": (("true", "x" * (1 << 18)), {}, None),
        "environment too long": (("true",), {"env": {"PATH": os.environ["PATH"], "A": "x" * (1 << 18)}}, None),
    }
    return cases[case]


@pytest.mark.usefixtures("way")
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("case", "fault", "number"),
    [
        ("missing", "program", errno.ENOENT),
        ("not on path", "program", errno.ENOENT),
        ("empty name", "program", errno.EACCES),
        ("below a file", "program", errno.ENOTDIR),
        ("cwd missing", "cwd", errno.ENOENT),
        ("cwd is a file", "cwd", errno.ENOTDIR),
        ("cwd same as program", "cwd", errno.ENOENT),
        ("relative program", "program", errno.ENOENT),
        ("not executable", "permission", errno.EACCES),
        ("not executable on path", "permission", errno.EACCES),
        ("a directory", "permission", errno.EACCES),
        ("bad interpreter", "interpreter", errno.ENOENT),
        ("bad interpreter in cwd", "interpreter", errno.ENOENT),
        ("interpreter not executable", "interpreter", errno.EACCES),
        ("interpreter of interpreter", "interpreter", errno.ENOENT),
        ("loader missing", "interpreter", errno.ENOENT),
        ("no format", "format", errno.ENOEXEC),
        ("argument too long", "arguments", errno.E2BIG),
        ("environment too long", "arguments", errno.E2BIG),
    ],
)
async def test_each_cause_has_its_word_and_its_path(
    recorder: Recorder, tmp_path: Path, case: str, fault: str, number: int
) -> None:
    """Which of directory, program, interpreter and so on was at fault, with the system's number (H5-060, BUG-128)."""
    argv, options, subject = prepare(tmp_path, case)
    with pytest.raises(SpawnError) as caught:
        await spawn(recorder, Launch(argv, **options))
    assert (caught.value.fault, caught.value.subject, caught.value.errno) == (fault, subject, number)
    assert caught.value.receipt is None
    assert "xxxx" not in str(caught.value)
    assert recorder.events == []


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let the process open `count` more descriptors, whatever numbers are free."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    filled: list[int] = []
    top = max(int(link.name) for link in Path("/proc/self/fd").iterdir()) + 1
    while (descriptor := os.dup(0)) < top:
        filled.append(descriptor)
    os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (top + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in filled:
            os.close(descriptor)


@pytest.mark.usefixtures("way")
@pytest.mark.asyncio
@pytest.mark.parametrize("count", range(13))
async def test_running_out_of_descriptors_anywhere_is_resources(start: Start, recorder: Recorder, count: int) -> None:
    """Whichever open is the one too many, pidfd included: typed, nothing leaked, and the next start works (BUG-054)."""
    with descriptors_left(count):
        try:
            child = await spawn(recorder, Launch(("true",), stdin="pipe"))
        except SpawnError as error:
            assert (error.fault, error.errno) == ("resources", errno.EMFILE)  # noqa: PT017 - either is right
            child = None
    assert (child is None) == (count < 12) or count > 5
    if child is not None:
        child.close()
        await recorder.heard(("gone", None))
    _child, heard = await start("true")
    await heard.heard("exited")


@pytest.mark.asyncio
async def test_no_pidfd_left_kills_and_reaps_the_child(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process existed already; it is not left running without anybody who watches it."""
    pids: list[int] = []

    def refuse(pid: int) -> int:
        pids.append(pid)
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    monkeypatch.setattr(start_module, "open_pidfd", refuse)
    with pytest.raises(SpawnError) as caught:
        await spawn(recorder, Launch((sys.executable, "-S", "-c", "import signal; signal.pause()")))
    assert (caught.value.fault, caught.value.errno) == ("resources", errno.ENFILE)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.asyncio
async def test_busy_program_is_tried_again(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program that is being written is busy for a moment only (H5-056): the start succeeds once it is closed."""
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\necho ran\n")
    path.chmod(0o755)
    writing = path.open("a")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            writing.close()

    monkeypatch.setattr(start_module.time, "sleep", wait)
    _child, heard = await start(str(path))
    assert await heard.line() == "ran"
    assert waits == list(start_module.BUSY_WAITS[:2])


@pytest.mark.asyncio
async def test_program_that_stays_busy_is_an_error(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After a few attempts ETXTBSY is told, never as the command's own code."""
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    waits: list[float] = []
    monkeypatch.setattr(start_module.time, "sleep", waits.append)
    with path.open("a"), pytest.raises(SpawnError) as caught:
        await spawn(recorder, Launch((str(path),)))
    assert (caught.value.fault, caught.value.subject, caught.value.errno) == ("other", str(path), errno.ETXTBSY)
    assert waits == list(start_module.BUSY_WAITS)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.ENFILE])
def test_exhaustion_is_resources_whatever_ran_out(number: int) -> None:
    """No path is to blame."""
    error = faults.spawn_error(OSError(number, "x"), Launch(("true",)))
    assert (error.fault, error.subject, error.errno) == ("resources", None, number)


def test_other_errors_name_the_program() -> None:
    """What no word covers, a missing number and a denial without a program included, is "other"."""
    found = faults.find_program(Launch(("true",)))
    for number, argv, subject in [(errno.EIO, "true", found), (None, "true", found), (errno.EACCES, "/no/x", "/no/x")]:
        error = faults.spawn_error(OSError() if number is None else OSError(number, "x"), Launch((argv,)))
        assert (error.fault, error.subject, error.errno) == ("other", subject, number)


def test_interpreter_of_what_cannot_be_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FIFO must not hang, a missing file, an empty `#!` and a read error must not raise."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "blank").write_text("#!  \nx")
    launch = Launch(("x",), cwd=str(tmp_path))
    assert faults.interpreter("fifo", launch) is None
    assert faults.interpreter("none", launch) is None
    assert faults.interpreter("blank", launch) is None

    def fail(_descriptor: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "x")

    monkeypatch.setattr(os, "read", fail)
    assert faults.interpreter("blank", launch) is None
