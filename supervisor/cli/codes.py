"""The exit codes of the command line: the child's own, and the ones that shells, timeout(1) and env(1) use."""

from __future__ import annotations

import errno
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..errors import SpawnError
    from ..sansio.receipt import Receipt

MISUSE: Final = 2
"""The arguments make no sense; nothing was started. What POSIX utilities and shells use."""
LIMIT: Final = 124
"""A time or idle limit ended the command: timeout(1)."""
OWN_FAULT: Final = 125
"""spoolvisor itself failed, or nobody saw how the command ended: env(1), timeout(1)."""
NOT_EXECUTABLE: Final = 126
"""The command was found and could not be executed: POSIX sh, 2.8.2."""
NOT_FOUND: Final = 127
"""The command, or the interpreter that it names, was not found: POSIX sh, 2.8.2."""
SIGNALLED: Final = 128
"""Plus the number of the signal that ended the command: POSIX sh, 2.8.2."""
INTERRUPTED: Final = 130
"""Ctrl-C: 128 and SIGINT."""


def code_of_spawn_error(error: SpawnError) -> int:
    """Return 127 for what is not there, else 126. As in bash 5.2, dash, env(1) and timeout(1) a missing `#!` counts."""
    return NOT_FOUND if error.fault == "program" or error.errno == errno.ENOENT else NOT_EXECUTABLE


def code_is_the_childs(receipt: Receipt) -> bool:
    """Return whether the child ended by itself, so that the code is neither a limit's nor that of who cancelled."""
    return receipt.process is not None and receipt.process.state == "exited"


def code_of_receipt(receipt: Receipt, interruption: int | None) -> int:
    """Return the code for a settled receipt of a child; `interruption` is the signal that made us end it, if any.

    What was captured has no part in it: a capture that is not complete is not the command's failure [A1].
    """
    process = receipt.process
    assert process is not None
    if process.state == "timeout":
        return LIMIT
    if process.state == "cancelled" and interruption is not None:
        return SIGNALLED + interruption
    if process.signal is not None:
        return SIGNALLED + process.signal
    return OWN_FAULT if process.code is None else process.code


def code_of_settled(receipt: Receipt) -> int:
    """Return the code that `run` gave, as far as the receipt alone tells it; a text of no child counts as success."""
    process = receipt.process
    if process is None:
        return 0
    # Which of the signals that end a service it was, is not in the receipt: TERM is the usual one.
    interruptions: dict[str | None, int] = {"caller": signal.SIGINT, "supervisor-shutdown": signal.SIGTERM}
    return code_of_receipt(receipt, interruptions.get(process.reason))
