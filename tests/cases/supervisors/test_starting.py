"""What a child gets from us at its start, and what is said when it cannot start (F6, F7)."""

# ruff: noqa: ASYNC221, ASYNC240 - nothing else is on a test's loop
from __future__ import annotations

import errno
import os
import pwd
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import ChildLimits, SpawnError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

TERM_BIT = 1 << (signal.SIGTERM - 1)


@pytest.fixture
def blocked_term() -> Iterator[None]:
    """Block SIGTERM in this thread, as a host that fetches it with sigwait(3) does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def test_h5_056_a_program_that_is_still_written_is_a_typed_error(
    conversation: Conversation, tmp_path: Path
) -> None:
    """H5-056 (golang/go#22315): ETXTBSY of a just-written script, which a shell would report as an exit code."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o700)
    async with Supervisor(conversation.path) as supervisor:
        with script.open("ab"), pytest.raises(SpawnError) as caught:
            await supervisor.run([script])
        after = await supervisor.run([script])
    assert caught.value.errno == errno.ETXTBSY
    assert caught.value.receipt is not None
    assert caught.value.receipt.process is not None
    assert (caught.value.receipt.process.state, caught.value.receipt.process.code) == ("not-started", None)
    assert after.stdout == "ran\n"


@pytest.mark.usefixtures("blocked_term")
async def test_h5_057_a_blocked_term_of_the_hosts_is_none_of_the_childs(
    conversation: Conversation, first_text: Callable[..., Any]
) -> None:
    """H5-057 (ralphlange/procServ#48): the mask was inherited, so that every stop needed KILL."""
    async with Supervisor(conversation.path) as supervisor:
        mask = await supervisor.run(["grep", "SigBlk", "/proc/self/status"])
        job = await supervisor.start(["sh", "-c", "echo ready; exec sleep 60"], kill_after=60.0, window_bytes=1024)
        await first_text(job)
        receipt = await job.terminate()
    assert int(mask.stdout.split()[1], 16) == 0
    assert receipt.process is not None
    assert (receipt.process.signal, receipt.process.forced) == (signal.SIGTERM, False)


async def test_h5_058_sigpipe_ends_a_writer_whose_reader_has_left(conversation: Conversation) -> None:
    """H5-058 (netdata/netdata#23751): Python ignores SIGPIPE; a child that inherits that runs on for ever."""
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("{ yes; echo $? >&2; } | head -n 1", shell=True)
    assert (receipt.stdout, receipt.stderr) == ("y\n", "141\n")


@pytest.mark.parametrize("missing", ["cwd", "program", "interpreter"])
async def test_h5_060_an_error_says_what_is_missing(conversation: Conversation, tmp_path: Path, missing: str) -> None:
    """H5-060 (amoffat/sh#202): ENOENT of three kinds; a half-forked child once even went on with our code."""
    absent = str(tmp_path / "absent")
    script = tmp_path / "script"
    script.write_text(f"#!{absent}\n")
    script.chmod(0o700)
    command = {"cwd": ["touch", "made"], "program": [absent], "interpreter": [str(script)]}[missing]
    before = set(tmp_path.rglob("*"))
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(SpawnError) as caught:
            await supervisor.run(command, cwd=absent if missing == "cwd" else tmp_path)
    assert (caught.value.fault, caught.value.errno, caught.value.subject) == (missing, errno.ENOENT, absent)
    assert caught.value.receipt is not None
    assert caught.value.receipt.process is not None
    assert caught.value.receipt.process.code is None
    assert {path for path in set(tmp_path.rglob("*")) - before if path.is_file()} == set()


async def test_h5_065_a_child_gets_what_was_asked_for(conversation: Conversation) -> None:
    """H5-065 (agronholm/anyio#1209): `extra_groups` was ignored in silence; here each option is read back."""
    limits = ChildLimits(
        rlimits={"nofile": (100, 200), "core": 0},
        nice=os.nice(0) + 3,
        oom_score_adj=500,
        umask=0o027,
        user="nobody" if os.geteuid() == 0 else None,
    )
    script = (
        "cat /proc/$$/status /proc/$$/oom_score_adj; nice; ulimit -Sn; ulimit -Hn; ulimit -c; "
        "pwd; ps -o sid= -p $$; echo $$ $VALUE"
    )
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(
            ["bash", "-c", script], child_limits=limits, cwd="/", env={"VALUE": "given", "PATH": os.defpath}
        )
    text = receipt.stdout
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert status["Umask"] == "0027"
    rest = text.splitlines()[len(status) :]
    pid = status["Pid"]
    assert (rest[0], rest[1]) == ("500", str(os.nice(0) + 3))
    assert rest[2:5] == ["100", "200", "0"]
    assert [rest[5], rest[6].strip(), rest[7]] == ["/", pid, f"{pid} given"]
    if limits.user is not None:
        wanted = subprocess.run(["id", "-G", "nobody"], check=True, capture_output=True, text=True).stdout.split()
        assert status["Groups"].split() == wanted
        assert set(status["Uid"].split()) == {str(pwd.getpwnam("nobody").pw_uid)}
        assert set(status["Gid"].split()) == {wanted[0]}
