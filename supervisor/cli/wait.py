"""`spoolvisor wait`: until a command that runs somewhere else has ended."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import click

from ..captures import follow_capture
from ..sansio.cursor import Cursor
from .codes import code_of_settled
from .looking import answer, directory_of, identified, put, receipt_of
from .parameters import SETTINGS, capture_argument, directory_option
from .screen import write_all

if TYPE_CHECKING:
    from pathlib import Path

    from ..sansio.receipt import Receipt
    from ..sansio.words import StreamName


@click.command(name="wait", context_settings=SETTINGS)
@directory_option
@click.option("--json", is_flag=True, help="The receipt as one JSON line on stdout, not rendered on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Show no rendered receipt.")
@capture_argument()
def command(directory: str | None, given: str, *, json: bool, quiet: bool) -> int:
    """Wait until the command of the capture ID has ended and its receipt is there, then show that.

    It needs the files alone: the command may be another terminal's or another program's. Ctrl-C ends the wait only.

    \b
    Exit code:
      as of the `run` that it waits for: the command's own, 128+N, 124 for a limit
      130 also for a command that its caller ended, 143 for one whose supervisor was ended
      125 if its supervisor is gone and nobody saw how it ended
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    receipt = answer(_settled(directory_of(directory), given))
    if json:
        failed = put(receipt.to_json() + b"\n")
        return failed or code_of_settled(receipt)
    if not quiet:
        with suppress(OSError):  # nobody is left to tell
            write_all(2, receipt.render().encode())
    return code_of_settled(receipt)


async def _settled(directory: Path, given: str) -> Receipt:
    """Return the receipt once nothing will change it but `recover`."""
    capture_id = await identified(directory, given)
    receipt = await receipt_of(directory, capture_id)
    if receipt.capture.state != "pending":
        return receipt
    # A follower is told of the end by the receipt or by the owner's death; the text so far does not matter to it.
    streams: list[StreamName] = [name for name, facts in receipt.streams.items() if facts is not None]
    stream = streams[0] if streams else "stdout"
    facts = receipt.streams.get(stream)
    known = 0 if facts is None else facts.retained.end or 0
    cursor = Cursor(capture_id, stream, offset=known)
    async with aclosing(follow_capture(directory, capture_id, stream, cursor=cursor)) as pages:
        async for _ in pages:
            pass
    return await receipt_of(directory, capture_id)
