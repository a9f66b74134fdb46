"""From the parts of a job to its receipt: each fact asked of whoever owns it, none inferred from another [A1-A4]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .sansio.exits import Exited, Signalled
from .sansio.preview import share
from .sansio.receipt import (
    CaptureFacts,
    Durability,
    PreviewFacts,
    ProcessFacts,
    RawCounts,
    Receipt,
    Retained,
    StreamFacts,
    Usage,
    worst,
)
from .sansio.sanitizer import sanitise_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .course import Course
    from .errors import SpawnError
    from .pump import Pump
    from .sansio.preview import PreviewText
    from .sansio.words import StreamName
    from .storage import PublishOutcome, Sealed, SealedStream


def needs_file(course: Course) -> bool:
    """Return whether this ending is worth a file: all of them are, but a small success of a foreground run [A7]."""
    if course.kept:
        return True
    lifecycle = course.lifecycle
    whole = all(pump.stream.retaining and not pump.cut for pump in course.pumps.values())
    return not (lifecycle.cause is None and lifecycle.status == Exited(0) and whole and course.fits_receipt())


def pending_receipt(course: Course) -> Receipt:
    """Return what can be said while the job lives; nothing in it is evidence yet [E2]."""
    return _receipt(course, sealed=None, settled=False)


def final_receipt(course: Course, sealed: Sealed | None) -> Receipt:
    """Return the settled facts; `sealed` is what the first half of publication said, None without files."""
    return _receipt(course, sealed=sealed, settled=True)


def after_publication(receipt: Receipt, outcome: PublishOutcome) -> Receipt:
    """Return the receipt as it has to be given out: itself, or with what its own publication failed at [D4]."""
    if outcome.error is None:
        return receipt
    durability = Durability(barrier=False, directories=outcome.directories, error=outcome.error)
    return receipt.model_copy(update={"durability": durability})


def unspawned_receipt(course: Course, error: SpawnError) -> Receipt:
    """Return the receipt of a command that could not be started: there was no output, so none is missing [F6]."""
    streams: dict[StreamName, StreamFacts | None] = {"stdout": None, "stderr": None}
    for name in course.pumps:
        streams[name] = StreamFacts(state="unavailable", reason="not-started", raw=RawCounts(observed=0))
    receipt = _receipt(course, sealed=None, settled=True)
    process = ProcessFacts(state="not-started", error=_clean(course, str(error)))
    capture = CaptureFacts(state="unavailable", reason="not-started")
    now = course.services.clock.wall()
    return receipt.model_copy(
        update={"process": process, "capture": capture, "streams": streams, "started_at": now, "ended_at": now}
    )


def _receipt(course: Course, *, sealed: Sealed | None, settled: bool) -> Receipt:
    request, services = course.request, course.services
    streams = _streams(course, sealed, settled=settled)
    conversation = services.conversation
    ended_at, ended, began = course.ended_at, course.ended, course.began
    shown = request.options.record_command
    return Receipt(
        capture_id=course.capture_id,
        job_id=course.job_id,
        call_id=None if request.options.call_id is None else _clean(course, request.options.call_id),
        conversation=None if conversation is None else str(conversation.directory),
        label=None if request.options.label is None else _clean(course, request.options.label),
        command=tuple(_clean(course, part) for part in request.shown_command) if shown else None,
        started_at=course.started_at,
        ended_at=ended_at,
        duration=None if ended is None or began is None else ended - began,
        process=_process(course, settled=settled),
        capture=worst(streams.values()),
        streams=streams,
        usage=_usage(course),
        durability=None if sealed is None else Durability.model_validate(sealed),
        limitations=_limitations(course),
    )


def _limitations(course: Course) -> tuple[str, ...]:
    """Return what could not be given; the directory's own list grows while captures are made and synced."""
    conversation = course.services.conversation if course.capture is not None else None
    words = (*(() if conversation is None else conversation.limitations), *course.limitations)
    return tuple(dict.fromkeys(words))


def _process(course: Course, *, settled: bool) -> ProcessFacts:
    lifecycle = course.lifecycle
    status = lifecycle.status
    # A request to end it is no end: until the exit is seen, a snapshot says that the child runs.
    state, reason = lifecycle.process_facts() if settled or status is not None else ("running", None)
    return ProcessFacts(
        state=state,
        code=status.code if isinstance(status, Exited) else None,
        signal=status.signal if isinstance(status, Signalled) else None,
        reason=reason,
        pid=None if course.child is None else course.child.get_pid(),
        forced=lifecycle.forced,
        kill_confirmed=lifecycle.kill_confirmed if settled else None,
        survivors=course.survivors if settled else None,
    )


def _usage(course: Course) -> Usage | None:
    usage = None if course.child is None else course.child.usage
    return None if usage is None else Usage(cpu=usage.cpu, max_rss=usage.max_rss, source="rusage")


def _streams(course: Course, sealed: Sealed | None, *, settled: bool) -> Mapping[StreamName, StreamFacts | None]:
    previews = _previews(course)
    facts: dict[StreamName, StreamFacts | None] = {"stdout": None, "stderr": None}
    for name, pump in course.pumps.items():
        known = None if sealed is None else sealed.streams[name]
        facts[name] = _stream(course, pump, previews.get(name), known, settled=settled)
    return facts


def _previews(course: Course) -> Mapping[StreamName, PreviewText]:
    pumps = course.pumps
    if not pumps or pumps["stdout"].stream.muted:
        return {}
    stderr = pumps.get("stderr")
    failed = course.lifecycle.cause is not None or course.lifecycle.status not in {None, Exited(0)}
    previews = share(
        pumps["stdout"].stream.preview,
        None if stderr is None else stderr.stream.preview,
        course.services.limits,
        failed=failed,
    )
    texts: dict[StreamName, PreviewText | None] = {"stdout": previews[0], "stderr": previews[1]}
    return {name: text for name, text in texts.items() if text is not None}


def _stream(
    course: Course, pump: Pump, preview: PreviewText | None, sealed: SealedStream | None, *, settled: bool
) -> StreamFacts:
    stream = pump.stream
    counts, text, sanitizer = stream.ledger.snapshot(), stream.preview, stream.sanitizer
    known = pump.boundary_known
    facts = StreamFacts(
        state="pending",
        representation=sanitizer.representation if settled else None,
        encoding=sanitizer.encoding,
        policy=sanitizer.policy,
        raw=RawCounts(
            observed=counts.observed, accepted=counts.accepted, pending=counts.pending, discarded=counts.discarded
        ),
        committed=counts.committed if known else None,
        held=counts.held,
        uncommitted=counts.uncommitted if known else None,
        omitted=sanitizer.omitted,
        replaced=sanitizer.replaced,
        controls_removed=sanitizer.controls_removed,
        redactions=dict(sanitizer.redactions),
        retained=Retained(end=counts.committed if known else None),
        lines=text.lines,
        ends_with_newline=text.ends_with_newline,
        sha256=None if sealed is None else sealed.digest,
        preview=None if preview is None else PreviewFacts.model_validate(preview),
    )
    facts = facts.model_copy(update=_place(course, pump, sealed))
    return facts.model_copy(update=_ending(course, pump, sealed)) if settled else facts


def _place(course: Course, pump: Pump, sealed: SealedStream | None) -> dict[str, str | None]:
    """Return where the stream's text is."""
    capture = course.capture
    if capture is None:
        inline = pump.stream.retaining and not pump.stream.muted
        return {"access": "inline" if inline else "unavailable"}
    name = capture.spools[pump.stream.name].path.name if sealed is None else sealed.name
    return {"reference": f"{capture.reference}/{name}", "path": str(capture.path / name), "access": "local"}


def _ending(course: Course, pump: Pump, sealed: SealedStream | None) -> dict[str, object]:
    """Return what a settled stream says of its capture."""
    stream = pump.stream
    if stream.muted:
        gone = dict.fromkeys(("representation", "encoding", "policy", "lines", "ends_with_newline", "redactions"))
        return {"state": "disabled", "reason": None, **gone}
    if course.capture is None and course.unavailable is not None and stream.trusted:
        return {"state": "unavailable", "reason": course.unavailable}
    verdict = stream.verdict()
    if verdict.state == "complete" and sealed is not None and sealed.fault is not None:
        # After a failed data or name sync a capture is never complete [D4].
        reason = sealed.fault.reason
        # Where nobody knows what the file holds, nothing in it can be relied on [D8].
        return {"state": "failed" if reason == "writer-stuck" else "partial", "reason": reason}
    return {"state": verdict.state, "reason": verdict.reason}


def _clean(course: Course, text: str) -> str:
    """Return the text as it may be kept: labels, argv and errors pass the same redactor as output [C8]."""
    return sanitise_text(text, course.services.needles(course.request.options.env))
