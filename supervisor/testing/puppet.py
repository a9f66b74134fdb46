"""The program of `RealChild`: a real process that does what it is told through a socket.

Run by its path, not as a module: it needs nothing but the standard library, and is up in a few milliseconds. Each line
from the socket is one order, a JSON object; each is answered by one line when it has been done. A signal that it was
told to ignore is reported by a line of its own. When the socket ends, so does the program, in every process of it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any, Final

DESCRIPTORS: Final = {"stdout": 1, "stderr": 2}
READ_BYTES: Final = 64 * 1024


class Puppet:
    """One process of the program."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def tell(self, **facts: object) -> None:
        """Send a line."""
        self._control.sendall(json.dumps(facts).encode() + b"\n")

    def obey(self) -> None:
        """Do as told until the socket ends."""
        with self._control.makefile("rb") as orders:
            for line in orders:
                order: dict[str, Any] = json.loads(line)
                do = getattr(self, order.pop("do"))
                self.tell(done=do(**order))

    def feed(self, stream: str, data: str) -> None:
        """Write, all of it."""
        left = memoryview(bytes.fromhex(data))
        while left:
            left = left[os.write(DESCRIPTORS[stream], left) :]

    def close(self, stream: str) -> None:
        """Close an output."""
        os.close(DESCRIPTORS[stream])

    def read(self, count: int | None) -> str:
        """Read so much of stdin, less only at its end; None: all up to there."""
        data = b""
        while count is None or len(data) < count:
            more = os.read(0, READ_BYTES if count is None else count - len(data))
            if not more:
                break
            data += more
        return data.hex()

    def ignore(self, numbers: list[int]) -> None:
        """Report these signals instead of ending by them. A line is one system call, so none can cut another."""
        for number in numbers:
            signal.signal(number, lambda taken, _: self.tell(signal=int(taken)))

    def exit(self, code: int, number: int | None, *, hold_pipes: bool) -> None:
        """End; a forked process that holds the pipes goes on obeying."""
        if hold_pipes and os.fork() == 0:
            return
        if not hold_pipes:
            self.tell(done=None)
        if number is not None:
            if number not in {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(code)


def main() -> None:
    """Connect to the socket whose path is the argument, and obey."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(sys.argv[1])
        Puppet(control).obey()
        os._exit(0)  # nothing may be flushed: 1 or 2 may be closed; and the socket's end says that it is over


if __name__ == "__main__":
    main()
