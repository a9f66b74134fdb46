"""`spoolvisor logs`: the kept text of a capture, now or while it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from ..sansio.cursor import Cursor
from ..sansio.words import StreamName
from .looking import answer, directory_of, identified
from .parameters import SETTINGS, capture_argument, directory_option
from .printing import Wanted, print_text

if TYPE_CHECKING:
    from pathlib import Path

STREAMS: tuple[StreamName, ...] = get_args(StreamName)


def cursor(_: click.Context, __: click.Parameter, text: str | None) -> Cursor | None:
    """Return the cursor that the text says."""
    try:
        return None if text is None else Cursor.parse(text)
    except ValueError:
        raise click.BadParameter("that is no cursor; --show-cursor prints one") from None


@click.command(name="logs", context_settings=SETTINGS)
@directory_option
@click.option("-f", "--follow", is_flag=True, help="Go on until the command has ended.")
@click.option("-n", "--lines", metavar="N", type=click.IntRange(min=0), help="Begin with the last N lines.")
@click.option("--stream", type=click.Choice(STREAMS), help="This one only, on stdout.")
@click.option("--after-cursor", "after", metavar="C", callback=cursor, help="Begin where this cursor is.")
@click.option("--show-cursor", is_flag=True, help="At the end say where that was: '-- cursor: C' on stderr.")
@capture_argument()
def command(
    directory: str | None,
    given: str,
    stream: StreamName | None,
    lines: int | None,
    after: Cursor | None,
    *,
    follow: bool,
    show_cursor: bool,
) -> int:
    """Show what the capture ID has kept, byte for byte: its stdout on stdout, its stderr on stderr.

    With --stream that one goes to stdout. -n and the cursors need one stream; a cursor names its own. A capture that
    still grows is shown as far as it is kept; with -f it is shown to its end. Ctrl-C ends the showing only.

    \b
    Examples:
      spoolvisor logs ID | less
      spoolvisor logs -f -n 20 --stream stderr ID
      spoolvisor logs --stream stdout --show-cursor ID      # later, what has come since:
      spoolvisor logs --after-cursor C --show-cursor ID
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    context = click.get_current_context()
    if after is not None and lines is not None:
        raise click.UsageError("-n and --after-cursor exclude each other", context)
    if after is not None and stream not in {None, after.stream}:
        raise click.UsageError(f"the cursor is of {after.stream}, not of {stream}", context)
    one = stream if after is None else after.stream
    if one is None and (lines is not None or show_cursor):
        raise click.UsageError("-n and --show-cursor need --stream", context)
    wanted = Wanted(STREAMS if one is None else (one,), after, lines, follow=follow, show_cursor=show_cursor)
    return answer(_show(directory_of(directory), given, wanted))


async def _show(directory: Path, given: str, wanted: Wanted) -> int:
    capture_id = await identified(directory, given)
    if wanted.after is not None and wanted.after.capture_id != capture_id:
        raise click.ClickException("the cursor is of another capture")
    return await print_text(directory, capture_id, wanted)
