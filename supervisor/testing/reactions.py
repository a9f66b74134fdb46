"""What a fake child does on a signal: values that `FakeChild.on_signal` is given."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import Final

from ..sansio.exits import Exited, Signalled
from .mistakes import check_code

HARMLESS: Final = frozenset(
    {signals.SIGCHLD, signals.SIGCONT, signals.SIGURG, signals.SIGWINCH}
    | {signals.SIGSTOP, signals.SIGTSTP, signals.SIGTTIN, signals.SIGTTOU}
)
"""Signals that by default do not end a process (signal(7)). A stop stops nothing here: the script goes on anyway."""
UNCATCHABLE: Final = frozenset({signals.SIGKILL, signals.SIGSTOP})


@dataclass(frozen=True, slots=True)
class Ignore:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Default:
    """Do what signal(7) says a process does that did not ask for anything else."""


@dataclass(frozen=True, slots=True)
class ExitWith:
    """End."""

    status: Exited | Signalled


@dataclass(frozen=True, slots=True)
class Delay:
    """React later."""

    seconds: float
    then: Reaction


Reaction = Ignore | Default | ExitWith | Delay


def ignore() -> Reaction:
    """Go on; the signal is still among those that were taken."""
    return Ignore()


def exit_with(code: int | None = None, *, signal: int | None = None) -> Reaction:
    """End with `code` (0 if neither is given), as a handler does, or by `signal`, which may be another one.

    Raises: ValueError for a code and a signal, or one that cannot be.
    """
    return ExitWith(status_of(code, signal))


def delay(seconds: float, then: Reaction | None = None) -> Reaction:
    """React by `then` after so many seconds of the child's clock; None: as a process does by default.

    Raises: ValueError for a negative number; TypeError for what is no reaction.
    """
    if not seconds >= 0:
        raise ValueError("a reaction comes after its signal")
    late = Delay(seconds, Default() if then is None else then)
    _last(late)
    return late


def check_reaction(number: int, reaction: Reaction) -> None:
    """Raise for a reaction that no process can have: ValueError, as KILL and STOP have no handler (signal(7)).

    Raises: TypeError for what is no reaction.
    """
    known = signals.Signals(number)
    if isinstance(_last(reaction), ExitWith) and known in UNCATCHABLE:
        raise ValueError(f"{known.name} cannot be caught: it can be ignored (state D) or delayed")


def _last(reaction: object) -> Ignore | Default | ExitWith:
    """Return what happens in the end."""
    last = reaction
    while isinstance(last, Delay):
        last = last.then
    if not isinstance(last, Ignore | Default | ExitWith):
        raise TypeError("a reaction is made by calling ignore(), exit_with() or delay()")
    return last


def status_of(code: int | None, signal: int | None) -> Exited | Signalled:
    """Return how a process ends. Raises: ValueError for a code and a signal, or one that cannot be."""
    if signal is not None:
        if code is not None:
            raise ValueError("a process ends with a code or by a signal, not both")
        if signals.Signals(signal) in HARMLESS:
            raise ValueError(f"signal {int(signal)} does not end a process")
        return Signalled(int(signal))
    if code is not None:
        check_code(code)
    return Exited(code or 0)


def told(status: Exited | Signalled) -> str:
    """Return how it ended, in words."""
    return f"with code {status.code}" if isinstance(status, Exited) else f"by {signals.Signals(status.signal).name}"
