"""What became of each byte of one stream, exact at every moment (contract B6).

Two currencies that are never mixed. Raw bytes are the child's: each is *observed* when it is read, *pending* until it
is fed, and then *accepted* (fed while retention was on) or *discarded*; so `observed = accepted + pending + discarded`
always. Representation bytes are the sanitised text: decided ones are *uncommitted* until they are on disk, then
*committed*; *held* ones are not decided yet. There is no sum across the two: redaction and decoding change lengths.

Pending is what the identity is made of: no method can take more out of it than is in it. A count that does not add up
is our own fault, hence an assertion, made before anything changes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """A ledger at one moment, in bytes."""

    observed: int
    accepted: int
    pending: int
    discarded: int
    committed: int
    held: int
    uncommitted: int

    @property
    def settled(self) -> bool:
        """Nothing waits to be fed or decided: what every ending has to reach."""
        return self.pending == 0 and self.held == 0

    @property
    def whole(self) -> bool:
        """Every byte that was read is accepted and in the file: what `complete` requires beside a real EOF (D3)."""
        return self.settled and self.discarded == 0 and self.uncommitted == 0


class Ledger:
    """The account of one stream. Amounts are bytes, zero allowed.

    Raises:
        AssertionError: by every method, for an amount below zero or above what there is to take from.
    """

    __slots__ = ("accepted", "committed", "discarded", "held", "observed", "pending", "uncommitted")

    def __init__(self) -> None:
        self.observed = 0
        self.accepted = 0
        self.pending = 0
        self.discarded = 0
        self.committed = 0
        self.held = 0
        self.uncommitted = 0

    def observe(self, count: int) -> None:
        """`count` raw bytes were read from the pipe; they are pending now."""
        assert count >= 0, "a count below zero"
        self.observed += count
        self.pending += count
        self._verify()

    def accept(self, count: int) -> None:
        """`count` pending bytes were fed while retention was on."""
        assert 0 <= count <= self.pending, "more is fed than was read"
        self.pending -= count
        self.accepted += count
        self._verify()

    def discard(self, count: int) -> None:
        """`count` pending bytes were fed after retention had ended, or will never be fed."""
        assert 0 <= count <= self.pending, "more is fed than was read"
        self.pending -= count
        self.discarded += count
        self._verify()

    def decide(self, count: int) -> None:
        """`count` bytes of text came out of the sanitiser."""
        assert count >= 0, "a count below zero"
        self.uncommitted += count

    def commit(self, count: int) -> None:
        """`count` bytes of decided text are in the file."""
        assert 0 <= count <= self.uncommitted, "more is written than was decided"
        self.uncommitted -= count
        self.committed += count

    def hold(self, count: int) -> None:
        """The sanitiser holds `count` bytes now, whatever it held before."""
        assert count >= 0, "a count below zero"
        self.held = count

    def snapshot(self) -> Counts:
        """Return the counts of this moment."""
        return Counts(
            observed=self.observed,
            accepted=self.accepted,
            pending=self.pending,
            discarded=self.discarded,
            committed=self.committed,
            held=self.held,
            uncommitted=self.uncommitted,
        )

    def _verify(self) -> None:
        assert self.observed == self.accepted + self.pending + self.discarded, "a raw byte has no account"
