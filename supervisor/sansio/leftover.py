"""What can be said of a capture that is looked at from its files alone (contract A4, D6, E2).

Two receipts are made here that no supervisor wrote: of a capture that lives, and of one whose supervisor is gone. Both
go on from the receipt of the launch record and add what the files show. What only the supervisor knew (raw counts, what
was held, redactions, the exit) is unknown from then on, never what it happened to be at the launch, and nothing is ever
promoted to complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from .receipt import (
    CaptureFacts,
    PreviewFacts,
    ProcessFacts,
    RawCopy,
    RawCounts,
    Receipt,
    Retained,
    StreamFacts,
    worst,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .receipt import Durability
    from .words import CaptureReason, CaptureState, StreamName

UNVERIFIED: Final = "unsynced-bytes-unverified"
"""The limitation that is named where the machine may have crashed since the text was written: what was not synced by
then may be lost or replaced by anything, and nobody can tell [D6]."""
NO_LAUNCH_RECORD: Final = "launch-record-lost"
"""The limitation that is named where nobody knows what the capture is of."""

CHILD: Final = "process"
"""The source of what a child printed."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """What `launch.json` says: who owns the capture, what was started, and whether a completion is owed for it."""

    owner: Mapping[str, object]
    receipt: Receipt | None
    kept: bool
    """The job was started to be waited for later [E5]; False for a foreground run, whose caller is gone with it."""

    @classmethod
    def parse(cls, data: bytes) -> LaunchRecord | None:
        """Return the record; None if it cannot be read, which a crash of the machine can cause. It is no evidence."""
        try:
            record: Any = from_json(data)
            owner, receipt, kept = record["owner"], record["receipt"], record.get("kept", False)
            # The keys of a JSON object are strings.
            return cls(dict(owner), Receipt.parse(json.dumps(receipt).encode()), kept=kept is True)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class RawLeft:
    """The file of an unsanitised copy as it was found."""

    name: str
    """In the capture's directory."""
    size: int


@dataclass(frozen=True, slots=True)
class StreamLeft:
    """One stream's file as it was found. None: not looked at, or not to be known."""

    name: str
    """In the capture's directory."""
    size: int
    verified_end: int | None = None
    lines: int | None = None
    ends_with_newline: bool | None = None
    sha256: str | None = None
    preview: PreviewFacts | None = None
    raw: RawLeft | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """Where a capture lies."""

    conversation: str
    reference: str
    """Of the capture's directory, relative to the conversation [E7]."""
    capture_id: str


Streams = dict["StreamName", StreamLeft | None]
"""What was found for each stream; None: it should be there, and it is not, or it is not a file that we may read."""


def live_receipt(site: Site, launch: LaunchRecord | None, streams: Streams) -> Receipt:
    """Return the receipt of a capture that may still grow: `pending`, with its committed lengths."""
    base = _base(site, launch)
    process = base.process or (ProcessFacts(state="unknown") if base.source == CHILD else None)
    return base.model_copy(
        update={
            "process": process,
            "capture": CaptureFacts(state="pending"),
            "streams": _streams(site, base, streams, "pending", None),
        }
    )


def lost_receipt(
    site: Site,
    launch: LaunchRecord | None,
    streams: Streams,
    *,
    durability: Durability | None = None,
    limitations: tuple[str, ...] = (),
) -> Receipt:
    """Return the receipt of a capture whose supervisor is gone: `partial`, its process `unknown` [D6]."""
    base = _base(site, launch)
    process = None  # of a text that came from no child
    if base.source == CHILD or base.process is not None:
        pid = None if base.process is None else base.process.pid
        process = ProcessFacts(state="unknown", reason="status-lost", pid=pid)
    facts = _streams(site, base, streams, "partial", "supervisor-lost")
    there = [stream for stream in facts.values() if stream is not None]
    named = (*base.limitations, *limitations, *(() if launch is not None else (NO_LAUNCH_RECORD,)))
    return base.model_copy(
        update={
            "process": process,
            "capture": worst(there) if there else CaptureFacts(state="partial", reason="supervisor-lost"),
            "streams": facts,
            "durability": durability,
            "limitations": tuple(dict.fromkeys(named)),
        }
    )


def unusable_receipt(site: Site, error: str) -> Receipt:
    """Return the receipt of a capture that must not be opened: somebody else's, or open to others [D2]."""
    return _base(site, None).model_copy(update={"limitations": (error,)})


def placed(receipt: Receipt, site: Site) -> Receipt:
    """Return the receipt with the paths that are true here: a conversation may have been moved or copied [D6, E7]."""
    conversation = carried(site.conversation)
    if receipt.conversation == conversation:
        return receipt
    streams = {name: facts and _placed_stream(facts, conversation) for name, facts in receipt.streams.items()}
    return receipt.model_copy(update={"conversation": conversation, "streams": streams})


def _placed_stream(facts: StreamFacts, conversation: str | None) -> StreamFacts:
    raw_copy = facts.raw_copy
    if raw_copy is not None:
        raw_copy = raw_copy.model_copy(update={"path": conversation and f"{conversation}/{raw_copy.reference}"})
    path = conversation and facts.reference and f"{conversation}/{facts.reference}"
    return facts.model_copy(update={"path": path, "raw_copy": raw_copy})


def _base(site: Site, launch: LaunchRecord | None) -> Receipt:
    if launch is not None and launch.receipt is not None:
        here = {"capture_id": site.capture_id, "conversation": carried(site.conversation)}
        return launch.receipt.model_copy(update=here)
    return Receipt(
        capture_id=site.capture_id,
        conversation=site.conversation,
        process=ProcessFacts(state="unknown"),
        capture=CaptureFacts(state="unavailable", reason="unsafe-directory"),
        streams={"stdout": None, "stderr": None},
    )


def carried(path: str) -> str | None:
    """Return the path, None if JSON cannot carry it: a copy of a model is not validated, and would not be written."""
    return path if path.isprintable() or path.encode("utf-8", "replace").decode() == path else None


def _streams(
    site: Site, base: Receipt, found: Streams, state: CaptureState, reason: CaptureReason | None
) -> dict[StreamName, StreamFacts | None]:
    facts: dict[StreamName, StreamFacts | None] = {"stdout": None, "stderr": None}
    for name in facts:
        known = base.streams.get(name)
        left = found.get(name)
        if left is not None:
            facts[name] = _stream(site, known, left, state, reason)
        elif known is not None or name in found:
            facts[name] = StreamFacts(state="pending" if state == "pending" else "failed", reason=reason)
    return facts


def _stream(
    site: Site, known: StreamFacts | None, left: StreamLeft, state: CaptureState, reason: CaptureReason | None
) -> StreamFacts:
    reference = f"{site.reference}/{left.name}"
    return StreamFacts(
        state=state,
        reason=reason,
        policy=None if known is None else known.policy,
        raw=RawCounts(),
        committed=left.size,
        retained=Retained(end=left.size, verified_end=left.verified_end),
        lines=left.lines,
        ends_with_newline=left.ends_with_newline,
        sha256=left.sha256,
        reference=reference,
        path=f"{site.conversation}/{reference}",
        access="local",
        raw_copy=_raw_copy(site, known, left.raw, state, reason),
        preview=left.preview,
    )


def _raw_copy(
    site: Site, known: StreamFacts | None, left: RawLeft | None, state: CaptureState, reason: CaptureReason | None
) -> RawCopy | None:
    """Return what is there of the copy; one that was promised and is not there is told of too."""
    if left is not None:
        reference = f"{site.reference}/{left.name}"
        path = carried(f"{site.conversation}/{reference}")
        return RawCopy(state=state, reason=reason, reference=reference, path=path, size=left.size)
    if known is None or known.raw_copy is None:
        return None
    return RawCopy(state="failed", reason=reason, reference=known.raw_copy.reference)
