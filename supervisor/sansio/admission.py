"""Who gets one of a bounded number of places, and in which order (contract F9).

A place is held from the moment it is given until it is given back. One that is given back while somebody waits goes to
who has waited longest, at once: `live` does not fall in between, so a newcomer cannot overtake. Who is woken needs a
moment until it runs; what was given to it and not yet taken is therefore still its to refuse, and then goes on to the
next one. Nobody who holds a place ever loses it to another.

An asker is any hashable object, here the future that wakes it.
"""

from __future__ import annotations

from typing import Final, Generic, Literal, TypeVar

Asker = TypeVar("Asker")
Policy = Literal["refuse", "queue"]
Answer = Literal["admitted", "waiting", "refused"]


class Admission(Generic[Asker]):
    """The places of one supervisor; None: as many as are asked for."""

    def __init__(self, places: int | None, policy: Policy) -> None:
        self._places: Final = places
        self._policy: Final = policy
        self._waiting: Final[dict[Asker, None]] = {}
        self._given: Final[dict[Asker, None]] = {}
        self.live = 0
        """Places that are held, those that were given and not yet taken among them."""

    @property
    def waiting(self) -> tuple[Asker, ...]:
        """Who has asked and is not in yet: first those on their way, then the others in their order."""
        return (*self._given, *self._waiting)

    def ask(self, asker: Asker) -> Answer:
        """Give `asker` a place that is free, or its turn in the queue, or neither."""
        if self._places is None or self.live < self._places:
            self.live += 1
            return "admitted"
        if self._policy == "refuse":
            return "refused"
        self._waiting[asker] = None
        return "waiting"

    def take(self, asker: Asker) -> bool:
        """Whether the place of one who waited is its own; False after `close`."""
        if asker not in self._given:
            return False
        del self._given[asker]
        return True

    def give_back(self) -> Asker | None:
        """Return who has the place now, and is to be woken; None if nobody waits."""
        if not self._waiting:
            self.live -= 1
            return None
        asker = next(iter(self._waiting))
        del self._waiting[asker]
        self._given[asker] = None
        return asker

    def withdraw(self, asker: Asker) -> Asker | None:
        """Let one go that waited. Return who is to be woken, because its place had come already; else None."""
        if asker in self._given:
            del self._given[asker]
            return self.give_back()
        self._waiting.pop(asker, None)
        return None

    def close(self) -> tuple[Asker, ...]:
        """Give nobody who waits a place any more; return them, and those who have not taken theirs."""
        sent_away = self.waiting
        self.live -= len(self._given)
        self._given.clear()
        self._waiting.clear()
        return sent_away
