"""What a command finds in its environment, and what is on record of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from supervisor import Supervisor

if TYPE_CHECKING:
    from conftest import Conversation

pytestmark = pytest.mark.asyncio


async def test_a_command_gets_what_its_policy_says_and_the_record_has_names_only(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A credential of the host is not there, one that was given is, and no value is written down (C5)."""
    monkeypatch.setenv("HOST_TOKEN", "hunter2-hunter2")
    monkeypatch.setenv("FORCE_COLOR", "1")
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(
            "echo ${HOST_TOKEN-gone} ${FORCE_COLOR-gone} $PAGER ${#GIVEN_TOKEN} ${SPOOLVISOR_JOB:+marked}",
            shell=True,
            env_policy="scrubbed",
            env={"GIVEN_TOKEN": "hunter3-hunter3"},
            noninteractive=True,
        )
        receipt = await job.wait()
    assert receipt.stdout == "gone gone cat 15 marked\n"
    text = (conversation.captures_of(receipt) / "launch.json").read_text()
    record = json.loads(text)["environment"]
    assert record["policy"] == "scrubbed"
    assert {"GIVEN_TOKEN", "PAGER"} <= set(record["set"])
    assert {"HOST_TOKEN", "FORCE_COLOR"} <= set(record["removed"])
    assert "hunter" not in text


async def test_an_environment_that_is_given_is_all_there_is(conversation: Conversation) -> None:
    """But for the mark of the job, by which its processes are found (F3)."""
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run(["/usr/bin/env"], env={"A": "1"})
    assert [line.partition("=")[0] for line in receipt.stdout.splitlines()] == ["A", "SPOOLVISOR_JOB"]
