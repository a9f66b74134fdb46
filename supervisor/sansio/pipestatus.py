"""What each member of a pipeline returned, as bash itself tells it at its end.

The command stays the one argument of `bash -c`, untouched [A5]. Before it bash reads a prelude, which it is told by
`BASH_ENV` (bash(1), "Invocation"); the prelude takes that variable away again and sets a trap on EXIT, which reports
`PIPESTATUS` and leaves the code alone: `$?` at the end of such a trap is not the shell's. `eval "$1"; report` would be
the other way, but a finished `eval` is a pipeline of its own, of one member, and the members in it are forgotten.

The report replaces the prelude's beginning, in a file of a fixed size, which bash has read whole before it runs any of
it. There is no pipe that somebody could hold open, and the command has no descriptor of the file.

A report is believed only where it explains the code. So `false | true; exit 3`, a failed expansion and an end before
anything was run tell nothing [A4].
"""

from __future__ import annotations

import re
import shlex
from typing import Final

REPORT_BYTES: Final = 1024
"""As long as a report may be: MOST_MEMBERS times four characters, and a word."""
MOST_MEMBERS: Final = 128
"""Of a longer pipeline nothing is told: a receipt is bounded."""

_REPORT: Final = re.compile(rb"((?:[0-9]{1,3},)+)end,")
_HIGHEST: Final = 255


def prelude(path: str, host: int, inherited: str | None) -> bytes:
    """Return what bash reads first, longer than any report.

    Args:
        path: the file that this is read from and the report is written to.
        host: the pid of the parent of the one shell that reports.
        inherited: the `BASH_ENV` that the command was given; it is set again, and read as bash would have.
    """
    steps = (
        'builtin set -- "${PIPESTATUS[@]}"',
        # A command that set `ulimit -f 0` must not die of the report: it fails instead.
        'builtin trap "" XFSZ',
        f'builtin printf "%s," "$@" end 1<>{shlex.quote(path)}',
    )
    # In a group, because `set -x` and a DEBUG trap of the command print before a command's own redirection is made.
    trap = f"{{ {'; '.join(steps)}; }} >/dev/null 2>&1"
    forget = "unset BASH_ENV" if inherited is None else f"export BASH_ENV={shlex.quote(inherited)}"
    mine = f'if [[ "$PPID" == {host} ]]; then builtin trap -- {shlex.quote(trap)} EXIT; fi'
    text = f"{{ builtin {forget}; {mine}; }} 2>/dev/null\n"
    if inherited:
        # bash expands the variable as in double quotes, and is silent where there is no such file.
        name = '"' + inherited.replace('"', '\\"') + '"'
        text += f"if [[ -e {name} ]]; then builtin . {name}; fi\n"
    return text.encode(errors="surrogateescape").ljust(REPORT_BYTES, b"\n")


def codes(report: bytes, code: int) -> tuple[int, ...] | None:
    """Return the members' codes, first to last; None if `report` is none, or does not explain the shell's `code`."""
    found = _REPORT.match(report)
    if found is None:
        return None
    members = tuple(map(int, found[1].split(b",")[:-1]))
    if len(members) > MOST_MEMBERS or max(members) > _HIGHEST:
        return None
    with_pipefail = next((member for member in reversed(members) if member), 0)
    ways = {members[-1], with_pipefail, int(not members[-1]), int(not with_pipefail)}  # the last two: behind `!`
    return members if code in ways else None
