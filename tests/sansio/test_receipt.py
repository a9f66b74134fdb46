"""The receipt's models: what they accept, what they say, and that they survive being JSON."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from supervisor.errors import JobFailed, StorageError
from supervisor.sansio.preview import Preview
from supervisor.sansio.receipt import (
    CaptureFacts,
    Durability,
    PreviewFacts,
    ProcessFacts,
    RawCopy,
    RawCounts,
    Receipt,
    Retained,
    StreamFacts,
    Usage,
    worst,
)
from supervisor.sansio.words import REASONS, STATES

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from supervisor.sansio.words import StreamName

# The example of the design, "The public API", with its dots filled in.
EXAMPLE = """
{"schema": 1, "capture_id": "20260102T030405000006Z-00", "job_id": "3", "call_id": null, "conversation": "/c",
 "source": "process", "upstream": null, "label": "pytest -q", "command": ["pytest", "-q"],
 "started_at": "2026-01-02T03:04:05.000006Z", "ended_at": "2026-01-02T03:04:17Z", "duration": 12.5,
 "last_output_at": "2026-01-02T03:04:16Z",
 "process": {"state": "exited", "code": 2, "signal": null, "reason": null, "error": null, "pid": 4242, "forced": false,
             "kill_confirmed": true, "survivors": [], "holders": null, "pipestatus": null},
 "capture": {"state": "complete", "reason": null}, "streams": {
    "stdout": {"state": "complete", "reason": null, "representation": "redacted", "encoding": "utf-8",
    "policy": "default/1", "raw": {"observed": 900022, "accepted": 900022, "pending": 0, "discarded": 0},
    "committed": 900022, "held": 0, "uncommitted": 0, "omitted": 0, "replaced": 0, "controls_removed": 0, "redactions":
    {"OPENAI_API_KEY": 1}, "retained": {"start": 0, "end": 900022, "generation": 0, "verified_end": null},
    "lines": 20001, "ends_with_newline": true, "sha256": "00", "reference": "tool-outputs/captures/x/stdout.log",
    "path": "/c/x", "access": "local", "raw_copy": null,
    "preview": {"state": "clipped", "head": "a", "tail": "b", "returned_bytes": 8150, "budget_bytes": 16384,
                "omitted_bytes": 891872, "frames_dropped": 0}}, "stderr": null},
 "usage": {"cpu": 1.2, "max_rss": 50331648, "source": "rusage"},
 "durability": {"barrier": true, "directories": true, "error": null}, "limitations": []}
"""


def stream(text: str = "", **fields: object) -> StreamFacts:
    """Return a complete stream whose preview is `text`."""
    size = len(text.encode())
    preview = PreviewFacts(state="complete", head=text, returned_bytes=size, budget_bytes=16384)
    return StreamFacts.model_validate({"state": "complete", "preview": preview, **fields})


def receipt(
    process: ProcessFacts | None = None,
    streams: Mapping[StreamName, StreamFacts | None] | None = None,
    **fields: object,
) -> Receipt:
    """Return a receipt with these parts, and one empty stream if none is given."""
    streams = {"stdout": stream(), "stderr": None} if streams is None else streams
    own = {"capture_id": "x", "process": process, "capture": worst(streams.values()), "streams": streams}
    return Receipt.model_validate({**own, **fields})


def run(coroutine: Coroutine[None, None, str]) -> str:
    """Return what a coroutine returns that never waits."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    value: str = end.value.value
    return value


def test_the_json_is_that_of_the_design() -> None:
    """Every field, its name, its order and its form: hosts and later versions read it."""
    written = Receipt.parse(EXAMPLE.encode()).to_json()
    assert json.loads(written) == json.loads(EXAMPLE)
    assert written == json.dumps(json.loads(EXAMPLE), separators=(",", ":")).encode()


def test_parse_ignores_what_a_newer_version_added() -> None:
    """A field more, at any depth, keeps nobody from reading an old receipt."""
    data = json.loads(EXAMPLE)
    data["mood"] = data["process"]["mood"] = data["streams"]["stdout"]["preview"]["mood"] = 1
    assert Receipt.parse(json.dumps(data).encode()) == Receipt.parse(EXAMPLE.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema": 1', '"schema": 2'),
        ('"schema": 1', '"schema": "1"'),
        ('"schema": 1, ', ""),
        ('"state": "exited"', '"state": "done"'),
        ('"reason": null', '"reason": "bored"'),
        ('"pid": 4242', '"pid": "4242"'),
        ('"committed": 900022', '"committed": -1'),
        ('"started_at": "2026-01-02T03:04:05.000006Z"', '"started_at": "2026-01-02T03:04:05"'),
        ('"stderr": null', '"stdin": null'),
        ("{", "["),
    ],
)
def test_parse_refuses_what_no_receipt_says(old: str, new: str) -> None:
    """Another schema, a word that is not closed, a wrong type, and no JSON at all are ValueErrors."""
    assert old in EXAMPLE
    with pytest.raises(ValueError, match=r"validation error|schema version"):
        Receipt.parse(EXAMPLE.replace(old, new, 1).encode())


def test_a_refusal_does_not_repeat_the_value() -> None:
    """An error message never carries output text."""
    with pytest.raises(ValidationError) as refusal:
        Receipt.parse(EXAMPLE.replace('"head": "a"', '"head": ["hunter2"]').encode())
    assert "hunter2" not in str(refusal.value)


@given(st.text(), st.integers(0, 2**63), st.none() | st.integers(0, 10**9))
def test_json_and_back_is_the_same_receipt(text: str, count: int, unknown: int | None) -> None:
    """For any text and number, unknown ones included: unknown stays null (A4)."""
    facts = stream(text, committed=unknown, raw=RawCounts(observed=count), redactions={text: count})
    made = receipt(ProcessFacts(state="running", error=text), streams={"stdout": facts, "stderr": None}, label=text)
    assert Receipt.parse(made.to_json()) == made
    assert json.loads(made.to_json())["streams"]["stdout"]["committed"] == unknown


def test_what_is_not_known_is_null() -> None:
    """A pending receipt infers nothing: no code, no end, no total (A4)."""
    pending = receipt(ProcessFacts(state="running", pid=7), streams={"stdout": StreamFacts(state="pending")})
    data = json.loads(pending.to_json())
    assert data["capture"] == {"state": "pending", "reason": None}
    assert [data[key] for key in ("ended_at", "duration", "usage", "durability")] == [None] * 4
    assert [data["process"][key] for key in ("code", "signal", "kill_confirmed", "survivors")] == [None] * 4
    facts = data["streams"]["stdout"]
    assert {facts[key] for key in ("committed", "held", "uncommitted", "lines", "ends_with_newline", "sha256")} == {
        None
    }
    assert facts["retained"] == {"start": 0, "end": None, "generation": 0, "verified_end": None}
    assert set(facts["raw"].values()) == {None}


def test_a_receipt_is_frozen() -> None:
    """Handed out facts stay as they were, at every depth."""
    made = receipt(ProcessFacts(state="exited", code=0))
    for part in (made, made.process, made.capture, made.streams["stdout"]):
        assert part is not None
        with pytest.raises(ValidationError):
            part.state = "unknown"  # type: ignore[union-attr]


def test_parts_are_taken_from_the_objects_that_know_them() -> None:
    """A preview's text becomes the receipt's facts field by field."""
    preview = Preview(4, 100)
    preview.feed(b"0123456789")
    text = preview.render(4, 100)
    facts = PreviewFacts.model_validate(text)
    assert (facts.state, facts.head, facts.tail) == ("clipped", "0", "789")
    assert (facts.returned_bytes, facts.budget_bytes, facts.omitted_bytes) == (4, 100, 6)


def test_stdout_and_stderr_are_the_text_of_the_previews() -> None:
    """Whole when complete, with a counted gap when clipped, empty where there is none."""
    clipped = PreviewFacts(state="clipped", head="a\n", tail="b", omitted_bytes=5)
    streams = {"stdout": stream("hello\n"), "stderr": stream(preview=clipped)}
    made = receipt(streams=streams)
    assert (made.stdout, made.stderr) == ("hello\n", "a\n[5 bytes omitted]\nb")
    assert receipt(streams={"stdout": StreamFacts(state="disabled")}).stdout == ""
    assert receipt().stderr == ""


@pytest.mark.parametrize(
    ("head", "text"),
    [("cut", "cut\n[1 bytes omitted]\nz"), ("", "[1 bytes omitted]\nz"), ("a\n", "a\n[1 bytes omitted]\nz")],
)
def test_the_gap_has_a_line_of_its_own(head: str, text: str) -> None:
    """Whatever the head ends with."""
    assert PreviewFacts(state="clipped", head=head, tail="z", omitted_bytes=1).text == text


GOOD = [None, ProcessFacts(state="exited", code=0)]
BAD = [
    ProcessFacts(state="exited", code=1),
    ProcessFacts(state="exited"),
    ProcessFacts(state="exited", signal=9),
    ProcessFacts(state="exited", code=0, signal=9),
    ProcessFacts(state="cancelled", code=0, reason="caller"),
    ProcessFacts(state="timeout", code=0, reason="time-limit"),
    ProcessFacts(state="unknown", reason="status-lost"),
    ProcessFacts(state="not-started", error="no such file"),
    ProcessFacts(state="running"),
]


@pytest.mark.parametrize("process", GOOD)
def test_check_returns_the_receipt_of_a_clean_exit(process: ProcessFacts | None) -> None:
    """Code 0 by itself, or no process that could have failed; a partial capture does not change that (A2)."""
    made = receipt(process, streams={"stdout": stream(state="partial", reason="job-limit")})
    assert made.ok
    assert made.check() is made


@pytest.mark.parametrize("process", BAD)
def test_check_raises_for_every_other_end(process: ProcessFacts) -> None:
    """A code, a signal, and every state but `exited`, even with code 0 (A2); the receipt is in the error."""
    made = receipt(process, label="make", streams={"stdout": stream("secret output")})
    assert not made.ok
    with pytest.raises(JobFailed, match="make: ") as failure:
        made.check()
    assert failure.value.receipt is made
    assert "secret output" not in str(failure.value)


def test_read_text_asks_the_reader_that_is_bound() -> None:
    """The root knows the way to the file; the receipt only carries it."""

    async def reader(stream: StreamName) -> str:
        return f"all of {stream}"

    made = receipt(streams={"stdout": stream("preview"), "stderr": stream()})
    assert made.bind(reader) is made
    assert run(made.read_text("stderr")) == "all of stderr"


def test_read_text_without_a_reader_has_the_preview_if_that_is_all() -> None:
    """A small run leaves no file, and its receipt has its whole text."""
    assert run(receipt(streams={"stdout": stream("all\n")}).read_text("stdout")) == "all\n"


@pytest.mark.parametrize("preview", [None, PreviewFacts(state="clipped")])
def test_read_text_without_a_way_is_a_storage_error(preview: PreviewFacts | None) -> None:
    """A clipped preview is never passed off as the whole."""
    with pytest.raises(StorageError, match="no route"):
        receipt(streams={"stdout": stream(preview=preview)}).read_text("stdout").send(None)


def test_read_text_of_a_merged_stderr_is_empty() -> None:
    """It does not exist, so there is nothing to be read (B7)."""
    assert run(receipt().read_text("stderr")) == ""


def test_read_text_refuses_another_name() -> None:
    """There are two streams."""
    with pytest.raises(ValueError, match="stdout or stderr"):
        receipt().read_text("stdin").send(None)  # type: ignore[arg-type]


async def no_reader(stream: StreamName) -> str:
    """Stand for a route that must not be taken along."""
    raise AssertionError(stream)


def test_a_receipt_pickles_as_its_facts() -> None:
    """A bound reader belongs to one process and stays there."""
    made = receipt(ProcessFacts(state="exited", code=3), label="x")
    copy = pickle.loads(pickle.dumps(bound := made.model_copy().bind(no_reader)))
    assert {copy} == {made} == {bound} != {made.capture_id}


def test_for_sharing_keeps_the_facts_and_drops_what_is_incidental() -> None:
    """Identity, exit, capture, previews and references stay; nothing that is only true or only ours here (E9)."""
    secret = "/home/ada"
    facts = stream(
        "text",
        reference="tool-outputs/captures/x/stdout.log",
        path=f"{secret}/x",
        access="local",
        raw_copy=RawCopy(reference="r", path=f"{secret}/r"),
    )
    process = ProcessFacts(
        state="exited", code=3, pid=4242, error=f"{secret}: busy", survivors=(4243,), holders=(4244,), forced=True
    )
    made = receipt(
        process,
        streams={"stdout": facts, "stderr": None},
        conversation=secret,
        label=f"cat {secret}",
        command=("cat", secret),
        call_id="call-7",
        started_at=datetime(2026, 1, 2, tzinfo=UTC),
        usage=Usage(cpu=1.0),
        durability=Durability(barrier=True, directories=True, error=secret),
        limitations=("no-cgroup",),
    ).bind(no_reader)
    shared = made.for_sharing()
    assert secret not in shared.to_json().decode()
    assert not {"4242", "4243", "4244"} & set(shared.to_json().decode().replace(",", ":").split(":"))
    assert shared.process == ProcessFacts(state="exited", code=3, forced=True)
    assert shared.streams["stdout"] == facts.model_copy(
        update={"path": None, "raw_copy": None, "access": "needs-transfer"}
    )
    assert (shared.capture_id, shared.call_id, shared.capture) == (made.capture_id, "call-7", made.capture)
    assert (shared.started_at, shared.limitations) == (made.started_at, made.limitations)
    assert shared._reader is None
    assert made._reader is not None
    assert Receipt.parse(shared.to_json()) == shared


def test_render_and_fitted_are_the_receipt_s_own() -> None:
    """They are reached by the receipt, whatever module they live in."""
    made = receipt(ProcessFacts(state="exited", code=0), streams={"stdout": stream("x" * 3000)})
    assert made.fitted() is made
    assert len(made.fitted(2000).to_json()) <= 2000
    assert len(made.render(400)) <= 400 < len(made.render())


def test_the_worst_stream_is_the_capture_s() -> None:
    """Failed is worse than partial is worse than complete; a merged stream counts once (A3)."""
    partial, failed = stream(state="partial", reason="job-limit"), stream(state="failed", reason="internal")
    assert worst([stream(), None]) == CaptureFacts(state="complete")
    assert worst([stream(), partial]) == CaptureFacts(state="partial", reason="job-limit")
    assert worst([failed, partial]) == CaptureFacts(state="failed", reason="internal")
    unexpected = stream(state="partial", reason="internal")
    full = stream(state="failed", reason="no-space")
    assert worst([full, unexpected]) == worst([unexpected, full]) == CaptureFacts(state="failed", reason="no-space")
    with pytest.raises(ValueError, match="empty"):
        worst([None])


@pytest.mark.parametrize("better", ["job-limit", "conversation-limit"])
@pytest.mark.parametrize("worse", ["no-space", "io-error", "writer-stalled", "writer-stuck", "internal"])
def test_among_partial_streams_the_least_expected_reason_stands(better: str, worse: str) -> None:
    """A source that was still open outranks a limit, a storage fault outranks that, our own fault everything."""
    reasons = [stream(state="partial", reason=reason) for reason in (better, "drain-timeout", worse)]
    assert worst(reasons[:2]).reason == worst(reasons[1::-1]).reason == "drain-timeout"
    assert worst(reasons).reason == worst(reasons[::-1]).reason == worse
    internal = stream(state="partial", reason="internal")
    assert worst([*reasons, internal]).reason == "internal"


FACTS = st.builds(
    StreamFacts, state=st.sampled_from(STATES), reason=st.sampled_from(REASONS), retained=st.just(Retained())
)


@given(FACTS, FACTS)
def test_worst_takes_state_and_reason_of_one_stream_in_any_order(one: StreamFacts, other: StreamFacts) -> None:
    """The reason is that of the stream whose state it is, and the order of the streams does not matter."""
    verdict = worst([one, other])
    assert verdict == worst([other, one])
    assert (verdict.state, verdict.reason) in {(one.state, one.reason), (other.state, other.reason)}
