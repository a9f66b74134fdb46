"""What is to be started, checked before anything is opened (contract F6)."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..sansio.membership import with_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .childlimits import ChildLimits
    from .terminal import Terminal


def check_encodable(text: object, what: str) -> None:
    """Raise, without quoting `text`, if the system cannot take it: a NUL would cut it short unseen.

    Raises: TypeError for what is no string, ValueError for one that cannot be handed over.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string")
    if "\0" in text:
        raise ValueError(f"{what} contains a NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        # Not chained: that error carries the whole text, which may be a secret (design, "Errors").
        raise ValueError(f"{what} contains a character that the file system encoding lacks") from None


@dataclass(frozen=True, slots=True)
class Launch:
    """One command with everything its process is given at the start.

    Raises:
        TypeError: at construction, for a part that is no string.
        ValueError: at construction, for an empty `argv`, a terminal without `merge`, a NUL or an unencodable
            character anywhere, and for a variable's name that is empty or contains "=". No message contains an
            argument or a value.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    """Directory in which to start; None is the host's own."""
    env: Mapping[str, str] | None = None
    """Replaces the environment, as in `subprocess`; None inherits it."""
    stdin: Literal["null", "pipe"] = "null"
    merge: bool = False
    """Give the child one pipe as both stdout and stderr; only stdout exists then (contract B7)."""
    pty: Terminal | None = None
    """Give the child one terminal of this size as its stdin, stdout and stderr; needs `merge` (contract B7)."""
    child_limits: ChildLimits | None = None
    """What it may use and as whom it runs."""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    """Names the job in the environment of its whole tree, so that members which left the session are found (F3)."""

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("the command is empty")
        if self.pty is not None and not self.merge:
            raise ValueError("a terminal carries both streams, merged")
        for number, argument in enumerate(self.argv):
            check_encodable(argument, f"argument {number}")
        if self.cwd is not None:
            check_encodable(self.cwd, "the working directory")
        for name, value in (self.env or {}).items():
            check_encodable(name, "an environment variable's name")
            if not name or "=" in name:
                raise ValueError("an environment variable's name is empty or contains '='")
            check_encodable(value, f"the environment variable {name}")

    def environment(self) -> dict[str, str]:
        """Return all variables of the child: those given, or the host's now, and the job's mark."""
        return with_mark(os.environ if self.env is None else self.env, self.mark)

    @property
    def outputs(self) -> tuple[Literal[1, 2], ...]:
        """The child's descriptors that get an output pipe of their own."""
        return (1,) if self.merge else (1, 2)
