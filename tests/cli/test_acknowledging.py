"""A run whose caller has been told of its end is not offered to consumers of the directory's completions [E5]."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor import Supervisor

if TYPE_CHECKING:
    from conftest import CommandLine


async def offered(directory: Path) -> list[str]:
    """Return the labels of the jobs whose ends a supervisor of the directory is told, up to one of its own."""
    labels: list[str] = []
    async with Supervisor(directory) as supervisor:
        await supervisor.start(["true"], label="own")
        async for completion in supervisor.completions():
            labels.append(completion.receipt.label or "")
            await completion.acknowledge()
            if labels[-1] == "own":
                break
    return labels


def test_a_run_that_was_reported_is_not_offered_again(spoolvisor: CommandLine) -> None:
    """Rendered, as JSON, or by its exit code alone; one whose JSON could not be written is."""
    for mode in ((), ("--json",), ("--quiet",)):
        assert spoolvisor("run", *mode, "--label", "told", "--", "sh", "-c", "exit 3").code == 3
    with Path("/dev/full").open("wb") as full:
        spoolvisor("run", "--json", "--label", "untold", "--", "true", stdout=full)
    assert asyncio.run(offered(spoolvisor.kept)) == ["untold", "own"]


def test_an_acknowledgement_that_cannot_be_written_costs_nothing(spoolvisor: CommandLine) -> None:
    """The directory is gone when the run ends: the code is the command's, and nothing is said of it."""
    done = spoolvisor("run", "--", "sh", "-c", f"rm -r {spoolvisor.kept}; echo out; exit 3")
    assert (done.code, done.out) == (3, "out\n")
    assert [line for line in done.errors if line.startswith(("spoolvisor:", "Traceback"))] == []
