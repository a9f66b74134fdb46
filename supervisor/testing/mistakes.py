"""What the author of a test gets wrong, told where it is written.

A test that is wrong must not pass: an unknown stream, a reaction that was not called, a script that is no coroutine
would otherwise do nothing, or fail far from where they stand.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Final, cast

from ..errors import SpawnError

HIGHEST_CODE: Final = 255
"""All that wait(2) has room for."""


def check_stream(stream: str) -> None:
    """Raise ValueError for a name that no output has."""
    if stream not in {"stdout", "stderr"}:
        raise ValueError(f"a child writes to stdout or stderr, not {stream!r}")


def check_data(data: object) -> None:
    """Raise TypeError for what cannot be written as it is."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a child writes bytes, not {_kind(data)}")


def check_failure(error: object) -> None:
    """Raise for what no start fails with: TypeError, or ValueError where the system's number is missing."""
    if not isinstance(error, OSError | SpawnError):
        raise TypeError(f"a start fails with an OSError or a SpawnError, not {_kind(error)}")
    if isinstance(error, OSError) and error.errno is None:
        raise ValueError("an OSError has a number: OSError(errno.ENOENT, os.strerror(errno.ENOENT))")


def check_script(running: object) -> None:
    """Raise TypeError for what a script has returned, if it was no async function."""
    if not inspect.isawaitable(running):
        raise TypeError("the script of a fake child is an async function: async def play(child)")


def check_code(code: object) -> None:
    """Raise ValueError for what no process exits with."""
    if not (isinstance(code, int) and 0 <= code <= HIGHEST_CODE):
        raise ValueError(f"an exit code is 0 to 255, not {code!r}")


def check_list(command: object) -> None:
    """Raise TypeError for what is no list of arguments."""
    if isinstance(command, str | bytes) or not isinstance(command, Sequence):
        raise TypeError(f"a command is a list of arguments, not {_kind(command)}")


def checked_argument(part: object) -> str:
    """Return an argument as text, which a path becomes. Raises: TypeError for anything else."""
    text = os.fspath(cast("os.PathLike[str]", part)) if isinstance(part, os.PathLike) else part
    if not isinstance(text, str):
        raise TypeError(f"an argument is text, not {_kind(text)}")
    return text


def _kind(value: object) -> str:
    """Return what it is, in words; a class, which was probably meant to be called, by its name."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
