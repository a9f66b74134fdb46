"""`spoolvisor doctor`: what this system gives us, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from .looking import directory_of, put
from .messages import escaped
from .parameters import SETTINGS, directory_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from .checks import Finding

FAILED: Final = 1


@click.command(name="doctor", context_settings=SETTINGS)
@directory_option
def command(directory: str | None) -> int:
    """Look at this installation, this system and the directory of the captures, and change nothing.

    A line each: 'ok', 'warn' for what works with less than all that is promised, 'fail' for what has to be mended.

    \b
    Exit code:
      1 if a line says fail, else 0
    """  # noqa: D301 -- \b is a character: click keeps the line breaks after it
    from . import checks  # noqa: PLC0415 - help needs none of it

    where = directory_of(directory).absolute()
    nearest = checks.nearest_directory(where)
    looks: dict[str, Callable[[], Finding]] = {
        "names": lambda: checks.names(checks.owners()),
        "loop": checks.loop,
        "engine": checks.engine,
        "directory": lambda: checks.directory(where, nearest),
        "barrier": lambda: checks.barrier(nearest),
        "locks": lambda: checks.locks(nearest),
        "pidfd": checks.pidfd,
        "cgroup": lambda: checks.cgroup(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")),
    }
    failed = False
    lines: list[str] = []
    for name, look in looks.items():
        finding = checks.contained(look)
        failed |= finding.verdict == "fail"
        lines.append(f"{finding.verdict} {name}: {escaped(finding.text)}\n")
    return put("".join(lines).encode()) or (FAILED if failed else 0)
