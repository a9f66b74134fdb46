"""How a command with limits is started: by a process that is told by a socket (contract F6, F7)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from supervisor.process import limited
from supervisor.process.childlimits import ChildLimits, Refused
from supervisor.process.launch import Launch
from supervisor.sansio.membership import with_mark

LAUNCH = Launch(("true", "argument"), env={"ONLY": "this"}, child_limits=ChildLimits(umask=0))


def test_the_trampoline_has_the_hosts_environment_and_nothing_of_the_command() -> None:
    """It may need a variable to start that the command is not to have; and arguments are seen by everybody."""
    seen: list[Launch] = []

    def start(launch: Launch, kept: int) -> int:
        seen.append(launch)
        assert kept > 2
        raise OSError(errno.EAGAIN, "none")

    with pytest.raises(OSError, match="none"):
        limited.create(LAUNCH, None, start)
    assert seen[0].environment() == with_mark(os.environ, LAUNCH.mark)
    assert seen[0].mark == LAUNCH.mark
    assert seen[0].child_limits is None
    assert "argument" not in seen[0].argv


@pytest.mark.parametrize("command", [["true"], ["cat"]])
def test_a_trampoline_that_tells_nothing_is_no_start(command: list[str]) -> None:
    """Something else ran in its place, whether it read its orders or not."""

    def start(_: Launch, kept: int) -> int:
        process = subprocess.Popen(command, stdin=kept, stdout=subprocess.DEVNULL)
        pid, process.returncode = process.pid, 0
        return pid

    with pytest.raises(Refused) as refused:
        limited.create(LAUNCH, None, start)
    assert (refused.value.limit, refused.value.errno) == ("trampoline", errno.EIO)


def test_without_an_interpreter_there_are_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a program that embeds one; it is said, and nothing is started."""
    for executable, number in (("", errno.ENOENT), ("/etc/passwd", errno.EACCES)):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(Refused) as refused:
            limited.create(LAUNCH, None, lambda *_: 0)
        assert (refused.value.limit, refused.value.errno) == ("trampoline", number)
