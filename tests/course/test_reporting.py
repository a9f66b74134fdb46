"""From a job's parts to its receipt: each fact from its owner, none inferred from another (A1-A7, B9, D3-D8)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor.errors import SpawnError
from supervisor.limits import Limits
from supervisor.process import Usage
from supervisor.reporting import after_publication, final_receipt, needs_file, pending_receipt, unspawned_receipt
from supervisor.sansio.exits import Exited, Lost, Signalled
from supervisor.storage import Fault, PublishOutcome, Sealed, SealedStream

if TYPE_CHECKING:
    from conftest import MakeCourse, ScriptedChild

    from supervisor.course import Course
    from supervisor.sansio.exits import ExitStatus
    from supervisor.sansio.receipt import Receipt, StreamFacts
    from supervisor.sansio.words import StreamName

pytestmark = pytest.mark.asyncio

SECRET: Final = "hunter2-hunter2"


def adopt(course: Course, child: ScriptedChild) -> None:
    """The child runs."""
    course.adopt(child)  # type: ignore[arg-type]


async def ended(
    course: Course,
    child: ScriptedChild,
    status: ExitStatus = Exited(0),  # noqa: B008 -- frozen
    *,
    stdout: bytes = b"",
    stderr: bytes = b"",
    inline: bool = True,
) -> None:
    """The child wrote this and ended; the streams are decided, and kept inline if they may be."""
    if course.child is None:
        adopt(course, child)
    for name, text in (("stdout", stdout), ("stderr", stderr)):
        if text:
            course.output_seen(name, text)
    course.services.clock.advance(2.5)  # type: ignore[attr-defined]
    child.exit = status
    course.exit_noticed()
    for name, pump in course.pumps.items():
        course.pipe_ended(name, None)
        await pump.finish(whole=course.lifecycle.ended_normally)
        if inline:
            pump.keep_inline()
        await pump.flush(spill=False)


def capture_of(course: Course) -> None:
    """Give the course files."""
    spools = {name: SimpleNamespace(path=Path(f"/c/{name}.live")) for name in course.pumps}
    course.capture = SimpleNamespace(  # type: ignore[assignment]
        spools=spools, reference="tool-outputs/captures/a-capture", path=Path("/c/tool-outputs/captures/a-capture")
    )


def facts_of(receipt: Receipt, name: StreamName) -> StreamFacts:
    """Return a stream's facts; the stream is there."""
    facts = receipt.streams[name]
    assert facts is not None
    return facts


def sealed(course: Course, **faults: Fault) -> Sealed:
    """Return what the first half of publication says of these streams."""
    streams = {
        name: SealedStream(f"{name}.log", pump.stream.ledger.committed, "ab" * 32, faults.get(name))
        for name, pump in course.pumps.items()
    }
    return Sealed(streams, barrier=not faults, directories=True, error=next((f.error for f in faults.values()), None))


async def test_a_small_success_of_a_run_needs_no_file(make_course: MakeCourse, child: ScriptedChild) -> None:
    """Whatever it wrote is in the previews (A7)."""
    course = make_course()
    await ended(course, child, stdout=b"fine\n", stderr=b"a warning\n")
    assert not needs_file(course)
    receipt = final_receipt(course, None)
    assert (receipt.stdout, receipt.stderr) == ("fine\n", "a warning\n")
    assert receipt.capture.state == "complete"
    facts = facts_of(receipt, "stdout")
    assert (facts.access, facts.reference, facts.path, facts.sha256) == ("inline", None, None, None)
    assert (facts.lines, facts.ends_with_newline, facts.committed) == (1, True, 5)
    assert receipt.durability is None


@pytest.mark.parametrize("case", ["kept", "code", "signal", "lost", "cancelled", "large", "partial", "cut"])
async def test_every_other_ending_is_worth_a_file(make_course: MakeCourse, child: ScriptedChild, case: str) -> None:
    """A failure, an end that was asked for, a text that does not fit, a stream that lacks something (A7)."""
    course = make_course(kept=case == "kept", limits=Limits(preview_stdout_chars=10))
    status = {"code": Exited(1), "signal": Signalled(9), "lost": Lost()}.get(case, Exited(0))
    adopt(course, child)
    if case == "cancelled":
        course.request_end("caller")
    if case == "partial":
        course.pumps["stderr"].end_retention("job-limit")
    course.pumps["stdout"].cut = case == "cut"
    await ended(course, child, status, stdout=b"x" * (11 if case == "large" else 10), inline=False)
    assert needs_file(course)


async def test_a_pending_receipt_claims_nothing_that_is_not_known_yet(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """Counts of the moment, no verdict, no end, no confirmation (A4, A7, E2)."""
    course = make_course(kept=True)
    capture_of(course)
    adopt(course, child)
    course.pumps["stdout"].stream.observe(7)
    receipt = pending_receipt(course)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.pid, receipt.process.code) == ("running", 4242, None)
    assert (receipt.process.kill_confirmed, receipt.process.survivors) == (None, None)
    assert (receipt.ended_at, receipt.duration, receipt.durability, receipt.usage) == (None, None, None, None)
    assert receipt.started_at == course.services.clock.wall()
    facts = facts_of(receipt, "stdout")
    assert (facts.state, facts.representation, facts.sha256) == ("pending", None, None)
    assert (facts.raw.observed, facts.raw.pending) == (7, 7)
    assert (facts.reference, facts.access) == ("tool-outputs/captures/a-capture/stdout.live", "local")
    assert receipt.capture.state == "pending"


async def test_everything_that_a_caller_named_is_sanitised(make_course: MakeCourse) -> None:
    """Label, argv and call id pass the redactor of the output; the argv can be left out (C8)."""
    course = make_course(["curl", f"-H{SECRET}"], label=f"\x1b[1mcall {SECRET}", call_id=f"id-{SECRET}")
    receipt = pending_receipt(course)
    assert receipt.command == ("curl", "-H[REDACTED:TOKEN]")
    assert receipt.label == "call [REDACTED:TOKEN]"
    assert receipt.call_id == "id-[REDACTED:TOKEN]"
    assert SECRET.encode() not in receipt.to_json()
    silent = pending_receipt(make_course(record_command=False))
    assert (silent.command, silent.label, silent.call_id) == (None, None, None)


async def test_limitations_are_told_once_each(course: Course) -> None:
    """Whoever finds one adds it; the order is that of finding."""
    course.limitations += ["b", "a", "b"]
    assert pending_receipt(course).limitations == ("b", "a")


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (Exited(2), ("exited", None, 2, None)),
        (Signalled(11), ("exited", None, None, 11)),
        (Lost(), ("unknown", "status-lost", None, None)),
    ],
)
async def test_the_process_is_told_apart_from_the_capture(
    make_course: MakeCourse,
    child: ScriptedChild,
    status: ExitStatus,
    told: tuple[str, str | None, int | None, int | None],
) -> None:
    """Code and signal stand beside the state, and a failing child's capture is complete all the same (A1, A2)."""
    course = make_course(kept=True)
    capture_of(course)
    child.usage = Usage(1.5, 4096)  # type: ignore[assignment]
    await ended(course, child, status, stdout=b"text")
    course.release()
    receipt = final_receipt(course, sealed(course))
    process = receipt.process
    assert process is not None
    assert (process.state, process.reason, process.code, process.signal) == told
    assert (process.forced, process.kill_confirmed, process.survivors) == (False, True, ())
    assert receipt.duration == 2.5
    assert receipt.usage is not None
    assert (receipt.usage.cpu, receipt.usage.max_rss, receipt.usage.source) == (1.5, 4096, "rusage")
    assert receipt.capture.state == "complete"
    assert receipt.durability is not None
    assert (receipt.durability.barrier, receipt.durability.error) == (True, None)
    facts = facts_of(receipt, "stdout")
    assert (facts.reference, facts.sha256) == ("tool-outputs/captures/a-capture/stdout.log", "ab" * 32)


async def test_a_cause_stands_beside_the_code(make_course: MakeCourse, child: ScriptedChild) -> None:
    """Ended by us, and it exited with 0 all the same: both are told (A2, A3)."""
    course = make_course(time_limit=1)
    adopt(course, child)
    course.services.clock.advance(1)  # type: ignore[attr-defined]
    child.members = ()
    await ended(course, child, Exited(0))
    process = final_receipt(course, None).process
    assert process is not None
    assert (process.state, process.reason, process.code) == ("timeout", "time-limit", 0)


async def test_a_stream_without_everything_is_partial_with_its_first_reason(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """The capture takes its worst stream (A3)."""
    course = make_course(kept=True)
    capture_of(course)
    course.pumps["stderr"].end_retention("no-space")
    await ended(course, child, stdout=b"text")
    receipt = final_receipt(course, sealed(course))
    states = {name: (facts.state, facts.reason) for name, facts in receipt.streams.items() if facts is not None}
    assert states == {"stdout": ("complete", None), "stderr": ("partial", "no-space")}
    assert (receipt.capture.state, receipt.capture.reason) == ("partial", "no-space")


async def test_a_failed_sync_makes_a_whole_stream_partial_and_no_reason_better(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """After it a capture is never complete, and an earlier cause stays (D4, A3)."""
    course = make_course(kept=True)
    capture_of(course)
    course.pumps["stderr"].end_retention("job-limit")
    await ended(course, child, stdout=b"text")
    fault = Fault("io-error", "syncing stdout.live: Input/output error")
    receipt = final_receipt(course, sealed(course, stdout=fault, stderr=fault))
    states = {name: (facts.state, facts.reason) for name, facts in receipt.streams.items() if facts is not None}
    assert states == {"stdout": ("partial", "io-error"), "stderr": ("partial", "job-limit")}
    assert receipt.durability is not None
    assert (receipt.durability.barrier, receipt.durability.error) == (False, fault.error)


async def test_an_unknown_boundary_is_null(make_course: MakeCourse, child: ScriptedChild) -> None:
    """Never 0, and never what was known last (A4, D8)."""
    course = make_course(kept=True)
    capture_of(course)
    await ended(course, child, stdout=b"text", inline=False)
    pump = course.pumps["stdout"]
    pump.boundary_known, pump.stream.reason = False, "writer-stuck"
    course.pumps["stderr"].keep_inline()
    facts = facts_of(final_receipt(course, sealed(course)), "stdout")
    assert (facts.state, facts.reason) == ("failed", "writer-stuck")
    assert (facts.committed, facts.uncommitted, facts.retained.end) == (None, None, None)
    assert facts.raw.observed == 4


async def test_where_nothing_could_be_kept_the_preview_is_there_all_the_same(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """No directory: unavailable, with its reason, and the command ran (D1)."""
    course = make_course(kept=True)
    course.unavailable = "no-directory"
    for pump in course.pumps.values():
        pump.end_retention("no-directory")
    await ended(course, child, stdout=b"text", inline=False)
    receipt = final_receipt(course, None)
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "no-directory")
    assert receipt.stdout == "text"
    facts = facts_of(receipt, "stdout")
    assert (facts.access, facts.reference, facts.raw.discarded) == ("unavailable", None, 4)


async def test_a_defect_is_failed_also_where_nothing_could_be_kept(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """The worse fact is not hidden behind the other (B5)."""
    course = make_course(kept=True)
    course.unavailable = "no-directory"
    for pump in course.pumps.values():
        pump.end_retention("no-directory")
    course.pumps["stdout"].stream.distrust()
    await ended(course, child, inline=False)
    facts = facts_of(final_receipt(course, None), "stdout")
    assert (facts.state, facts.reason) == ("failed", "internal")


async def test_capture_none_leaves_no_trace_of_the_text(make_course: MakeCourse, child: ScriptedChild) -> None:
    """Disabled, and neither preview nor what would tell of the text: its lines, its redactions (B9)."""
    course = make_course(capture="none")
    for pump in course.pumps.values():
        pump.stream.mute()
    await ended(course, child, stdout=f"{SECRET}\ntext".encode())
    receipt = final_receipt(course, None)
    assert (receipt.capture.state, receipt.capture.reason) == ("disabled", None)
    assert (receipt.stdout, receipt.stderr) == ("", "")
    for facts in receipt.streams.values():
        assert facts is not None
        assert (facts.preview, facts.lines, facts.ends_with_newline, facts.redactions) == (None, None, None, None)
        assert (facts.representation, facts.access) == (None, "unavailable")
    assert not any(word in receipt.to_json() for word in (b"text", b"TOKEN"))


async def test_a_merged_stream_is_called_stdout_and_has_no_sibling(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """One pipe carried both (B7)."""
    course = make_course(merge=True)
    await ended(course, child, stdout=b"both\n")
    receipt = final_receipt(course, None)
    assert receipt.streams["stderr"] is None
    assert receipt.stdout == "both\n"
    assert receipt.capture.state == "complete"


@pytest.mark.parametrize(("status", "stderr"), [(Exited(1), 100), (Exited(0), 50)])
async def test_stderr_has_priority_on_failure(
    make_course: MakeCourse, child: ScriptedChild, status: ExitStatus, stderr: int
) -> None:
    """Both want more than both ceilings allow (E6)."""
    limits = Limits(preview_stdout_chars=100, preview_stderr_chars=100, preview_bytes=100)
    course = make_course(limits=limits)
    await ended(course, child, status, stdout=b"o" * 100, stderr=b"e" * 100, inline=False)
    for pump in course.pumps.values():
        pump.end_retention("no-directory")
    receipt = final_receipt(course, None)
    shown: dict[StreamName, Any] = {name: facts and facts.preview for name, facts in receipt.streams.items()}
    assert shown["stderr"].returned_bytes == stderr
    assert shown["stdout"].returned_bytes + shown["stderr"].returned_bytes <= 100


async def test_a_command_that_did_not_start_has_a_settled_receipt(make_course: MakeCourse) -> None:
    """No output, hence none missing; the error text is sanitised too (F6, C8)."""
    course = make_course(kept=True)
    error = SpawnError(f"no such program: {SECRET}", errno=2, fault="program")
    course.lifecycle.not_spawned()
    receipt = unspawned_receipt(course, error)
    assert receipt.process is not None
    assert (receipt.process.state, receipt.process.error) == ("not-started", "no such program: [REDACTED:TOKEN]")
    assert (receipt.process.code, receipt.process.pid) == (None, None)
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "not-started")
    for facts in receipt.streams.values():
        assert facts is not None
        assert (facts.state, facts.reason, facts.raw.observed) == ("unavailable", "not-started", 0)
    assert receipt.started_at == receipt.ended_at == course.services.clock.wall()


async def test_a_publication_that_failed_is_in_the_receipt_that_is_given_out(
    make_course: MakeCourse, child: ScriptedChild
) -> None:
    """The receipt from memory says what the one on disk could not; otherwise it is the same (D4)."""
    course = make_course(kept=True)
    capture_of(course)
    await ended(course, child, stdout=b"text")
    receipt = final_receipt(course, sealed(course))
    assert (
        after_publication(receipt, PublishOutcome(published=True, durable=True, directories=True, error=None))
        is receipt
    )
    failed = after_publication(receipt, PublishOutcome(published=False, durable=False, directories=None, error="EIO"))
    assert failed.durability is not None
    assert (failed.durability.barrier, failed.durability.directories, failed.durability.error) == (False, None, "EIO")
    assert failed.model_copy(update={"durability": receipt.durability}) == receipt
