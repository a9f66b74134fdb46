"""The account of each byte (contract B6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.ledger import Counts, Ledger

OPERATIONS = ("observe", "accept", "discard", "decide", "commit", "hold")
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(-2, 50)), max_size=60)


@given(STEPS)
def test_the_identities_hold_after_every_step(steps: list[tuple[str, int]]) -> None:
    """Any sequence either keeps the books in order or is refused and changes nothing."""
    ledger, fed, decided = Ledger(), 0, 0
    for name, amount in steps:
        before = ledger.snapshot()
        takes_from = {"accept": before.pending, "discard": before.pending, "commit": before.uncommitted}
        if amount < 0 or amount > takes_from.get(name, amount):
            with pytest.raises(AssertionError):
                getattr(ledger, name)(amount)
            assert ledger.snapshot() == before
            continue
        getattr(ledger, name)(amount)
        fed += amount if name == "observe" else 0
        decided += amount if name == "decide" else 0
        counts = ledger.snapshot()
        assert counts.observed == fed == counts.accepted + counts.pending + counts.discarded
        assert counts.committed + counts.uncommitted == decided
        assert min(counts.pending, counts.uncommitted, counts.held) >= 0
        if name == "hold":
            assert counts.held == amount


def test_each_operation_moves_bytes_between_its_two_accounts() -> None:
    """One stream, from the first read to a limit, by hand."""
    ledger = Ledger()
    ledger.observe(100)
    ledger.accept(60)
    ledger.decide(50)
    ledger.hold(10)
    ledger.commit(45)
    ledger.discard(30)
    assert ledger.snapshot() == Counts(
        observed=100, accepted=60, pending=10, discarded=30, committed=45, held=10, uncommitted=5
    )


def test_a_lost_byte_is_noticed() -> None:
    """The identity is verified, not assumed: a counter changed from outside fails the next step."""
    ledger = Ledger()
    ledger.observe(10)
    ledger.accepted += 1
    with pytest.raises(AssertionError, match="no account"):
        ledger.accept(1)


def test_hold_replaces_what_was_held() -> None:
    """Held is a level, not a sum."""
    ledger = Ledger()
    ledger.hold(10)
    ledger.hold(3)
    assert ledger.snapshot().held == 3


def test_settled_and_whole() -> None:
    """Settled: nothing waits. Whole: nothing is missing from the file either (D3)."""
    ledger = Ledger()
    assert ledger.snapshot().whole
    ledger.observe(4)
    assert not ledger.snapshot().settled
    ledger.accept(4)
    ledger.hold(4)
    assert not ledger.snapshot().settled
    ledger.hold(0)
    ledger.decide(4)
    assert ledger.snapshot().settled
    assert not ledger.snapshot().whole
    ledger.commit(4)
    assert ledger.snapshot().whole
    ledger.observe(1)
    ledger.discard(1)
    assert ledger.snapshot().settled
    assert not ledger.snapshot().whole


def test_a_snapshot_stays_as_it_was() -> None:
    """Later steps do not reach into facts that were handed out."""
    ledger = Ledger()
    before = ledger.snapshot()
    ledger.observe(5)
    assert before.observed == 0
