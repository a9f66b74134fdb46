"""What a caller named, on its way into a receipt: bounded work, and no way to lose a job by it (A6, B3, B5, C8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from supervisor import reporting
from supervisor.reporting import pending_receipt
from supervisor.sansio.exits import Exited
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.receipt import RECEIPT_BYTES
from supervisor.sansio.sanitizer import sanitise_text

if TYPE_CHECKING:
    from conftest import MakeCourse, ScriptedChild

    from supervisor.course import Course

pytestmark = pytest.mark.asyncio

SECRET = "hunter2-hunter2"
ARGUMENTS = 100_000


def counted(course: Course, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count how often a text is sanitised, and how often the known values are asked for."""
    counts = {"texts": 0, "needles": 0}
    needles = course.services.needles

    def sanitise_counted(text: str, known: NeedleSet) -> str:
        counts["texts"] += 1
        return sanitise_text(text, known)

    def needles_counted(environment: Any) -> NeedleSet:  # noqa: ANN401 -- handed on
        counts["needles"] += 1
        return needles(environment)

    monkeypatch.setattr(reporting, "sanitise_text", sanitise_counted)
    course.services.needles = needles_counted
    return counts


async def test_a_long_command_costs_no_more_than_a_receipt_can_hold(
    make_course: MakeCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two MiB of arguments are within what exec takes; the loop is not held up for what will be clipped anyway (B3)."""
    course = make_course(["x"] * ARGUMENTS)
    counts = counted(course, monkeypatch)
    receipts = [pending_receipt(course).fitted() for _ in range(3)]
    receipt = receipts[-1]
    assert "command-clipped" in receipt.limitations
    assert receipt.command is not None
    assert set(receipt.command) == {"x"}
    assert counts["texts"] <= RECEIPT_BYTES // 4 + 1
    assert counts["needles"] == 1


async def test_a_value_that_is_known_later_is_taken_out_of_the_command(make_course: MakeCourse) -> None:
    """What was sanitised once is sanitised anew for other values (C5, C8)."""
    course = make_course(["login", "other-secret"])
    assert pending_receipt(course).command == ("login", "other-secret")
    needles = NeedleSet.build({"LATER": "other-secret"})
    course.services.needles = lambda _: needles
    course.know_anew()
    assert pending_receipt(course).command == ("login", "[REDACTED:LATER]")


async def test_a_defect_of_the_sanitiser_costs_the_names_and_not_the_receipt(
    make_course: MakeCourse, child: ScriptedChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is kept, nothing unsanitised is shown, and the loop's handler is told (B5)."""
    course = make_course(["curl", f"-H{SECRET}"], label=SECRET, call_id=SECRET)
    course.adopt(child)  # type: ignore[arg-type]
    child.exit = Exited(7)
    course.exit_noticed()
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def broken(*_: object) -> str:
        raise ArithmeticError

    monkeypatch.setattr(reporting, "sanitise_text", broken)
    receipt = pending_receipt(course)
    assert receipt.process is not None
    assert receipt.process.code == 7
    assert receipt.command == ("[REDACTED:undecided]",) * 2
    assert receipt.label == receipt.call_id == "[REDACTED:undecided]"
    assert SECRET.encode() not in receipt.to_json()
    assert {type(context["exception"]) for context in told} == {ArithmeticError}
