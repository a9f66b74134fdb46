"""What is shown of one job: its output while it comes, then what has to be said, then its receipt."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from .messages import message
from .screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..job import Job
    from ..sansio.receipt import Receipt
    from ..sansio.words import StreamName


class Display:
    """Our stdout and stderr for the time of one job. Nothing here waits for a reader but `shown` and `report`."""

    def __init__(self, *, json: bool, quiet: bool, secrets: Mapping[str, str]) -> None:
        self.whole = True
        """Whether everything that came was shown."""
        self.reported = True
        """Whether the caller was told how the job ended, as far as it wanted to be."""
        self._json: Final = json
        self._quiet: Final = quiet
        self._secrets: Final = secrets
        self._out: Final = Screen(1)
        # One terminal or pipe under both numbers is one screen: only then does what follows begin on a fresh line.
        self._err: Final = self._out if os.path.sameopenfile(1, 2) else Screen(2)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def renders(self) -> bool:
        """Whether the receipt is shown to a person."""
        return not (self._json or self._quiet)

    def follow(self, job: Job) -> None:
        """Begin to show the job's output, each stream on its own descriptor; with `json` stdout is for the receipt."""
        if not self._quiet:
            out = self._err if self._json else self._out
            self._tasks.append(asyncio.ensure_future(self._show(job, "stdout", out)))
            self._tasks.append(asyncio.ensure_future(self._show(job, "stderr", self._err)))

    def say(self, text: str) -> None:
        """Say something in our own name, on stderr, also when quiet. Returns at once."""
        self._tasks.append(asyncio.ensure_future(self._say(text)))

    async def shown(self) -> None:
        """Return when all that was followed and said up to now is written. Cancellation: the rest is not shown."""
        tasks, self._tasks = self._tasks, []  # one wait for each: a cancelled one must not cancel the next wait
        await asyncio.gather(*tasks)

    async def report(self, receipt: Receipt) -> None:
        """Write what has gone wrong with showing, then the receipt; return when that is done."""
        for name, screen in (("stdout", self._out), ("stderr", self._err)):
            await self._admit(f"{name} takes no more", screen)
        if self._json and self._out.error is None and not await self._out.write_lines(receipt.to_json() + b"\n"):
            await self._admit("the receipt could not be written to stdout", self._out)
        self.reported = not self._json or self._out.error is None
        if self.renders:
            shown = facts_only(receipt) if self.whole else receipt
            await self._err.write_lines(shown.render().encode())

    def close(self) -> None:
        """Release the threads that are not stuck."""
        for screen in {self._out, self._err}:
            screen.close()

    async def _show(self, job: Job, stream: StreamName, screen: Screen) -> None:
        async for shown in job.live(stream):
            if shown.skipped:
                gap = b"[%d bytes not shown]\n" % shown.skipped
                written = await screen.write_lines(gap, shown.text)
            else:
                written = await screen.write(shown.text)
            if shown.skipped or not written:
                self.whole = False

    async def _admit(self, what: str, screen: Screen) -> None:
        # A reader that has seen enough is no fault: it is how `| head` ends.
        if screen.error is not None and not isinstance(screen.error, BrokenPipeError):
            await self._say(f"{what}: {screen.error.strerror}")

    async def _say(self, text: str) -> None:
        await self._err.write_lines(message(text, self._secrets))


def facts_only(receipt: Receipt) -> Receipt:
    """Return the receipt without its previews: for whoever has just seen the output itself."""
    streams = {
        name: None if facts is None else facts.model_copy(update={"preview": None})
        for name, facts in receipt.streams.items()
    }
    return receipt.model_copy(update={"streams": streams})
