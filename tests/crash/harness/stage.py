"""What a scenario has to play with, and what its audience knows of it afterwards."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from supervisor import Limits, Supervisor
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import sanitise_text
from supervisor.storage import Files, LocalStorage
from supervisor.testing import FakeChild, FakeChildren

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from supervisor import Job, Receipt

SECRET: Final = "Vq7Zt2mXw9LcR4bKd8Hs3NfJ6yPgT5uE"
HALVES: Final = (SECRET[: len(SECRET) // 2].encode(), SECRET[len(SECRET) // 2 :].encode())
SECRETS: Final = {"PLANTED_TOKEN": SECRET}
BEGINNING: Final = f"first line \x1b[1mbold\x1b[0m\nkey {SECRET[:19]}"
END: Final = f"{SECRET[19:]} and\nlast line é\n"
"""Two chunks of output, of which neither has the secret and both together have it."""
COMPLAINT: Final = f"warning: {SECRET}\n"
FILLING: Final = "sixteen letters\n" * 1120
"""17.5 KiB."""


def shown(text: str) -> bytes:
    """Return the representation of an output."""
    return sanitise_text(text, NeedleSet.build(SECRETS)).encode()


OUTPUTS: Final = tuple(shown(text) for text in (BEGINNING + END, COMPLAINT, FILLING))
"""Everything that any stream of any scenario may hold, and each of its beginnings."""


@dataclass
class Stage:
    """One run of a scenario."""

    directory: Path
    files: Files
    journal: int
    """A descriptor outside of the conversation: what was told there is what the world has seen."""
    mutant: str = ""
    """The step of the recipe that is left out."""
    prepared: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was found out while the conversation was prepared."""
    children: FakeChildren = field(default_factory=FakeChildren)

    def tell(self, event: str, **facts: object) -> None:
        """Tell the world, in one write: what was told has happened before the next call."""
        os.write(self.journal, json.dumps({"event": event, **facts}).encode() + b"\n")

    def supervisor(self, *, limits: Limits | None = None, real: bool = False) -> Supervisor:
        """Return a supervisor on this disk that searches for the secret; its children are `real` or fake."""
        return Supervisor(
            self.directory,
            limits=limits,
            secrets=SECRETS,
            spawn=None if real else self.children.spawn,
            storage=LocalStorage(self.files),
            redaction="none" if self.mutant == "secrets-kept" else "default",
        )

    async def job(self, supervisor: Supervisor, script: Callable[[FakeChild], Awaitable[None]], **options: Any) -> Job:  # noqa: ANN401 - as `Supervisor.start`
        """Start a fake child whose command and label have the secret."""
        self.children.expect(script=script)
        job = await supervisor.start(["tool", SECRET], label=f"with {SECRET}", **options)
        self.tell("started", capture_id=job.capture_id, calls=len(getattr(self.files, "counted", ())))
        return job

    async def end(self, job: Job) -> Receipt:
        """Wait for a job, and tell its receipt."""
        receipt = await job.wait()
        self.tell("receipt", capture_id=job.capture_id, receipt=receipt.to_json().decode())
        return receipt


async def speak(child: FakeChild) -> None:
    """Write both chunks and a complaint, and exit 0."""
    await child.feed(BEGINNING.encode())
    await child.feed(COMPLAINT.encode(), "stderr")
    await child.feed(END.encode())
    child.exit(0)


async def fill(child: FakeChild) -> None:
    """Write 17.5 KiB, and exit 0."""
    await child.feed(FILLING.encode())
    child.exit(0)


async def nod(child: FakeChild) -> None:
    """Exit 0."""
    child.exit(0)
