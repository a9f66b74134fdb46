"""A command that cannot start: one typed error with a settled receipt, and nothing left behind (F6)."""

from __future__ import annotations

import errno
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import SpawnError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Conversation


@pytest.fixture
def wreck(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes a file which may be run or not."""

    def make(name: str, content: bytes, mode: int = 0o700) -> str:
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(mode)
        return str(path)

    return make


async def assert_not_started(
    conversation: Conversation,
    command: list[str],
    fault: str,
    number: int,
    **options: Any,  # noqa: ANN401
) -> SpawnError:
    """Check that neither `run` nor `start` can start the command, and all that holds of the error; return it."""
    async with Supervisor(conversation.path) as supervisor:
        for attempt in (supervisor.run, supervisor.start):
            with pytest.raises(SpawnError) as caught:
                await attempt(command, **options)
            error = caught.value
            assert (error.fault, error.errno) == (fault, number)
            receipt = error.receipt
            assert receipt is not None
            assert receipt.process is not None
            assert (receipt.process.state, receipt.process.pid, receipt.process.code) == ("not-started", None, None)
            assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "not-started")
            assert receipt.process.error == str(error)
            assert not receipt.ok
            assert conversation.captures() == []
        assert supervisor.jobs == ()
        after = await supervisor.run(["echo", "still here"])
    assert after.stdout == "still here\n"
    assert conversation.files() == set()
    return error


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["no-such-program-anywhere", "/no/such/program"])
async def test_a_missing_program(conversation: Conversation, name: str) -> None:
    """Along PATH or by path."""
    error = await assert_not_started(conversation, [name, "argument"], "program", errno.ENOENT)
    assert error.subject == name


@pytest.mark.asyncio
async def test_a_file_that_may_not_be_executed(conversation: Conversation, wreck: Callable[..., str]) -> None:
    """It exists, so it is not the program that is missing."""
    path = wreck("plain", b"#!/bin/sh\n", 0o600)
    error = await assert_not_started(conversation, [path], "permission", errno.EACCES)
    assert error.subject == path


@pytest.mark.asyncio
async def test_a_format_that_cannot_be_executed(conversation: Conversation, wreck: Callable[..., str]) -> None:
    """It is never handed to a shell in silence (facts on uvloop's own spawn)."""
    path = wreck("noise", b"\x01\x02\x03 not a program")
    error = await assert_not_started(conversation, [path], "format", errno.ENOEXEC)
    assert error.subject == path


@pytest.mark.asyncio
async def test_a_missing_interpreter(conversation: Conversation, wreck: Callable[..., str]) -> None:
    """ENOENT of a program that is there is its interpreter's."""
    path = wreck("script", b"#!/no/such/interpreter\n")
    error = await assert_not_started(conversation, [path], "interpreter", errno.ENOENT)
    assert error.subject == "/no/such/interpreter"


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["missing", "file"])
async def test_a_directory_that_cannot_be_entered(
    conversation: Conversation, wreck: Callable[..., str], tmp_path: Path, kind: str
) -> None:
    """The subject is the directory, not the program."""
    cwd = str(tmp_path / "missing") if kind == "missing" else wreck("file", b"")
    number = errno.ENOENT if kind == "missing" else errno.ENOTDIR
    error = await assert_not_started(conversation, ["true"], "cwd", number, cwd=cwd)
    assert error.subject == cwd


@pytest.mark.asyncio
async def test_arguments_that_are_too_long(conversation: Conversation) -> None:
    """No argument's text is in the message, and the receipt still fits (E2BIG, execve(2))."""
    error = await assert_not_started(conversation, ["true", "secretive" * 1_000_000], "arguments", errno.E2BIG)
    assert "secretive" not in str(error)
    assert error.receipt is not None
    assert len(error.receipt.to_json()) <= 64 * 1024


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("command", "options", "kind"),
    [
        pytest.param([], {}, ValueError, id="empty"),
        pytest.param(["echo", "hidden\0text"], {}, ValueError, id="nul-in-argument"),
        pytest.param(["true"], {"cwd": "/tmp\0"}, ValueError, id="nul-in-cwd"),
        pytest.param(["true"], {"env": {"NAME": "hidden\0text"}}, ValueError, id="nul-in-environment"),
        pytest.param("echo hidden", {}, TypeError, id="string-without-shell"),
        pytest.param(["echo"], {"shell": True}, TypeError, id="list-with-shell"),
        pytest.param("  ", {"shell": True}, ValueError, id="blank-shell-command"),
    ],
)
async def test_the_callers_mistakes_are_raised_at_once(
    conversation: Conversation,
    command: list[str] | str,
    options: dict[str, Any],
    kind: type[Exception],
) -> None:
    """Nothing is started and no job exists; no text of the command is in the message (design, "The public API")."""
    async with Supervisor(conversation.path) as supervisor:
        for attempt in (supervisor.run, supervisor.start):
            with pytest.raises(kind) as caught:
                await attempt(command, **options)
            assert "hidden" not in str(caught.value)
        assert supervisor.jobs == ()
        assert conversation.captures() == []


def test_without_descriptors_nothing_starts_and_nothing_leaks(
    conversation: Conversation, host_program: Callable[..., list[str]], loop_module: str
) -> None:
    """EMFILE is the world's fault, is typed, and is over once there are descriptors again."""
    host = subprocess.run(
        host_program("starved", loop_module, str(conversation.path)), check=True, capture_output=True, timeout=60
    )
    told = json.loads(host.stdout)
    assert told["errors"] == [["resources", errno.EMFILE, "not-started"]] * len(told["errors"])
    assert len(told["errors"]) >= 5  # a pipe has two ends, and a child has two pipes and a null device
    assert told["leaked"] == 0
    assert told["after"] == "still here\n"
    assert conversation.files() == set()
    assert conversation.captures() == []
