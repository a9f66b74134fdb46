"""From the parts of a job to its receipt: each fact asked of whoever owns it, none inferred from another [A1-A4]."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final, Protocol

from .pipelines import members
from .sansio.exits import Exited, Signalled
from .sansio.leftover import carried
from .sansio.preview import share
from .sansio.receipt import (
    RECEIPT_BYTES,
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
from .sansio.redactor import UNDECIDED
from .sansio.routes import unreached
from .sansio.sanitizer import sanitise_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .course import Course
    from .errors import SpawnError
    from .pump import Pump
    from .sansio.needles import NeedleSet
    from .sansio.preview import PreviewText
    from .sansio.words import CaptureReason, StreamName
    from .storage import Capture, Owner, PublishOutcome, Sealed, SealedStream


class Keeper(Protocol):
    """Whatever has a capture, or knows why it has none."""

    @property
    def capture(self) -> Capture | None:
        """The files."""
        ...

    @property
    def unavailable(self) -> CaptureReason | None:
        """Why there are none."""
        ...


NOT_SEARCHED: Final = "secret-not-searched"
"""The limitation that is named, with the variable's name, where a value is too short, too common or too long [C5]."""
MOST_NAMED: Final = 16
"""Names of such values in one receipt, whose size is bounded; an environment may have any number."""


def not_searched(needles: NeedleSet) -> list[str]:
    """Return the limitations for known values that cannot be searched for: by name, each name once, the first ones."""
    names = dict.fromkeys(refused.partition(":")[0] for refused in needles.refused)
    return [f"{NOT_SEARCHED}:{name}" for name in list(names)[:MOST_NAMED]]


def needs_file(course: Course) -> bool:
    """Return whether this ending is worth a file: all of them are, but a small success of a foreground run [A7]."""
    if course.kept or course.request.options.keep == "raw":
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


def launch_record(owner: Owner, receipt: Receipt, **facts: object) -> bytes:
    """Return a launch record: who owns the capture, `facts` of its beginning, and its receipt so far [A7]."""
    record = {
        "schema": 1,
        "owner": {"name": owner.name, **owner.identity},
        **facts,
        "receipt": json.loads(receipt.fitted().to_json()),
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def after_publication(receipt: Receipt, outcome: PublishOutcome) -> Receipt:
    """Return the receipt as it has to be given out: itself, or with what its own publication failed at [D4]."""
    if outcome.error is None:
        return receipt
    durability = Durability(barrier=False, directories=outcome.directories, error=outcome.error)
    receipt = receipt.model_copy(update={"durability": durability})
    return receipt if outcome.place == "here" else unreached(receipt, gone=outcome.place == "gone")


def unspawned_receipt(course: Course, error: SpawnError) -> Receipt:
    """Return the receipt of a command that could not be started: there was no output, so none is missing [F6]."""
    streams: dict[StreamName, StreamFacts | None] = {"stdout": None, "stderr": None}
    for name in course.pumps:
        streams[name] = StreamFacts(state="unavailable", reason="not-started", raw=RawCounts(observed=0))
    receipt = _receipt(course, sealed=None, settled=True)
    process = ProcessFacts(state="not-started", error=clean(course.needles, str(error)))
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
    needles = course.needles
    return Receipt(
        capture_id=course.capture_id,
        job_id=course.job_id,
        call_id=None if request.options.call_id is None else clean(needles, request.options.call_id),
        conversation=None if conversation is None else carried(str(conversation.directory)),
        label=None if request.options.label is None else clean(needles, request.options.label),
        command=_command(course, needles) if request.options.record_command else None,
        started_at=course.started_at,
        ended_at=ended_at,
        duration=None if ended is None or began is None else ended - began,
        last_output_at=course.last_output_at,
        process=_process(course, settled=settled),
        # A job is among `Supervisor.jobs` before it has streams.
        capture=worst(streams.values()) if course.pumps else CaptureFacts(state="pending"),
        streams=streams,
        usage=_usage(course),
        durability=None if sealed is None else durability_facts(needles, sealed),
        limitations=_limitations(course, needles),
    )


def _command(course: Course, needles: NeedleSet) -> tuple[str, ...]:
    """Return the argv, or as much of its beginning as makes a receipt too long, so that `fitted` clips it and says so.

    It may have 100,000 parts, and a receipt is made on the loop: each part is cleaned once for the same values [B3].
    """
    known = course.clean_command
    if known is None or known[0] is not needles:
        parts: list[str] = []
        size = 0
        for part in course.request.shown_command:
            if size > RECEIPT_BYTES:
                break
            parts.append(clean(needles, part))
            size += len(parts[-1]) + len('"",')
        known = course.clean_command = needles, tuple(parts)
    return known[1]


def _limitations(course: Course, needles: NeedleSet) -> tuple[str, ...]:
    """Return what could not be given; the directory's own list grows while captures are made and synced."""
    conversation = course.services.conversation if course.capture is not None else None
    words = (*(() if conversation is None else conversation.limitations), *course.limitations)
    return tuple(dict.fromkeys(clean(needles, word) for word in words))


def durability_facts(needles: NeedleSet, sealed: Sealed) -> Durability:
    """Return what the first half of publication says of the barrier."""
    error = None if sealed.error is None else clean(needles, sealed.error)
    return Durability(barrier=sealed.barrier, directories=sealed.directories, error=error)


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
        kill_confirmed=course.kill_confirmed if settled else None,
        survivors=course.survivors if settled else None,
        holders=course.holders if settled else None,
        pipestatus=members(course) if settled else None,
    )


def _usage(course: Course) -> Usage | None:
    usage = None if course.child is None else course.child.usage
    return None if usage is None else Usage(cpu=usage.cpu, max_rss=usage.max_rss, source="rusage")


def _streams(course: Course, sealed: Sealed | None, *, settled: bool) -> Mapping[StreamName, StreamFacts | None]:
    previews = _previews(course)
    facts: dict[StreamName, StreamFacts | None] = {"stdout": None, "stderr": None}
    for name, pump in course.pumps.items():
        known = None if sealed is None else sealed.streams[name]
        stream = stream_facts(course, pump, previews.get(name), known, settled=settled)
        facts[name] = stream.model_copy(update={"raw_copy": _raw_copy(course, pump, sealed, settled=settled)})
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


def stream_facts(
    keeper: Keeper, pump: Pump, preview: PreviewText | None, sealed: SealedStream | None, *, settled: bool
) -> StreamFacts:
    """Return the facts of one stream."""
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
    facts = facts.model_copy(update=_place(keeper, pump, sealed))
    return facts.model_copy(update=_ending(keeper, pump, sealed)) if settled else facts


def _raw_copy(course: Course, pump: Pump, sealed: Sealed | None, *, settled: bool) -> RawCopy | None:
    """Return what there is of the stream's unsanitised copy [B8]; None where there is no file for one."""
    copy, capture = pump.raw_copy, course.capture
    if copy is None or capture is None:
        return None
    known = None if sealed is None else sealed.streams[copy.name]
    name = capture.spools[copy.name].path.name if known is None else known.name
    facts = RawCopy(
        reason=copy.reason,
        reference=f"{capture.reference}/{name}",
        path=carried(str(capture.path / name)) if known is None or known.place == "here" else None,
        size=copy.size if copy.boundary_known else None,
    )
    if not settled:
        return facts
    state, reason = copy.state, copy.reason
    if state == "complete" and known is not None and known.fault is not None:
        state, reason = ("failed" if known.fault.reason == "writer-stuck" else "partial"), known.fault.reason
    return facts.model_copy(update={"state": state, "reason": reason})


def _place(keeper: Keeper, pump: Pump, sealed: SealedStream | None) -> dict[str, str | None]:
    """Return where the stream's text is, never a path that leads nowhere [E7]."""
    capture = keeper.capture
    if capture is None:
        inline = pump.stream.retaining and not pump.stream.muted
        return {"access": "inline" if inline else "unavailable"}
    name = capture.spools[pump.stream.name].path.name if sealed is None else sealed.name
    if sealed is not None and sealed.place == "gone":
        return {"access": "unavailable"}
    reference = f"{capture.reference}/{name}"
    if sealed is not None and sealed.place == "elsewhere":
        return {"reference": reference, "access": "needs-transfer"}
    return {"reference": reference, "path": carried(str(capture.path / name)), "access": "local"}


def _ending(keeper: Keeper, pump: Pump, sealed: SealedStream | None) -> dict[str, object]:
    """Return what a settled stream says of its capture."""
    stream = pump.stream
    if stream.muted:
        gone = dict.fromkeys(("representation", "encoding", "policy", "lines", "ends_with_newline", "redactions"))
        return {"state": "disabled", "reason": None, **gone}
    if keeper.capture is None and keeper.unavailable is not None and stream.trusted:
        return {"state": "unavailable", "reason": keeper.unavailable}
    verdict = stream.verdict()
    if verdict.state == "complete" and sealed is not None and sealed.fault is not None:
        # After a failed data or name sync a capture is never complete [D4].
        reason = sealed.fault.reason
        # Where nobody knows what the file holds, nothing in it can be relied on [D8].
        return {"state": "failed" if reason == "writer-stuck" else "partial", "reason": reason}
    return {"state": verdict.state, "reason": verdict.reason}


def clean(needles: NeedleSet, text: str) -> str:
    """Return the text as it may be kept: labels, argv and errors pass the same redactor as output [C8].

    A defect of ours costs the text, never the receipt, and with it the child and its code [B5].
    """
    try:
        return sanitise_text(text, needles)
    except Exception as error:  # noqa: BLE001 -- contract B5 asks for exactly this containment
        asyncio.get_running_loop().call_exception_handler(
            {"message": "sanitising a text for a receipt failed; it is left out", "exception": error}
        )
        return UNDECIDED.decode()
