"""Where turns begin and end, for a command line and for a server alike.

A turn is acknowledged after its hooks have contributed and the barrier held, and not before. What a client waits for
before it sends again is another fact: that the next message would be accepted. Between the two a host may have work to
do (naming the conversation, say), so each has an event of its own.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from supervisor import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    Record = Mapping[str, Any]
    Hook = Callable[[], Iterable[Record] | None]


class Log(Protocol):
    """What the gate needs of a transcript; `Transcript` is one."""

    def append(self, record: Record, /) -> None:
        """Add a record. Raises: StorageError or OSError."""
        ...

    def barrier(self) -> None:
        """Return when all of it is on the device. Raises: StorageError or OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """What clients are told."""

    kind: Literal["completed", "failed", "hook-failed", "released"]
    """`completed`: the turn is on the device. `failed`: it is not, and there will be no `completed` for it.
    `hook-failed`: a hook raised; the turn goes on. `released`: the next message is accepted from now on."""
    turn: int
    """Its number, from 1. 0: what failed is of the session's end or a restart. A release has the last turn's number."""
    error: str | None = None
    """For a person: what failed."""


class Busy(Exception):
    """A turn is under way, so a message is not accepted: HTTP 409. `released` of this `turn` says when it is."""

    def __init__(self, turn: int) -> None:
        super().__init__(f"turn {turn} is under way")
        self.turn: Final = turn


class BarrierFailed(Exception):
    """A turn or a session is not on the device. Clients were told, and the transcript has a message that says so."""


class Turn:
    """One turn under way."""

    def __init__(self, number: int, complete: Callable[[int], None]) -> None:
        self.number: Final = number
        self._complete: Final = complete
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether it was completed, or has failed for good."""
        return self._ended

    def complete(self) -> None:
        """Run the turn hooks, hold the barrier, and tell clients; return when all of it is done. Once for each turn.

        Raises:
            RuntimeError: it was called before.
            BarrierFailed: what was contributed is not on the device; there is no completion.
        """
        if self._ended:
            raise RuntimeError("a turn is completed once")
        self._ended = True
        self._complete(self.number)


class TurnGate:
    """Lets one turn of a conversation in at a time. All calls block, and may come from any thread.

    Args:
        log: The transcript.
        emit: Tells clients. It is called in order, by one thread at a time, which holds the gate: it must not wait.
        turn_hooks: What contributes to the end of a turn: each returns the records to append, or None.
        session_hooks: The same for the session's end.
        message: Makes the record that says in the transcript what failed.
    """

    def __init__(
        self,
        log: Log,
        *,
        emit: Callable[[Event], object] = lambda _: None,
        turn_hooks: Iterable[Hook] = (),
        session_hooks: Iterable[Hook] = (),
        message: Callable[[str], Record] = lambda text: {"role": "system", "content": text},
    ) -> None:
        self._log: Final = log
        self._emit: Final = emit
        self._turn_hooks: Final = tuple(turn_hooks)
        self._session_hooks: Final = tuple(session_hooks)
        self._message: Final = message
        self._lock: Final = threading.RLock()
        self._number = 0
        self._busy = False

    @contextmanager
    def turn(self) -> Generator[Turn]:
        """Lend the gate for a turn; one that leaves the block without an error is completed, unless it was before.

        A server calls `Turn.complete` in the block, where what may follow its completion follows. However the block is
        left, the gate is free then, and `released` is told after that.

        Raises:
            Busy: another turn is under way; nothing was changed.
            BarrierFailed: from the block's end.
        """
        turn = Turn(self._taken(1), self._complete)
        try:
            yield turn
            if not turn.ended:
                turn.complete()
        finally:
            self._release(turn.number)

    def end_session(self) -> None:
        """Run the session hooks and hold the barrier; return when what they contributed is on the device.

        Raises:
            Busy: a turn is under way.
            BarrierFailed: the session's end was not successful.
        """
        self._settle_apart(self._session_hooks)

    def before_restart(self) -> None:
        """Hold the barrier, so that whoever reads the transcript next finds all of it; the session goes on.

        Raises: as `end_session`.
        """
        self._settle_apart(())

    def _taken(self, turns: int) -> int:
        """Return the number of the last turn, once the gate is ours for so many more of them."""
        with self._lock:
            if self._busy:
                raise Busy(self._number)
            self._busy = True
            self._number += turns
            return self._number

    def _release(self, number: int) -> None:
        # One step for all other threads: who was refused during this turn is told of its end, and is accepted then.
        with self._lock:
            self._busy = False
            self._emit(Event("released", number))

    def _complete(self, number: int) -> None:
        self._settle(self._turn_hooks, number)
        self._tell(Event("completed", number))

    def _settle_apart(self, hooks: Iterable[Hook]) -> None:
        number = self._taken(0)
        try:
            self._settle(hooks, 0)
        finally:
            self._release(number)

    def _settle(self, hooks: Iterable[Hook], number: int) -> None:
        """Append what the hooks contribute, and hold the barrier."""
        try:
            for hook in hooks:
                self._contribute(hook, number)
            self._log.barrier()
        except (StorageError, OSError) as error:
            text = f"The transcript could not be saved: {error}"
            with suppress(StorageError, OSError):  # the event says it, too
                self._log.append(self._message(text))
            self._tell(Event("failed", number, text))
            raise BarrierFailed(text) from error

    def _contribute(self, hook: Hook, number: int) -> None:
        try:
            records = tuple(hook() or ())
        except Exception as error:  # noqa: BLE001 -- a hook is somebody else's: whatever it is, the turn is not its hostage
            self._tell(Event("hook-failed", number, f"{type(error).__name__}: {error}"))
            return
        for record in records:
            self._log.append(record)

    def _tell(self, event: Event) -> None:
        with self._lock:
            self._emit(event)
