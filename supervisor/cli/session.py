"""From a checked command line to an exit code: one supervisor, one kept job, its display and its ending."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from ..errors import SpawnError, StorageError
from ..supervisor import Supervisor
from .codes import SIGNALLED, code_is_the_childs, code_of_receipt, code_of_spawn_error
from .display import Display
from .interruptions import Interruptions
from .place import MadeOnDemand
from .quantities import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..job import Job
    from ..limits import Limits
    from ..request import Command, OptionsDict
    from ..sansio.receipt import Receipt

PATIENCE_SECONDS: Final = 5.0
"""How long a reader of ours may hold up the end of a job that a limit or a signal has ended. One that ended by itself
waits for its reader as any command does, until a signal says otherwise."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run, and how it is kept and shown."""

    command: Command
    options: OptionsDict
    directory: Path | None
    limits: Limits
    durability: Literal["barrier", "none"]
    secrets: Mapping[str, str]
    warnings: tuple[str, ...]
    json: bool
    quiet: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A settled receipt, the exit code that it calls for, and the job unless none was started."""

    receipt: Receipt
    code: int
    job: Job | None


async def run(plan: Plan) -> int:
    """Run the plan's command to its end and return the exit code, once everything is shown or nobody reads it."""
    interruptions = Interruptions()
    display = Display(json=plan.json, quiet=plan.quiet, secrets=plan.secrets)
    try:
        outcome = await _supervise(plan, display, interruptions)
        code = outcome.code
        if not await interruptions.bound(display.shown(), _patience(outcome.receipt, interruptions)):
            display.whole = False
            if interruptions.first is not None and code_is_the_childs(outcome.receipt):
                code = SIGNALLED + interruptions.first
        for remark in _remarks(plan, outcome.receipt):
            display.say(remark)
        patience = _patience(outcome.receipt, interruptions)
        if await interruptions.bound(_last_words(display, outcome.receipt), patience) and display.reported:
            await interruptions.bound(_acknowledge(outcome), PATIENCE_SECONDS)
    finally:
        display.close()
    return code


async def _supervise(plan: Plan, display: Display, interruptions: Interruptions) -> Outcome:
    """Return when the job is settled and the supervisor closed. The output may still be on its way to its reader."""
    storage = MadeOnDemand()
    async with Supervisor(
        plan.directory,
        limits=plan.limits,
        secrets=plan.secrets,
        durability=plan.durability,
        storage=storage,
        guard=True,
    ) as supervisor:
        for warning in plan.warnings:
            display.say(f"warning: {warning}")
        if storage.fault is not None:
            display.say(f"warning: no output will be kept in {str(plan.directory)!r}: {storage.fault}")
        try:
            job = await supervisor.start(plan.command, **plan.options)
        except SpawnError as error:
            outcome = _not_started(plan, display, error)
        else:
            display.follow(job)
            interruptions.attach(job)
            receipt = await job.wait()
            outcome = Outcome(receipt, code_of_receipt(receipt, interruptions.first), job)
            if receipt.capture.state == "unavailable" and storage.fault is None and plan.directory is not None:
                display.say(f"warning: no output was kept: {receipt.capture.reason}")
        interruptions.settled()
    return outcome


def _not_started(plan: Plan, display: Display, error: SpawnError) -> Outcome:
    assert error.receipt is not None
    if not display.renders:
        display.say(f"cannot run {error.subject or plan.command[0]!r}: {error}")
    return Outcome(error.receipt, code_of_spawn_error(error), None)


async def _last_words(display: Display, receipt: Receipt) -> None:
    await display.shown()
    await display.report(receipt)


async def _acknowledge(outcome: Outcome) -> None:
    """Let no consumer of the directory's completions be told what our caller knows by now [E5]."""
    if outcome.job is not None:
        with suppress(StorageError):  # it is offered to one, which can tell what it is
            await outcome.job.acknowledge()


def _patience(receipt: Receipt, interruptions: Interruptions) -> float | None:
    ended_by_us = receipt.process is not None and receipt.process.reason is not None
    return PATIENCE_SECONDS if ended_by_us or interruptions.first is not None else None


def _remarks(plan: Plan, receipt: Receipt) -> Iterable[str]:
    """Yield what must be said of the capture even to who did not ask for a receipt."""
    if any(facts is not None and facts.reason == "conversation-limit" for facts in receipt.streams.values()):
        yield (
            f"the conversation's allowance of {size_text(plan.limits.conversation_bytes)} is used up; "
            "remove captures (rm) or raise --conversation-bytes"
        )
