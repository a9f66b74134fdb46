"""The command line. One module per group of commands; what people read goes to stderr, what programs read to stdout."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    # Until a loop takes signals there is nothing to save, and Ctrl-C ends us as it ends any program. As an exception
    # among our imports it would be a traceback. What our caller ignores stays ignored.
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from . import entry  # noqa: PLC0415 - see above

        entry.main(arguments)
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
