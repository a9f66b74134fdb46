"""Assertions that explain themselves, each shown failing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Receipt, Supervisor
from supervisor.testing import Expected, FakeChild, VirtualClock, assert_receipt, assert_settled, assertions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def receipt() -> Receipt:
    """Return one of a command that was killed, with 12 bytes of output."""
    return Receipt.model_validate(
        {
            "schema": 1,
            "capture_id": "c1",
            "command": ["make", "test"],
            "label": "the tests",
            "process": {"state": "timeout", "signal": 9, "reason": "time-limit", "forced": True, "survivors": []},
            "capture": {"state": "partial", "reason": "no-space"},
            "streams": {
                "stdout": {
                    "state": "partial",
                    "reason": "no-space",
                    "redactions": {"TOKEN": 2},
                    "omitted": 5,
                    "preview": {"state": "complete", "head": "some output\n", "tail": ""},
                },
                "stderr": {"state": "complete", "redactions": {"TOKEN": 1, "KEY": 1}},
            },
        }
    )


def test_what_is_expected_and_true_passes(receipt: Receipt) -> None:
    """Every expectation that there is; what is not named may be anything."""
    assert_receipt(receipt)
    assert_receipt(
        receipt,
        process="timeout",
        code=None,
        signal=9,
        reason="time-limit",
        forced=True,
        kill_confirmed=None,
        survivors=(),
        capture="partial",
        capture_reason="no-space",
        stdout="some output\n",
        stderr="",
        omitted=5,
        redactions={"TOKEN": 3, "KEY": 1},
        label="the tests",
        command=("make", "test"),
        barrier=None,
        limitations=(),
    )


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ({"process": "exited"}, "the process state is 'timeout', not 'exited'"),
        ({"code": 0}, "the exit code is nothing (null), not 0"),
        ({"signal": 15}, "the signal is 9 (SIGKILL), not 15 (SIGTERM)"),
        ({"signal": None}, "the signal is 9 (SIGKILL), not nothing (null)"),
        ({"reason": None}, "the reason of its end is 'time-limit', not nothing (null)"),
        ({"forced": False}, "whether it had to be killed is True, not False"),
        ({"kill_confirmed": True}, "whether its end is confirmed is nothing (null), not True"),
        ({"survivors": None}, "the list of survivors is (), not nothing (null)"),
        ({"capture": "complete"}, "the capture state is 'partial', not 'complete'"),
        ({"capture_reason": None}, "the reason of the capture's state is 'no-space', not nothing (null)"),
        ({"stdout": "other"}, "stdout is 'some output\\n', not 'other'"),
        ({"stderr": "x"}, "stderr is '', not 'x'"),
        ({"omitted": 0}, "the count of omitted bytes is 5, not 0"),
        ({"redactions": {}}, "what was redacted is {'TOKEN': 3, 'KEY': 1}, not {}"),
        ({"label": None}, "the label is 'the tests', not nothing (null)"),
        ({"command": ("make",)}, "the command is ('make', 'test'), not ('make',)"),
        ({"barrier": True}, "whether a barrier stands behind it is nothing (null), not True"),
        ({"limitations": ("x",)}, "the list of limitations is (), not ('x',)"),
    ],
)
def test_each_difference_is_said_in_words_beside_the_receipt(
    receipt: Receipt, expected: dict[str, Any], line: str
) -> None:
    """The whole receipt is below it, as a person reads it."""
    with pytest.raises(AssertionError) as caught:
        assert_receipt(receipt, **expected)
    told = str(caught.value)
    assert told.splitlines()[:3] == ["the receipt is not as expected:", f"  {line}", "the receipt:"]
    assert receipt.render() in told


def test_all_differences_are_said_at_once(receipt: Receipt) -> None:
    """So that a test is not mended line by line."""
    with pytest.raises(AssertionError) as caught:
        assert_receipt(receipt, process="timeout", code=1, capture="complete")
    assert str(caught.value).splitlines()[3] == "the receipt:"


def test_a_long_text_is_shown_where_it_differs(receipt: Receipt) -> None:
    """At the first character that does, or where the shorter one ends."""
    long = "a" * 100 + "b" + "c" * 100
    head = {"state": "complete", "head": long, "tail": ""}
    data = receipt.model_dump(by_alias=True)
    data["streams"]["stdout"]["preview"] = head
    receipt = Receipt.model_validate(data)
    with pytest.raises(
        AssertionError, match=r"differs from character 100 on \(201 and 201 characters\): …'a{20}bc{19}'"
    ):
        assert_receipt(receipt, stdout=long.replace("b", "x"))
    with pytest.raises(AssertionError, match=r"differs from character 200 on \(201 and 200 characters\)"):
        assert_receipt(receipt, stdout=long[:-1])


def test_an_expectation_that_does_not_exist_is_refused(receipt: Receipt) -> None:
    """A slip would otherwise expect nothing; and every one that is declared exists."""
    with pytest.raises(TypeError, match=r"knows no exit_code; it knows process, code"):
        assert_receipt(receipt, exit_code=0)  # type: ignore[call-arg]
    assert set(assertions.FACTS) == set(Expected.__annotations__)


@pytest.mark.asyncio
async def test_settled_names_each_job_that_is_not(tmp_path: Path) -> None:
    """One that runs, one whose pipes are held; and nothing once both have ended."""
    clock = VirtualClock()
    children = [FakeChild(), FakeChild()]
    waiting = iter(children)
    async with Supervisor(
        tmp_path, spawn=lambda protocol, launch: next(waiting).spawn(protocol, launch), clock=clock, durability="none"
    ) as supervisor:
        assert_settled(supervisor)
        await supervisor.start(["first", "one"])
        await supervisor.start(["second"], label="the other", drain_timeout=60)
        children[1].exit(0, hold_pipes=True)
        await clock.settle()
        with pytest.raises(AssertionError) as caught:
            assert_settled(supervisor)
        assert str(caught.value).splitlines() == [
            "not everything is settled:",
            f"  job 1 still runs, as pid {children[0].pid}: first one",
            "  job 2 has ended and is not settled; its pipes may be held: the other",
        ]
        children[0].exit(0)
        await clock.advance(60)
        assert_settled(supervisor)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"held": 3}, "job 1: stdout has 0 bytes pending and 3 held"),
        ({"raw": {"observed": 9, "accepted": 4, "pending": 0, "discarded": 4}}, "job 1: stdout does not add up"),
    ],
)
async def test_settled_adds_up_every_stream(change: dict[str, Any], line: str) -> None:
    """A final receipt that still holds bytes back, or lost some, is not settled [B6]."""
    child = FakeChild()
    child.exit(0)
    async with Supervisor(spawn=child.spawn) as supervisor:
        job = await supervisor.start(["x"])
        receipt = await job.wait()
        data = receipt.model_dump(by_alias=True)
        data["streams"]["stdout"].update(change)
        settled = asyncio.get_running_loop().create_future()
        settled.set_result(Receipt.model_validate(data))
        job._course.settled = settled  # type: ignore[misc] -- no child of ours brings such a receipt about
        with pytest.raises(AssertionError, match=line):
            assert_settled(supervisor)
