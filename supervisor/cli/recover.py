"""`spoolvisor recover`: receipts for what supervisors left that were killed."""

from __future__ import annotations

import click

from ..recovering import recover
from .looking import answer, directory_of, put, unless_missing
from .parameters import SETTINGS, directory_option
from .table import table


@click.command(name="recover", context_settings=SETTINGS)
@directory_option
@click.option("--json", is_flag=True, help="The receipts instead of the list, one JSON line each.")
def command(directory: str | None, *, json: bool) -> int:
    """Give a receipt to each capture whose supervisor was killed before it wrote one, and list these captures.

    Their text stays as it is, and they count as partial. Captures of a supervisor that lives are left alone. It may be
    run at any time and again; then it finds nothing to do.
    """
    place = directory_of(directory)
    receipts = answer(unless_missing(place, recover(place)))
    if json:
        return put(b"".join(receipt.to_json() + b"\n" for receipt in receipts))
    return put("".join(line + "\n" for line in table(receipts)).encode())
