"""Secrets that are told while commands run, and those that cannot be searched for (C5)."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

SECRET: Final = "hW4zR7pBnY5c" + "J8hF3sD6gA1e"


@pytest.mark.asyncio
async def test_a_value_that_is_added_is_found_in_live_jobs_and_in_later_ones(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """From the moment on, and what a stream still holds of it included; what was decided before stays."""
    async with Supervisor(conversation.path, secrets={"early": SECRET[:12]}) as supervisor:
        jobs = [await supervisor.start(["cat"], stdin=PIPE) for _ in range(2)]
        for job in jobs:
            await job.write(f"before {SECRET[::-1]}\nvalue {SECRET[:8]}".encode())
            await until(lambda job=job: job.receipt.streams["stdout"].held == 8)
        supervisor.add_secret("late", SECRET)
        supervisor.add_secret("reversed", SECRET[::-1])
        for job in jobs:
            await job.write(f"{SECRET[8:]}\nafter {SECRET[::-1]}\n".encode())
            await job.write_eof()
            receipt = await job.wait()
            text = f"before {SECRET[::-1]}\nvalue [REDACTED:early]\nafter [REDACTED:reversed]\n"
            assert conversation.text(receipt) == text.encode()
        receipt = await supervisor.run(["echo", SECRET], label=SECRET)
    assert (receipt.stdout, receipt.label) == ("[REDACTED:early]\n", "[REDACTED:early]")
    assert conversation.holding(SECRET.encode()) == []


@pytest.mark.asyncio
async def test_a_job_that_is_just_being_started_knows_it_too(conversation: Conversation) -> None:
    """Its streams are made from what is known then."""
    async with Supervisor(conversation.path) as supervisor:
        running = asyncio.create_task(supervisor.run(["echo", SECRET], env={"PATH": "/bin:/usr/bin", "X": "y"}))
        await asyncio.sleep(0)
        supervisor.add_secret("just", SECRET)
        receipt = await running
    assert receipt.stdout == "[REDACTED:just]\n"


@pytest.mark.asyncio
async def test_a_second_value_of_a_name_is_added_and_the_same_one_changes_nothing() -> None:
    """A rotated token: both may be printed."""
    async with Supervisor(secrets={"token": SECRET}) as supervisor:
        supervisor.add_secret("token", SECRET)
        supervisor.add_secret("token", SECRET[::-1])
        receipt = await supervisor.run(["echo", SECRET, SECRET[::-1]])
    assert receipt.stdout == "[REDACTED:token] [REDACTED:token]\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("value", ["4711", "changeme", "xxxxxxxxxxxx", "/usr/local/bin"])
async def test_a_value_that_cannot_be_searched_for_is_told_without_showing_it(value: str) -> None:
    """At the construction and when it is added, to whoever called, and in each receipt by its name."""
    with pytest.warns(UserWarning, match="PIN: ") as told:
        made = Supervisor(secrets={"PIN": value})
    async with made as supervisor:
        with pytest.warns(UserWarning, match="OTHER: ") as told_later:
            supervisor.add_secret("OTHER", value)
        receipt = await supervisor.run(["echo", "nothing"])
    for warning in (*told, *told_later):
        assert value not in str(warning.message)
        assert warning.filename == __file__
    assert receipt.limitations == ("secret-not-searched:PIN", "secret-not-searched:OTHER")


@pytest.mark.asyncio
async def test_a_filter_that_makes_an_exception_of_the_warning_leaves_the_secret_known() -> None:
    """Of a long value the first part is searched for all the same."""
    value = SECRET + "x y" * 8000
    async with Supervisor() as supervisor:
        with pytest.raises(UserWarning, match="LONG: only the first"):
            supervisor.add_secret("LONG", value)
        receipt = await supervisor.run(["printf", value[:4000]])
    assert SECRET not in receipt.stdout


@pytest.mark.asyncio
async def test_variables_that_cannot_be_searched_for_are_named_in_receipts_once_and_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are the environment's, so nobody is warned; a receipt's size is bounded."""
    monkeypatch.setenv("DB_PASSWORD", "4711")
    environment = {"PATH": "/bin:/usr/bin", "DB_PASSWORD": "0815", **{f"T{n}_TOKEN": "x" for n in range(40)}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with Supervisor() as supervisor:
            receipt = await supervisor.run(["true"], env=environment)
        async with Supervisor(redaction="none", secrets={"PIN": "4711"}) as supervisor:
            supervisor.add_secret("PIN2", "4712")
            silent = await supervisor.run(["true"], env=environment)
    assert receipt.limitations == (
        "secret-not-searched:DB_PASSWORD",
        *(f"secret-not-searched:T{n}_TOKEN" for n in range(15)),
    )
    assert silent.limitations == ()
