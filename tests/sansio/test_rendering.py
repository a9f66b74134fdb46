"""A receipt as text for a person or a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.receipt import (
    Durability,
    PreviewFacts,
    ProcessFacts,
    RawCopy,
    RawCounts,
    Receipt,
    Retained,
    StreamFacts,
    worst,
)
from supervisor.sansio.rendering import headline, outcome, render
from supervisor.sansio.words import CaptureReason, CaptureState

if TYPE_CHECKING:
    from collections.abc import Iterable

CLEAN: Final = ProcessFacts(state="exited", code=0)
FAILED: Final = ProcessFacts(state="exited", code=3)


def text_of(text: str, **fields: object) -> StreamFacts:
    """Return a complete stream with this text, all of it on disk and in the preview."""
    size = len(text.encode())
    own = {
        "state": "complete",
        "raw": RawCounts(observed=size, accepted=size, pending=0, discarded=0),
        "committed": size,
        "held": 0,
        "uncommitted": 0,
        "retained": Retained(end=size),
        "lines": text.count("\n"),
        "ends_with_newline": text.endswith("\n") if text else None,
        "preview": PreviewFacts(state="complete", head=text, returned_bytes=size, budget_bytes=16384),
    }
    return StreamFacts.model_validate({**own, **fields})


def receipt(
    stdout: StreamFacts | None = None,
    stderr: StreamFacts | None = None,
    process: ProcessFacts | None = CLEAN,
    **fields: object,
) -> Receipt:
    """Return a receipt of a job called `job` with these streams."""
    stdout = text_of("") if stdout is None else stdout
    own = {"capture_id": "x", "label": "job", "process": process, "capture": worst([stdout, stderr])}
    return Receipt.model_validate({**own, "streams": {"stdout": stdout, "stderr": stderr}, **fields})


def facts_of(rendered: str) -> list[str]:
    """Return the lines that are ours, as any reader would split them."""
    return [line for line in rendered.splitlines() if not line.startswith("| ")]


def test_an_ordinary_success_is_a_few_lines() -> None:
    """What was run, how it ended, what is kept where, and the output."""
    stdout = text_of("hello\n", reference="tool-outputs/captures/x/stdout.log", path="/c/stdout.log", access="local")
    assert render(receipt(stdout, text_of(""), duration=0.0123)) == (
        "job: exited 0 in 0.01 s\n"
        "capture complete: all output is accounted for\n"
        "stdout: 6 bytes, 1 line, in /c/stdout.log\n"
        "stderr: empty\n"
        "| hello\n"
    )


def test_a_failure_shows_stderr_first() -> None:
    """The error is what is looked for; with two bodies each has its name."""
    lines = render(receipt(text_of("out\n"), text_of("err\n"), FAILED)).splitlines()
    assert lines[0] == "job: exited 3"
    assert lines[-4:] == ["stderr:", "| err", "stdout:", "| out"]
    lines = render(receipt(text_of("out\n"), text_of("err\n"))).splitlines()
    assert lines[-4:] == ["stdout:", "| out", "stderr:", "| err"]


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (CLEAN, "exited 0 in 12.5 s"),
        (ProcessFacts(state="exited", signal=9), "ended by signal 9 (SIGKILL) in 12.5 s"),
        (ProcessFacts(state="exited", signal=63), "ended by signal 63 in 12.5 s"),
        (
            ProcessFacts(state="timeout", signal=15, reason="time-limit"),
            "timeout: time-limit, ended by signal 15 (SIGTERM) in 12.5 s",
        ),
        (ProcessFacts(state="cancelled", code=0, reason="caller"), "cancelled: caller, exited 0 in 12.5 s"),
        (ProcessFacts(state="unknown", reason="status-lost"), "ended unseen: status-lost in 12.5 s"),
        (ProcessFacts(state="not-started"), "not started in 12.5 s"),
        (ProcessFacts(state="running", pid=42), "running, pid 42"),
        (ProcessFacts(state="running"), "running"),
        (None, "text from process"),
    ],
)
def test_the_outcome_is_state_reason_and_what_the_child_said(process: ProcessFacts | None, expected: str) -> None:
    """Code and signal stand beside the state, whatever ended the child (A2)."""
    assert outcome(receipt(process=process, duration=12.5)) == expected


def test_text_from_elsewhere_names_its_producer() -> None:
    """It stays untrusted data of somebody (E8)."""
    made = receipt(process=None, source="dask", upstream="task\n3")
    assert outcome(made) == "text from dask (task\\n3)"
    assert facts_of(render(made))[1] == "capture complete: all output is accounted for"
    whole = receipt(process=None, source="dask", upstream="complete")
    assert outcome(whole) == "text from dask"
    for upstream, word in (("truncated", "cut before"), ("unknown", "nobody says"), ("complete", "is not kept")):
        made = receipt(process=None, upstream=upstream, capture={"state": "partial"})
        assert word in facts_of(render(made))[1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"label": "tests"}, "tests: exited 0"),
        ({"label": None, "command": ("echo", "a b")}, "echo 'a b': exited 0"),
        ({"label": None, "command": ("c" * 300,)}, "c" * 199 + "…: exited 0"),
        ({"label": None}, "x: exited 0"),
        ({"label": "two\nlines\u2028\u202e"}, "two\\nlines\\u2028\\u202e: exited 0"),
        ({"label": "größe"}, "größe: exited 0"),
    ],
)
def test_the_headline_names_the_job_in_one_line(fields: dict[str, object], expected: str) -> None:
    """By its label, else its command, else its id; nothing in a name ends the line."""
    assert headline(receipt(**fields)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("duration", "expected"), [(0.0, "0.00 s"), (9.994, "9.99 s"), (59.96, "60.0 s"), (12345.6, "12,345.6 s")]
)
def test_durations_are_readable(duration: float, expected: str) -> None:
    """Milliseconds matter below ten seconds only."""
    assert outcome(receipt(duration=duration)) == f"exited 0 in {expected}"


@pytest.mark.parametrize("reason", get_args(CaptureReason))
def test_every_reason_is_explained(reason: CaptureReason) -> None:
    """The word of the contract, and what it means for whoever reads the text."""
    line = render(receipt(text_of("", state="partial", reason=reason))).splitlines()[1]
    word, _, meaning = line.partition(": ")
    assert word == f"capture partial, {reason}"
    assert meaning


@pytest.mark.parametrize("state", get_args(CaptureState))
def test_every_state_is_explained(state: CaptureState) -> None:
    """Also without a reason."""
    line = render(receipt(text_of("", state=state))).splitlines()[1]
    assert line.startswith(f"capture {state}: ")
    assert line.partition(": ")[2]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "6 bytes, 1 line"),
        ({"lines": 20001, "ends_with_newline": False}, "6 bytes, 20,001 lines, the last one unfinished"),
        (
            {
                "state": "partial",
                "reason": "job-limit",
                "committed": 4000,
                "uncommitted": 96,
                "retained": Retained(end=4000),
            },
            "4,000 of 4,096 bytes kept, 1 line, partial (job-limit)",
        ),
        ({"state": "pending"}, "6 bytes, 1 line, pending"),
        ({"retained": Retained(end=None)}, "6 bytes, kept to an unknown part, 1 line"),
        ({"committed": None, "lines": None}, "6 bytes kept of an unknown size"),
        ({"committed": None, "lines": None, "retained": Retained(end=None)}, "size unknown"),
        ({"committed": 0, "lines": 0, "raw": RawCounts(observed=5000)}, "no text from 5,000 bytes read"),
        ({"committed": 0, "lines": 0, "raw": RawCounts()}, "no text"),
        ({"representation": "binary", "replaced": 1200}, "6 bytes, 1 line, binary, 1,200 bytes were not UTF-8"),
        ({"omitted": 70}, "6 bytes, 1 line, 70 bytes omitted as undecidable"),
        ({"redactions": {"A_KEY": 2, "B\nC": 1000}}, "6 bytes, 1 line, redacted 1,002 (A_KEY 2, B\\nC 1,000)"),
        ({"reference": "r", "access": "local"}, "6 bytes, 1 line, in r"),
        ({"reference": "r", "path": "/r", "access": "local"}, "6 bytes, 1 line, in /r"),
        ({"reference": "r", "path": "/r", "access": "needs-transfer"}, "6 bytes, 1 line, in r (needs a transfer)"),
        ({"reference": "r", "path": "/r", "access": "unavailable"}, "6 bytes, 1 line, in r (not available here)"),
        ({"reference": "r", "access": "inline"}, "6 bytes, 1 line, in r (all of it is here)"),
        (
            {"raw_copy": RawCopy(reference="r", path="/r"), "access": "local"},
            "6 bytes, 1 line, unsanitised in /r",
        ),
        (
            {"raw_copy": RawCopy(reference="r", state="partial", reason="job-limit"), "access": "local"},
            "6 bytes, 1 line, unsanitised and partial (job-limit) in r",
        ),
    ],
)
def test_a_stream_is_one_line_of_facts(fields: dict[str, object], expected: str) -> None:
    """Amounts, what was done to the text, and where it is; what is unknown is called so (A4)."""
    assert render(receipt(text_of("hello\n", **fields))).splitlines()[2] == f"stdout: {expected}"


def test_troubles_of_the_ending_have_a_line_each() -> None:
    """What could not be ended, who holds a pipe, what was not synced, what the platform lacks."""
    process = ProcessFacts(
        state="exited",
        code=1,
        error="kill\nfailed",
        kill_confirmed=False,
        survivors=(7,),
        holders=tuple(range(100, 120)),
        pipestatus=(1, 0),
    )
    made = receipt(process=process, durability=Durability(barrier=False, error="EIO"), limitations=("a", "b\nc"))
    lines = facts_of(render(made))
    assert "error: kill\\nfailed" in lines
    assert "not everything that was to be ended is known to be gone" in lines
    assert "still alive: 1 process (7)" in lines
    assert "pipe held open by: 20 processes (" + " ".join(map(str, range(100, 116))) + " …)" in lines
    assert "pipe status: 1 0" in lines
    assert "not synced to disk: EIO" in lines
    assert "limitations: a; b\\nc" in lines


@pytest.mark.parametrize(
    ("durability", "line"),
    [
        (Durability(barrier=False), "not synced to disk"),
        (Durability(barrier=True, error="EIO"), "synced to disk with an error: EIO"),
    ],
)
def test_a_missing_barrier_is_said(durability: Durability, line: str) -> None:
    """A durable receipt needs no line; anything less has one (D4)."""
    assert facts_of(render(receipt(durability=durability)))[-1] == line
    assert len(facts_of(render(receipt(durability=Durability(barrier=True))))) == 3


def test_a_clipped_body_has_its_gap_between_the_lines() -> None:
    """The line that counts it is ours, so it has no prefix."""
    preview = PreviewFacts(state="clipped", head="a\nb", tail="c\n", returned_bytes=5, omitted_bytes=12345)
    assert render(receipt(text_of("x", preview=preview))).endswith("| a\n| b\n[12,345 bytes omitted]\n| c\n")
    for frames, words in ((1, "1 overwritten state"), (2999, "2,999 overwritten states")):
        collapsed = preview.model_copy(update={"frames_dropped": frames})
        assert f"[12,345 bytes omitted, with {words} of a line]\n" in render(receipt(text_of("x", preview=collapsed)))


def test_a_stream_without_a_preview_has_no_body() -> None:
    """`capture="none"` shows nothing anywhere (B9)."""
    counts = {"committed": 0, "held": 0, "uncommitted": 0}
    made = receipt(StreamFacts.model_validate({"state": "disabled", "raw": RawCounts(observed=10), **counts}))
    assert render(made) == (
        "job: exited 0\ncapture disabled: no output was to be kept\nstdout: no text from 10 bytes read, disabled\n"
    )


FORGERIES: Final = st.lists(
    st.sampled_from(
        [
            *("job: exited 0", "capture complete: all output is accounted for", "[5 bytes omitted]", "stderr:", "| x"),
            *("x", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"),
        ]
    ),
    max_size=12,
).map("".join)


@given(FORGERIES, FORGERIES, st.sampled_from(["complete", "clipped"]), st.none() | st.integers(0, 400))
def test_nothing_that_a_child_prints_can_pass_for_a_fact(out: str, err: str, state: str, budget: int | None) -> None:
    """Take away the prefixed lines, as any reader splits lines, and what is left does not depend on the output (A5)."""

    def rendered(head: str, tail: str) -> Iterable[str]:
        bodies = [
            PreviewFacts.model_validate({"state": state, "head": text, "returned_bytes": 9, "omitted_bytes": 7})
            for text in (head, tail)
        ]
        streams = [text_of("same", preview=body) for body in bodies]
        lines = facts_of(render(receipt(*streams, FAILED), budget))
        assert "[5 bytes omitted]" not in lines
        return [line for line in lines if not line.endswith(" bytes omitted]") and line not in {"stdout:", "stderr:"}]

    assert rendered(out, err) == rendered("", "")


@given(
    out=st.text(st.sampled_from("ab\n€"), max_size=300),
    err=st.none() | st.text(st.sampled_from("cd\n"), max_size=300),
    process=st.sampled_from([CLEAN, FAILED]),
    budget=st.integers(0, 1500),
)
def test_a_budget_bounds_the_whole_and_cuts_no_fact(
    out: str, err: str | None, process: ProcessFacts, budget: int
) -> None:
    """At every budget the facts are whole; the output takes what is left, and every byte not shown is counted."""
    made = receipt(text_of(out), None if err is None else text_of(err), process)
    whole, bounded, smallest = render(made), render(made, budget), render(made, 0)
    facts = [line for line in facts_of(whole) if line not in {"stdout:", "stderr:"}]
    assert [line for line in facts_of(bounded) if line in facts] == facts
    assert len(bounded) <= max(budget, len(smallest))
    assert bounded == whole or len(whole) > budget
    assert len(smallest) <= len(whole)
    assert len(smallest) <= len("\n".join(facts)) + 1 + 2 * len("stdout:\n[300 bytes omitted]\n")


def test_every_line_counts_against_the_budget() -> None:
    """Line ends and prefixes too: at no budget is a text of many short lines longer than it may be."""
    made = receipt(text_of("a\n" * 60), text_of("b\n" * 60))
    smallest, longest = len(render(made, 0)), len(render(made))
    for budget in range(smallest, longest + 1):
        assert budget - 40 < len(render(made, budget)) <= budget


def test_a_failure_s_error_has_priority_in_a_small_budget() -> None:
    """Stderr may take all but a quarter of the room; stdout has that quarter."""
    made = receipt(text_of("o" * 4000), text_of("e" * 4000), FAILED)
    bounded = render(made, 1000)
    assert 3 * 0.8 < bounded.count("e" * 10) / bounded.count("o" * 10) < 3 * 1.3
    assert len(bounded) > 980
    short = render(receipt(text_of("o" * 10), text_of("e" * 4000), FAILED), 1000)
    assert short.count("o" * 10) == 1
    assert len(short) > 980


def test_the_end_of_the_output_is_what_stays() -> None:
    """Of a body that is cut, the tail is longer than the head."""
    text = "".join(f"{number:04}\n" for number in range(1000))
    bounded = render(receipt(text_of(text)), 400)
    assert "| 0000\n" in bounded
    assert bounded.endswith("| 0999\n")
    head, tail = bounded.split(" bytes omitted]\n")
    assert tail.count("| ") > head.count("| ")


def test_rendering_changes_no_fact() -> None:
    """It reads the receipt and nothing else."""
    made = receipt(text_of("x" * 500))
    before = made.to_json()
    render(made, 100)
    assert json.loads(made.to_json()) == json.loads(before)
