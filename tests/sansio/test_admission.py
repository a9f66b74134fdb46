"""A bounded number of places, given in order, never taken away (F9)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.admission import Admission


def queue(places: int | None) -> Admission[str]:
    """Return an admission that lets wait."""
    return Admission(places, "queue")


def test_without_a_bound_everybody_is_admitted() -> None:
    """None is no bound, under either policy."""
    for admission in (queue(None), Admission[str](None, "refuse")):
        assert [admission.ask(str(number)) for number in range(5)] == ["admitted"] * 5
        assert admission.live == 5


def test_the_next_one_is_refused_until_a_place_is_given_back() -> None:
    """It leaves nothing in a queue."""
    admission = Admission[str](1, "refuse")
    assert [admission.ask("a"), admission.ask("b")] == ["admitted", "refused"]
    assert admission.waiting == ()
    assert admission.give_back() is None
    assert admission.live == 0
    assert admission.ask("c") == "admitted"


def test_who_waited_longest_is_next_and_no_newcomer_overtakes() -> None:
    """The place is its own before it runs: somebody who asks in between waits behind the others."""
    admission = queue(1)
    assert [admission.ask(name) for name in "abc"] == ["admitted", "waiting", "waiting"]
    assert admission.give_back() == "b"
    assert admission.ask("d") == "waiting"
    assert admission.waiting == ("b", "c", "d")
    assert admission.take("b")
    assert admission.waiting == ("c", "d")
    assert not admission.take("b")
    assert [admission.give_back(), admission.give_back(), admission.give_back()] == ["c", "d", None]


def test_who_withdraws_is_passed_over() -> None:
    """It had no place to pass on; doing it again does nothing."""
    admission = queue(1)
    for name in "abc":
        admission.ask(name)
    assert admission.withdraw("b") is None
    assert admission.withdraw("b") is None
    assert admission.give_back() == "c"


def test_a_place_that_was_given_and_not_taken_goes_on() -> None:
    """Who is cancelled on its way in leaves no place behind."""
    admission = queue(1)
    for name in "abc":
        admission.ask(name)
    assert admission.give_back() == "b"
    assert admission.withdraw("b") == "c"
    assert admission.withdraw("c") is None
    assert admission.live == 0


def test_closing_sends_away_all_who_hold_no_place_yet() -> None:
    """Those on their way in too; whoever is in stays in."""
    admission = queue(2)
    for name in "abcd":
        admission.ask(name)
    assert admission.give_back() == "c"
    assert admission.close() == ("c", "d")
    assert not admission.take("c")
    assert admission.withdraw("c") is None
    assert (admission.live, admission.waiting) == (1, ())


STEPS = st.tuples(st.sampled_from(["ask", "back", "withdraw", "take"]), st.integers(0, 9))
"""What happens, and to which of those it can happen to."""


@given(st.integers(1, 3), st.lists(STEPS, max_size=60))
def test_places_are_neither_lost_nor_made(places: int, steps: list[tuple[str, int]]) -> None:
    """Whatever comes: `live` is who holds one, all are used while somebody waits, and the order is that of asking."""
    admission = queue(places)
    holders: list[str] = []
    coming: list[str] = []
    order: list[str] = []

    def woken(name: str | None) -> None:
        if name is not None:
            assert name == order.pop(0)
            coming.append(name)

    for number, (step, which) in enumerate(steps):
        if step == "ask":
            (holders if admission.ask(str(number)) == "admitted" else order).append(str(number))
        elif step == "back" and holders:
            holders.pop()
            woken(admission.give_back())
        elif step == "take" and coming:
            assert admission.take(coming[0])
            holders.append(coming.pop(0))
        elif step == "withdraw" and (waiting := coming + order):
            name = waiting[which % len(waiting)]
            (coming if name in coming else order).remove(name)
            woken(admission.withdraw(name))
        assert admission.live == len(holders) + len(coming) <= places
        assert admission.waiting == (*coming, *order)
        assert not order or admission.live == places
