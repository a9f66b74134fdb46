"""`spoolvisor show`: the receipt of one capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .looking import answer, directory_of, identified, put, receipt_of
from .parameters import SETTINGS, capture_argument, directory_option

if TYPE_CHECKING:
    from pathlib import Path

    from ..sansio.receipt import Receipt


@click.command(name="show", context_settings=SETTINGS)
@directory_option
@click.option("--json", is_flag=True, help="The receipt as one JSON line.")
@capture_argument()
def command(directory: str | None, given: str, *, json: bool) -> int:
    """Show the receipt of the capture ID: how the command ended, what was kept, and where, with the preview of it.

    ID may be shortened as long as it stands for one capture only. While the command runs, so far as is known.
    """
    receipt = answer(_shown(directory_of(directory), given))
    return put(receipt.to_json() + b"\n" if json else receipt.render().encode())


async def _shown(directory: Path, given: str) -> Receipt:
    return await receipt_of(directory, await identified(directory, given))
