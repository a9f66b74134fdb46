"""Limits on a child: each read back from the child itself, and what the system refuses is an error that names it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest

from supervisor import ChildLimits, SpawnError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


async def printed(command: str, limits: ChildLimits) -> list[str]:
    """Return the words that a shell command prints under limits."""
    async with Supervisor() as supervisor:
        receipt = (await supervisor.run(command, shell=True, child_limits=limits)).check()
        assert receipt.stderr == ""
        return receipt.stdout.split()


@pytest.mark.parametrize("name", ["nofile", "core", "fsize", "cpu", "stack", "data", "as", "nproc"])
async def test_resource_limits_are_the_childs(name: str) -> None:
    """As the kernel shows them: seconds, bytes, counts; soft and hard."""
    titles = {
        "nofile": "Max open files",
        "core": "Max core file size",
        "fsize": "Max file size",
        "cpu": "Max cpu time",
        "stack": "Max stack size",
        "data": "Max data size",
        "as": "Max address space",
        "nproc": "Max processes",
    }
    soft, hard = {"nofile": (50, 60), "nproc": (300, 400), "cpu": (30, 40)}.get(name, (2**27, 2**28))
    limits = ChildLimits(rlimits={name: (soft, hard)})
    words = await printed(f"grep '{titles[name]} ' /proc/self/limits", limits)
    assert words[len(titles[name].split()) :][:2] == [str(soft), str(hard)]


async def test_niceness_oom_score_and_umask_are_the_childs() -> None:
    """And its children's; this process's stay."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    limits = ChildLimits(nice=before + 1, oom_score_adj=700, umask=0o27)
    command = "sh -c 'nice; cat /proc/self/oom_score_adj; umask'"
    assert await printed(command, limits) == [str(before + 1), "700", "0027"]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


@needs_root
async def test_user_and_groups_are_the_childs() -> None:
    """All three user and group numbers, and the supplementary groups."""
    command = "grep -E '^(Uid|Gid|Groups)' /proc/self/status"
    words = await printed(command, ChildLimits(user=65534, group=12345))
    number, group = ["65534"] * 4, ["12345"] * 4
    assert words[:10] == ["Uid:", *number, "Gid:", *group]
    assert "0" not in words[11:]
    assert (await printed(command, ChildLimits(group=12345)))[:10] == ["Uid:", *["0"] * 4, "Gid:", *group]
    unknown = ChildLimits(user=4_000_000_001, group=7, nice=-1)
    assert (await printed("id -u; id -g; id -G; nice", unknown)) == ["4000000001", "7", "7", "-1"]


async def test_to_stay_who_one_is_needs_no_right() -> None:
    """So a program can name its user whether it runs as root or not."""
    assert await printed("id -u", ChildLimits(user=os.getuid())) == [str(os.getuid())]


async def test_everything_else_is_as_without_limits(program: Callable[..., list[str]]) -> None:
    """Argument list, environment, directory, descriptors, signals, standard input, the pid as leader of a session."""
    command = [*program("surroundings"), "", "two words", "\udcff", "é"]
    environment = {"ONE": "1", "LC_CTYPE": "C", "PATH": os.environ["PATH"]}
    async with Supervisor() as supervisor:
        receipts = [
            await supervisor.run(command, env=environment, cwd="/", stdin=b"input", child_limits=limits)
            for limits in (None, ChildLimits(nice=os.getpriority(os.PRIO_PROCESS, 0)))
        ]
    for receipt in receipts:
        assert receipt.check().process is not None
        assert receipt.process is not None
        assert f"leader {receipt.process.pid}" in receipt.stdout
    signals = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    assert await printed(signals, ChildLimits(umask=0o22)) == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16]
    plain, limited = (receipt.stdout.replace(str(receipt.process and receipt.process.pid), "") for receipt in receipts)
    assert plain == limited


@pytest.mark.parametrize(("name", "number"), [("fsize", signal.SIGXFSZ), ("cpu", signal.SIGXCPU)])
async def test_a_limit_that_sends_a_signal_is_an_exit_by_it(conversation: Conversation, name: str, number: int) -> None:
    """It is the system's doing and not ours, so the state is `exited`."""
    script = "exec head -c 5000 /dev/zero >big" if name == "fsize" else "while :; do :; done"
    limits = ChildLimits(rlimits={name: (1, 10), "core": 0})
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(script, shell=True, cwd=conversation.path, child_limits=limits)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.reason) == ("exited", None)
    assert receipt.process.signal == number


async def test_a_refused_limit_is_named_and_nothing_was_started(host_program: Callable[..., list[str]]) -> None:
    """With a settled receipt; in a host without rights, because root is refused next to nothing."""
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    # A root without capabilities can still execute its interpreter, wherever that is.
    rightless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    async with Supervisor() as supervisor:
        receipt = await supervisor.run([*rightless, *host_program("refused_limits", loop)])
    assert receipt.stderr == ""
    assert receipt.check().stdout.splitlines() == [
        "limit nofile EPERM not-started",
        "limit nice EACCES not-started",
        "limit oom_score_adj EACCES not-started",
        "limit user EPERM not-started",
        "limit group EPERM not-started",
    ]


async def test_a_limit_that_nobody_may_have_is_refused_to_root_too(conversation: Conversation) -> None:
    """More descriptors than the kernel has; no capture is left."""
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(SpawnError, match="nofile") as refused:
            await supervisor.start(["true"], child_limits=ChildLimits(rlimits={"nofile": 2**40}))
    assert (refused.value.fault, refused.value.subject, refused.value.errno) == ("limit", "nofile", errno.EPERM)
    assert refused.value.receipt is not None
    assert conversation.captures() == []


async def test_a_command_that_cannot_start_is_told_as_without_limits() -> None:
    """Program, directory, interpreter, format: the words do not depend on the way."""
    limits = ChildLimits(umask=0o22)
    async with Supervisor() as supervisor:
        for command, cwd, fault in (
            (["no-such-program"], None, "program"),
            (["true"], "/no/such/directory", "cwd"),
            (["/etc/passwd"], None, "permission"),
            (["/"], None, "permission"),
        ):
            faults: list[tuple[object, ...]] = []
            for given in (None, limits):
                with pytest.raises(SpawnError) as failed:
                    await supervisor.run(command, cwd=cwd, child_limits=given)
                faults.append((failed.value.fault, failed.value.subject, failed.value.errno, str(failed.value)))
            assert faults[0] == faults[1]
            assert faults[0][0] == fault


@needs_root
async def test_what_another_user_may_not_execute_is_the_permission(conversation: Conversation) -> None:
    """Root could, so it is not for want of an interpreter."""
    program = conversation.path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    async with Supervisor() as supervisor:
        with pytest.raises(SpawnError) as failed:
            await supervisor.run([str(program)], child_limits=ChildLimits(user="nobody"))
    assert (failed.value.fault, failed.value.subject) == ("permission", str(program))


async def test_wrong_limits_are_refused_before_anything_starts() -> None:
    """A mapping is not enough: its names would be checked too late."""
    async with Supervisor() as supervisor:
        with pytest.raises(TypeError, match="child_limits"):
            await supervisor.start(["true"], child_limits={"nice": 1})  # type: ignore[arg-type]
        assert supervisor.jobs == ()


async def test_a_cancelled_start_leaves_nothing() -> None:
    """Neither the trampoline nor the command."""
    async with Supervisor() as supervisor:
        for turns in range(4):
            task = asyncio.create_task(supervisor.start(["sleep", "1000"], child_limits=ChildLimits(umask=0)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_limits_without_a_cgroup_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself, and only what was asked for."""
    monkeypatch.setattr("supervisor.process.cgroup.usable_subtree", lambda _: None)
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(["true"], child_limits=ChildLimits(memory_bytes=2**20, pids=3))
        assert receipt.check().limitations == ("memory-limit-unsupported", "pids-limit-unsupported")
        assert "for want of a cgroup" in receipt.render()
        receipt = await supervisor.run(["true"], child_limits=ChildLimits(pids=3))
        assert receipt.limitations == ("pids-limit-unsupported",)
