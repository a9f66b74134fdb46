"""How a process ended: variants that carry their own data (contract A2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exited:
    """The process ended by itself with this code, 0 to 255."""

    code: int


@dataclass(frozen=True, slots=True)
class Signalled:
    """A signal of this number ended the process."""

    signal: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The process is gone and nobody saw how: SIGCHLD was ignored, or another reaper took the status."""


ExitStatus = Exited | Signalled | Lost
