"""`spoolvisor export`: copies of captures, to be given to somebody [E10]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..handing import export_captures
from .looking import answer, chosen, directory_of, ids_in, put
from .messages import complain
from .parameters import SETTINGS, capture_argument, directory_option
from .quantities import short_size

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..sansio.receipt import Receipt


@click.command(name="export", context_settings=SETTINGS)
@directory_option
@click.option("-q", "--quiet", is_flag=True, help="Do not say how much was copied.")
@click.option("--json", is_flag=True, help="The receipts of the copies, one JSON line each.")
@capture_argument(many=True)
@click.argument("destination", metavar="DEST", type=click.Path(file_okay=False))
def command(directory: str | None, given: tuple[str, ...], destination: str, *, quiet: bool, json: bool) -> int:
    """Copy the captures ID to the directory DEST, which is made if it is missing.

    Their receipts there name neither the command nor a path of this machine, and unsanitised copies stay behind. DEST
    can be looked at like any other directory of captures.

    If one of them is unknown, or its command still runs, nothing is copied. What is in DEST already stays as it is.

    \b
    Examples:
      spoolvisor export 20260131T2359 for-the-report
      spoolvisor list --dir for-the-report
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    receipts = answer(_exported(directory_of(directory), given, destination))
    if json:
        return put(b"".join(receipt.to_json() + b"\n" for receipt in receipts))
    if not quiet:
        count, lost = len(receipts), sum(map(_lost, receipts))
        missing = f"; {lost} text{'' if lost == 1 else 's'} could not be had" if lost else ""
        complain(f"copied {count} capture{'' if count == 1 else 's'}, {short_size(_size(receipts))} of text{missing}")
    return 0


async def _exported(directory: Path, given: tuple[str, ...], destination: str) -> list[Receipt]:
    ids = await ids_in(directory)
    wanted = dict.fromkeys(chosen(ids, each) for each in given)
    try:
        return await export_captures(directory, wanted, destination)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def _size(receipts: Sequence[Receipt]) -> int:
    facts = [stream for receipt in receipts for stream in receipt.streams.values() if stream is not None]
    return sum(each.retained.end or 0 for each in facts if each.access == "local")


def _lost(receipt: Receipt) -> int:
    return sum(facts is not None and facts.access == "unavailable" for facts in receipt.streams.values())
