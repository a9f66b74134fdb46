"""The variants of an exit (contract A2)."""

from __future__ import annotations

import dataclasses

import pytest

from supervisor.sansio.exits import Exited, ExitStatus, Lost, Signalled


def test_a_code_and_a_signal_of_one_number_are_different_ends() -> None:
    """`exit 9` is not KILL, and neither is an end that nobody saw."""
    ends: set[ExitStatus] = {Exited(9), Signalled(9), Lost()}
    assert len(ends) == 3
    assert Exited(9) in ends
    assert Exited(8) not in ends
    assert Lost() == Lost()


@pytest.mark.parametrize("status", [Exited(0), Signalled(15)])
def test_an_exit_is_a_fact_that_nobody_changes(status: ExitStatus) -> None:
    """It is handed to many: receipts, callers, the lifecycle."""
    field = dataclasses.fields(status)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(status, field, 1)
