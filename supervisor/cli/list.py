"""`spoolvisor list`: the captures of a directory, one line each."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import click

from ..limits import Limits
from .looking import answer, captures_of, directory_of, listing_of, put
from .messages import complain
from .parameters import SETTINGS, directory_option
from .quantities import short_size, size_text
from .table import table

if TYPE_CHECKING:
    from ..storage import Figures


@click.command(name="list", context_settings=SETTINGS)
@directory_option
@click.option("--json", is_flag=True, help="A receipt a line, with exact figures.")
def command(directory: str | None, *, json: bool) -> int:
    """List the captures of a directory, the newest last.

    ID is the beginning of the id, long enough to stand for it in other commands. STDOUT and STDERR say how much text
    can be read. A command that runs, or whose end nobody saw, has no CODE; one that a signal ended has its name there.

    A last line, on stderr, says how much the directory may keep: used by files, reserved by running commands, left.

    \b
    Examples:
      spoolvisor list
      spoolvisor list --json | jq -r 'select(.process.code != 0) | .capture_id'
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    if json:
        return put(b"".join(receipt.to_json() + b"\n" for receipt in answer(captures_of(directory_of(directory)))))
    receipts, figures = answer(listing_of(directory_of(directory)))
    width = shutil.get_terminal_size().columns if os.isatty(1) else None
    code = put("".join(line + "\n" for line in table(receipts, width=width)).encode())
    if figures is not None and code == 0:
        complain(allowance(figures))
    return code


def allowance(figures: Figures) -> str:
    """Return the allowance in one line; what is left is counted by the limit that was used last, or the usual one."""
    limit = Limits().conversation_bytes if figures.limit is None else figures.limit
    used, reserved = short_size(figures.used), short_size(figures.reserved)
    left = short_size(max(0, int(limit) - figures.used - figures.reserved))
    return f"{used} used, {reserved} reserved, {left} left of {size_text(limit)}"
