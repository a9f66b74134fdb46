"""`pipestatus=True`: the codes of a pipeline's members, beside a command that is the same without (contract A4, A5)."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import ChildLimits, SpawnError, Supervisor
from supervisor.pipelines import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.sansio.receipt import ProcessFacts, Receipt

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here"),
]

SHAPES: Final[dict[str, tuple[int, ...] | None]] = {
    # Ways of a pipeline to end.
    "false | true | false": (1, 0, 1),
    "true | (exit 3)": (0, 3),
    "(exit 5) | (exit 0) | cat": (5, 0, 0),
    "set -o pipefail; (exit 4) | true": (4, 0),
    "! true | false": (0, 1),
    "yes | head -n 1": (141, 0),
    "true | sh -c 'kill -TERM $$'": (0, 143),
    "true | sh -c 'kill -KILL $$' 2>&1": (0, 137),
    "f() { exit 7; }; false | f": (1, 7),
    "shopt -s lastpipe; true | false": (0, 1),
    "set -e; true | false; echo no": (0, 1),
    "false | true; exit ${PIPESTATUS[0]}": (1, 0),
    "cat <<E | (cat; exit 6)\ntext\nE": (0, 6),
    "cat <<E\nno end": (0,),
    # What is no pipeline is one member.
    "true": (0,),
    "(exit 9)": (9,),
    "false | true &": (0,),
    "f() { false | true; }; f": (0,),
    # What could be disturbed.
    "echo $# $0 $- $BASH_EXECUTION_STRING $BASH_ENV; env | grep -c BASH_ENV": (0, 1),
    "ls /proc/self/fd | wc -l": (0, 0),
    "set -x; true | false": (0, 1),
    "trap 'echo debug' DEBUG; set -T; false | true": (1, 0),
    "trap 'echo error' ERR; true | false": (0, 1),
    "IFS=1; false | true": (1, 0),
    "declare -r IFS; set -fuC; false | true": (1, 0),
    "printf() { echo mine; }; trap() { echo mine; }; false | true": (1, 0),
    "exec 1>&- 2>&- 10>/dev/null; false | true": (1, 0),
    "coproc cat; false | true": (1, 0),
    "nonexistent_program | true": (127, 0),
    # What is unknown.
    "false | true; exit 3": None,
    "exit 3": None,
    "exec false": None,
    "exec nonexistent_program": None,
    "false | true; echo ${unset?message}": None,
    "kill -TERM $$; true | true": None,
    "kill -KILL $$; true | true": None,
    "trap 'exit 9' TERM; kill $$; true | false": None,
    "trap 'echo mine' EXIT; false | true": None,
    "trap 'exit 8' EXIT; false | true": None,
    "false | true; trap - EXIT": None,
    "ulimit -f 0; false | true": None,
    "set -n; false | true": None,
    "false | true; builtin() { echo mine; }": None,
    # What bash refuses is one member with bash's own code.
    "false | true\nif": (2,),
    "return 4": (2,),
    "echo $((1 / 0))": (1,),
}
"""What is told of each."""


def facts(receipt: Receipt) -> ProcessFacts:
    """Return the process's part."""
    assert receipt.process is not None
    return receipt.process


def shown(receipt: Receipt) -> list[str]:
    """Return the lines of stderr, in an order: with -x the members of a pipeline trace in any; and without pids."""
    return sorted(re.sub("[0-9]+ (Killed|Done)", "", line).strip() for line in receipt.stderr.splitlines())


@pytest.mark.parametrize("number", range(4))
async def test_a_command_is_the_same_with_and_without_it(number: int) -> None:
    """The same code or signal, and the same output, byte for byte; only the codes of the members are added."""
    async with Supervisor(redaction="none") as supervisor:

        async def both(command: str) -> None:
            plain = await supervisor.run(command, shell=True)
            told = await supervisor.run(command, shell=True, pipestatus=True)
            assert (command, facts(told).pipestatus) == (command, SHAPES[command])
            assert facts(plain).pipestatus is None
            assert (facts(told).code, facts(told).signal) == (facts(plain).code, facts(plain).signal), command
            assert shown(told) == shown(plain), command
            assert told.stdout == plain.stdout
            assert UNAVAILABLE not in told.limitations

        await asyncio.gather(*map(both, list(SHAPES)[number::4]))


async def test_a_last_command_that_a_signal_ends_is_told_by_its_number() -> None:
    """The one difference: bash waits for it, where it would have become it. It has that code in any shell."""
    command = "sh -c 'kill -TERM $$'"
    async with Supervisor() as supervisor:
        plain = await supervisor.run(command, shell=True)
        told = await supervisor.run(command, shell=True, pipestatus=True)
    assert (facts(plain).code, facts(plain).signal) == (None, signal.SIGTERM)
    assert (facts(told).code, facts(told).signal, facts(told).pipestatus) == (143, None, (143,))


async def test_a_command_that_is_ended_ends_as_without_it(first_text: Callable[..., Any]) -> None:
    """TERM reaches bash at once, and no codes are told."""
    async with Supervisor() as supervisor:
        job = await supervisor.start("echo ready; sleep 1000 | cat", shell=True, pipestatus=True, window_bytes=64)
        await first_text(job)
        receipt = await job.terminate()
    assert (facts(receipt).signal, facts(receipt).forced, facts(receipt).pipestatus) == (signal.SIGTERM, False, None)
    assert "pipestatus" not in receipt.render()


async def test_nothing_that_the_command_prints_is_taken_for_it() -> None:
    """On either stream, and on any descriptor that it has."""
    command = "for fd in /proc/$$/fd/*; do echo '9,9,end,' >&${fd##*/}; done 2>/dev/null; echo '9,9,end,'; true | false"
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(command, shell=True, pipestatus=True)
    assert facts(receipt).pipestatus == (0, 1)
    assert "pipe status: 0 1\n" in receipt.render()


async def test_a_long_pipeline_is_not_told() -> None:
    """A receipt is bounded."""
    async with Supervisor() as supervisor:
        receipt = await supervisor.run(" | ".join(["true"] * 129), shell=True, pipestatus=True)
        shorter = await supervisor.run(" | ".join(["true"] * 128), shell=True, pipestatus=True)
    assert (facts(receipt).code, facts(receipt).pipestatus) == (0, None)
    assert facts(shorter).pipestatus == (0,) * 128


async def test_a_file_that_every_bash_reads_first_is_still_read(tmp_path: os.PathLike[str]) -> None:
    """`BASH_ENV` names it, with expansions; the command finds the variable as it was given."""
    first = os.path.join(tmp_path, "first $file.sh")  # noqa: PTH118 -- a name for a shell
    with open(first, "w") as file:  # noqa: PTH123, ASYNC230 -- a line
        file.write("FIRST=$((FIRST + 1)); echo first $#\n")
    env = {**os.environ, "BASH_ENV": f"{tmp_path}/first ${{DOLLAR}}file.sh", "DOLLAR": "$"}
    command = 'echo "$FIRST $BASH_ENV"; bash -c "true"; false | true'
    async with Supervisor(redaction="none") as supervisor:
        plain = await supervisor.run(command, shell=True, env=env)
        told = await supervisor.run(command, shell=True, env=env, pipestatus=True)
        missing = await supervisor.run(command, shell=True, env={**env, "BASH_ENV": "/nowhere"}, pipestatus=True)
    assert plain.stdout.startswith("first 0\n1 ")
    assert (told.stdout, told.stderr, facts(told).pipestatus) == (plain.stdout, "", (1, 0))
    assert (missing.stdout, missing.stderr, facts(missing).pipestatus) == (" /nowhere\n", "", (1, 0))


@pytest.mark.parametrize("why", ["sh", "user"])
async def test_where_there_is_no_way_the_command_runs_without(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bash, or another user, to whom the supervisor's entries in `/proc` are closed: a limitation says it."""
    limits = None
    if why == "sh":
        monkeypatch.setattr(shutil, "which", dict[str, str]().get)
    else:
        limits = ChildLimits(group=65534)
        if os.geteuid() != 0:
            pytest.skip("only root can change the groups")
    async with Supervisor() as supervisor:
        receipt = await supervisor.run("true | false", shell=True, pipestatus=True, child_limits=limits)
    assert (facts(receipt).code, facts(receipt).pipestatus, receipt.stderr) == (1, None, "")
    assert receipt.limitations == (UNAVAILABLE,)
    assert "codes of the pipeline's members" in receipt.render()


async def test_a_command_that_cannot_start_leaves_no_file() -> None:
    """Its report is closed with it; tests/conftest.py counts the descriptors."""
    async with Supervisor() as supervisor:
        with pytest.raises(SpawnError) as caught:
            await supervisor.run("true", shell=True, pipestatus=True, cwd="/nowhere")
    assert caught.value.receipt is not None
    assert facts(caught.value.receipt).pipestatus is None


async def test_a_list_has_no_pipeline() -> None:
    """Told at once."""
    async with Supervisor() as supervisor:
        with pytest.raises(ValueError, match="pipestatus needs shell=True"):
            await supervisor.run(["true"], pipestatus=True)
