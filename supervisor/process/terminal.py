"""A pseudo-terminal in the place of a child's three pipes (contract B7).

The child is a session leader; `native` has it open the terminal by name as its first one, which makes it the
controlling terminal (tty(4); `TIOCSCTTY` would need code of ours between fork and exec).
Our side is the master: one descriptor to read, a copy of it to write. Its end is EIO, which it gives once no process
has the other side open and all was read. On Linux the leader's exit sends SIGHUP to the foreground group and takes
nothing back of what was printed, so what is still read then, and for how long, is as with a pipe (contract F2).

The master is opened without openpty(3), which for a moment has both sides inheritable: a process that another thread
starts in that moment would hold the terminal open.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import termios
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .reader import Reader
from .writer import Writer

if TYPE_CHECKING:
    import asyncio

    from .reader import PipeOwner
    from .writer import WriteOwner

MASTER: Final = "/dev/ptmx"
# <asm-generic/ioctls.h>; the standard library has none of them before Python 3.13.
TIOCGPTN: Final = 0x80045430
TIOCSPTLCK: Final = 0x40045431
TIOCGPTPEER: Final = 0x5441
LARGEST: Final = 0xFFFF
"""`struct winsize` has unsigned shorts, tty_ioctl(4)."""
READ_BYTES: Final = 4095
"""What the line discipline holds (N_TTY_BUF_SIZE less one), and so what one read mostly gives at most."""
END_OF_FILE: Final = b"\x04"
"""VEOF as a new terminal has it, termios(3): at the beginning of a line the end of the input, elsewhere a flush."""


SHORTAGES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EAGAIN))
"""ENOSPC: as many terminals as `/proc/sys/kernel/pty/max` allows."""


class NoTerminal(OSError):
    """No pseudo-terminal is to be had here, for want of anything but descriptors and memory."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The size of a terminal, in characters.

    Raises: TypeError, ValueError, at construction, unless both are whole numbers from 1 to 65,535.
    """

    rows: int = 24
    columns: int = 80

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            _check_size(name, getattr(self, name))


def _check_size(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a number of characters")
    if not 1 <= value <= LARGEST:
        raise ValueError(f"{name} must be from 1 to {LARGEST}")


def set_size(descriptor: int, size: Terminal) -> None:
    """Give the terminal this size; if it had another one, its foreground group gets SIGWINCH."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


def open_pair(size: Terminal) -> tuple[int, int]:
    """Return a new terminal: our side, non-blocking, and the child's, which is nobody's controlling terminal yet.

    Raises: OSError for want of descriptors or terminals, `NoTerminal` where there is no such device. None is open then.
    """
    flags = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC
    with ExitStack() as undo:
        try:
            master = os.open(MASTER, flags)
            undo.callback(os.close, master)
            fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 0))
            slave = fcntl.ioctl(master, TIOCGPTPEER, flags)
            undo.callback(os.close, slave)
            set_size(master, size)
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            raise NoTerminal(error.errno, os.strerror(error.errno or errno.ENOTSUP)) from error
        os.set_blocking(master, False)
        undo.pop_all()
    return master, slave


def controlling_name(slave: int) -> bytes:
    """Return the name by which a session leader opens the terminal to have it control its session.

    Raises: NoTerminal if the terminal has no name here.
    """
    try:
        return os.fsencode(os.ttyname(slave))
    except OSError as error:
        raise NoTerminal(error.errno, os.strerror(error.errno or errno.ENODEV)) from error


def open_ends(size: Terminal, ours: dict[int, int], theirs: dict[int, int], *, writable: bool) -> None:
    """Open the child's terminal as `theirs[1]`, and our side as `ours[1]` and, to be written to, as `ours[0]`."""
    ours[1], theirs[1] = open_pair(size)
    if writable:
        ours[0] = fcntl.fcntl(ours[1], fcntl.F_DUPFD_CLOEXEC, 3)


class TerminalReader(Reader):
    """Reads what comes out of a terminal; EIO is its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: PipeOwner, fd: int, descriptor: int) -> None:
        super().__init__(loop, owner, fd, descriptor)
        self._capacity = READ_BYTES
        self._may_grow = False

    def inode(self) -> int | None:
        """Return None: a terminal can be opened by its name, so holding it makes nobody a member of the tree."""
        return None

    @property
    def device(self) -> str | None:
        """The name by which `/proc` shows the other side; None once closed."""
        if self.is_closing():
            return None
        return f"/dev/pts/{struct.unpack('i', fcntl.ioctl(self._descriptor, TIOCGPTN, bytes(4)))[0]}"

    def resize(self, size: Terminal) -> None:
        """Do `set_size`; nothing once closed."""
        if not self.is_closing():
            set_size(self._descriptor, size)


class TerminalWriter(Writer):
    """Types into a terminal. Its end of file is a key, after which more can be typed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: WriteOwner, descriptor: int) -> None:
        super().__init__(loop, owner, descriptor)
        self._within_line = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """See `Writer.write`."""
        if data:
            self._within_line = bytes(data[-1:]) not in {b"\n", b"\r", END_OF_FILE}
        super().write(data)

    def write_eof(self) -> None:
        """Type an end of file behind what was accepted: twice if a line is unfinished, which the first one submits.

        A program that reads keys one by one takes it for a key. May be called again, and types it again.
        """
        self.write(END_OF_FILE * 2 if self._within_line else END_OF_FILE)

    def close(self) -> None:
        """Stop typing once everything accepted was typed; the terminal stays open."""
        super().write_eof()
