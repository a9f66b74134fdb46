"""A terminal's two sides: how it is opened, sized, read, typed into and closed (contract B7, F6)."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import termios
from typing import TYPE_CHECKING, Any

import pytest

from supervisor.process import Launch, Terminal, terminal
from supervisor.process.faults import spawn_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Start

ENDED = ("exited", ("lost", 1, None))


@pytest.mark.parametrize("name", ["rows", "columns"])
def test_a_size_is_two_numbers_that_the_system_takes(name: str) -> None:
    """Unsigned shorts; zero would mean that nobody knows."""
    for good in (1, 65535):
        assert getattr(Terminal(**{name: good}), name) == good
    for bad in (0, -1, 65536):
        with pytest.raises(ValueError, match=name):
            Terminal(**{name: bad})
    for wrong in (24.0, "24", True, None):
        with pytest.raises(TypeError, match=name):
            Terminal(**{name: wrong})  # type: ignore[arg-type]


def test_a_launch_on_a_terminal_is_merged() -> None:
    """It has one stream (B7)."""
    with pytest.raises(ValueError, match="merged"):
        Launch(("true",), pty=Terminal())
    assert Launch(("true",), pty=Terminal(), merge=True).outputs == (1,)


def test_both_sides_are_private_and_the_host_keeps_its_own_terminal() -> None:
    """Neither is inherited by what another thread starts, and neither controls our session."""
    master, slave = terminal.open_pair(Terminal(5, 6))
    try:
        assert not os.get_inheritable(master)
        assert not os.get_inheritable(slave)
        assert not os.get_blocking(master)
        assert os.get_terminal_size(slave) == (6, 5)
        with pytest.raises(OSError, match="Inappropriate"):
            os.tcgetpgrp(slave)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize(
    ("number", "fault"),
    [(errno.EMFILE, "resources"), (errno.ENOSPC, "resources"), (errno.EACCES, "terminal"), (errno.ENXIO, "terminal")],
)
def test_what_is_lacking_is_told_apart(monkeypatch: pytest.MonkeyPatch, number: int, fault: str) -> None:
    """Too many of them may pass; no device at all does not. The first side is closed again."""

    def fail(*_: Any) -> int:  # noqa: ANN401
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(terminal.fcntl, "ioctl", fail)
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared below
        terminal.open_pair(Terminal())
    error = spawn_error(raised.value, Launch(("true",)))
    assert (error.fault, error.errno) == (fault, number)


@pytest.mark.parametrize("nameless", [errno.ENODEV, errno.ENOENT])
def test_a_terminal_without_a_name_controls_nothing(monkeypatch: pytest.MonkeyPatch, nameless: int) -> None:
    """Where its file system is mounted elsewhere, another terminal might have that name here."""

    def fail(_: int) -> str:
        raise OSError(nameless, os.strerror(nameless))

    monkeypatch.setattr(os, "ttyname", fail)
    with pytest.raises(terminal.NoTerminal):
        terminal.controlling_name(0)


@pytest.mark.asyncio
async def test_the_end_is_eio_and_the_size_is_gone_with_it(start_both: Start) -> None:
    """Told as an end, not as an error; after it nothing is left to be resized or named."""
    child, heard = await start_both("sh", "-c", "stty size; exit 3", pty=Terminal(7, 8), merge=True)
    reader = child.readers[1]
    assert isinstance(reader, terminal.TerminalReader)
    assert reader.inode() is None
    await heard.heard(*ENDED)
    assert heard.data == {1: b"7 8\r\n", 2: b""}
    assert reader.at_end
    assert reader.device is None
    child.resize(Terminal())
    assert child.get_returncode() == 3
    assert child.stdin is None


@pytest.mark.asyncio
async def test_a_holder_of_the_terminal_is_named(start: Start) -> None:
    """By the device, and only among the members of the tree: anybody may open it by its name."""
    child, heard = await start("sh", "-c", "trap '' HUP; sleep 100 & echo $!", pty=Terminal(), merge=True)
    holder = int(await heard.line())
    await heard.heard("exited")
    assert child.holders() == (holder,)
    child.signal_group(9)
    await heard.heard(*ENDED)


@pytest.mark.asyncio
async def test_bulk_output_is_not_read_by_a_timer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gives 4 KiB a read: one read a tick would hold the child up, and it cannot be made larger."""
    asked: list[int] = []
    real: Callable[..., Any] = fcntl.fcntl

    def look(descriptor: int, command: int, *rest: Any) -> Any:  # noqa: ANN401
        asked.append(command)
        return real(descriptor, command, *rest)

    child, heard = await start(
        "sh", "-c", "stty -opost; head -c 3000000 /dev/zero", pty=Terminal(), merge=True, reading=False
    )
    monkeypatch.setattr(fcntl, "fcntl", look)
    ticks: list[object] = []
    monkeypatch.setattr(terminal.TerminalReader, "_tick", ticks.append)  # a tick would be the last read
    child.readers[1].resume_reading()
    await heard.heard(*ENDED)
    assert len(heard.data[1]) == 3_000_000
    assert fcntl.F_SETPIPE_SZ not in asked


class Keys:
    """A writer on a terminal whose other side a test reads, without line editing."""

    def __init__(self) -> None:
        self.lost: list[tuple[int, Exception | None]] = []
        self.master, self.slave = terminal.open_pair(Terminal())
        modes: list[Any] = termios.tcgetattr(self.slave)
        modes[0] &= ~termios.ICRNL
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.writer = terminal.TerminalWriter(asyncio.get_running_loop(), self, os.dup(self.master))

    def pause_writing(self) -> None:
        """Nothing is written that would do that."""

    def resume_writing(self) -> None:
        """See `pause_writing`."""

    def pipe_lost(self, fd: int, error: Exception | None) -> None:
        """Keep it."""
        self.lost.append((fd, error))

    def typed(self, count: int) -> bytes:
        """Return the next `count` bytes that were typed, in however many steps the system hands them over."""
        found = b""
        while len(found) < count:
            found += os.read(self.slave, count - len(found))
        return found

    def close(self) -> None:
        """Close all sides."""
        self.writer.abort()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def keys() -> Iterator[Callable[[], Keys]]:
    """Return a function that makes one; it is closed at last."""
    made: list[Keys] = []
    yield lambda: made.append(Keys()) or made[-1]
    for each in made:
        each.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("typed", "ends"), [(b"", 1), (b"a\n", 1), (b"a\r", 1), (b"a", 2), (b"a\nb", 2), (bytearray(b"a\n"), 1)]
)
async def test_an_end_of_file_is_typed_twice_in_an_unfinished_line(
    keys: Callable[[], Keys], typed: bytes, ends: int
) -> None:
    """Once more it is at the beginning of a line; and the writer goes on."""
    made = keys()
    made.writer.write(typed)
    made.writer.write_eof()
    made.writer.write_eof()
    assert not made.writer.is_closing()
    made.writer.write(b"end")
    expected = typed + b"\x04" * ends + b"\x04" + b"end"
    assert made.typed(len(expected)) == expected


@pytest.mark.asyncio
async def test_closing_the_writer_leaves_the_terminal_open(keys: Callable[[], Keys]) -> None:
    """It types nothing more, and is told of as any writer."""
    made = keys()
    made.writer.close()
    made.writer.write(b"x")
    await asyncio.sleep(0)
    assert made.lost == [(0, None)]
    os.write(made.master, b"y")
    assert made.typed(1) == b"y"
