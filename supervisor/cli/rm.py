"""`spoolvisor rm`: captures are removed when somebody says so, and never otherwise [D1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..recovering import remove_captures
from .looking import answer, chosen, directory_of, ids_in
from .messages import complain
from .parameters import SETTINGS, capture_argument, directory_option
from .quantities import short_size

if TYPE_CHECKING:
    from pathlib import Path


@click.command(name="rm", context_settings=SETTINGS)
@directory_option
@click.option("-q", "--quiet", is_flag=True, help="Do not say how much was freed.")
@capture_argument(many=True)
def command(directory: str | None, given: tuple[str, ...], *, quiet: bool) -> int:
    """Remove the captures ID with all that was kept of them.

    All or none: if one of them is unknown, or its command still runs, nothing is removed.
    """
    count, freed = answer(_removed(directory_of(directory), given))
    if not quiet:
        complain(f"removed {count} capture{'' if count == 1 else 's'}, {short_size(freed)} of text")
    return 0


async def _removed(directory: Path, given: tuple[str, ...]) -> tuple[int, int]:
    ids = await ids_in(directory)
    wanted = list(dict.fromkeys(chosen(ids, each) for each in given))
    return len(wanted), await remove_captures(directory, wanted)
