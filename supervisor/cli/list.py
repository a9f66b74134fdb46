"""`spoolvisor list`: the captures of a directory, one line each."""

from __future__ import annotations

import os
import shutil

import click

from .looking import answer, captures_of, directory_of, put
from .parameters import SETTINGS, directory_option
from .table import table


@click.command(name="list", short_help="List the captures of a directory.", context_settings=SETTINGS)
@directory_option
@click.option("--json", is_flag=True, help="A receipt a line, with exact figures.")
def command(directory: str | None, *, json: bool) -> int:
    """List the captures of a directory, the newest last.

    ID is the beginning of the id, long enough to stand for it in other commands. STDOUT and STDERR say how much text
    can be read. A command that runs, or whose end nobody saw, has no CODE; one that a signal ended has its name there.

    \b
    Examples:
      spoolvisor list
      spoolvisor list --json | jq -r 'select(.process.code != 0) | .capture_id'
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    receipts = answer(captures_of(directory_of(directory)))
    if json:
        return put(b"".join(receipt.to_json() + b"\n" for receipt in receipts))
    width = shutil.get_terminal_size().columns if os.isatty(1) else None
    return put("".join(line + "\n" for line in table(receipts, width=width)).encode())
