"""What must hold of every receipt of a chaos run, and of the files that it names."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from shapes import SECRET, VARIABLE

from supervisor import Receipt
from supervisor.sansio.receipt import worst

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plans import JobPlan, RoundPlan

    from supervisor.sansio.receipt import ProcessFacts, StreamFacts

LINE_FEED: Final = b"\n"
MARKERS: Final = re.compile(r"(\[REDACTED:[^\]\n]*\])+\Z")
SECRETS: Final = (SECRET.encode(), VARIABLE.encode())
HALVES: Final = tuple(half for text in SECRETS for half in (text[: len(text) // 2], text[len(text) // 2 :]))
LEAST_MASKED: Final = 8
"""Bytes of a known value that are masked at an end that cut it [C7]."""
REASONS_OF: Final[dict[str, set[str | None]]] = {
    "exited": {None},
    "timeout": {"time-limit", "idle-limit"},
    "cancelled": {"caller", "supervisor-shutdown"},
    "not-started": {None},
}
"""Which reasons a process state may have here; `unknown` is not among them, nor is a kill by us from outside."""
DISK: Final = {
    "full": {"no-space"},
    "quota": {"no-space"},
    "short": {"writer-stalled", "writer-stuck"},
    "slow": {"writer-stalled", "writer-stuck"},
    "hold": {"writer-stalled", "writer-stuck"},
    "sync-text": {"io-error"},
    "sync-receipt": {"io-error"},
    "sync-directory": {"io-error"},
}
"""Which reasons a fault may give a capture."""


def settled(
    receipt: Receipt, plan: JobPlan, of: RoundPlan, *, touched: bool, closing: bool, slow: bool
) -> Iterator[str]:
    """Yield what is wrong with a receipt in itself."""
    process = receipt.process
    if process is None:
        yield "there are no facts of the process"
        return
    yield from _ending(process, plan, touched=touched, closing=closing)
    allowed = _reasons(of, slow=slow)
    states = (receipt.capture.state, receipt.capture.reason)
    if receipt.capture != worst(receipt.streams.values()):
        yield f"the capture is {states}, which is not its worst stream"
    for name, facts in receipt.streams.items():
        if facts is None:
            if process.state == "not-started":
                continue
            if not (name == "stderr" and plan.options.get("merge")):
                yield f"there is no {name}"
            continue
        for text in _stream(facts, process, allowed):
            yield f"{name}: {text}"
    yield from _disabled(receipt, plan)
    if any(secret in receipt.to_json() for secret in SECRETS):
        yield "the receipt has a secret"


def _ending(process: ProcessFacts, plan: JobPlan, *, touched: bool, closing: bool) -> Iterator[str]:
    if process.state not in REASONS_OF or process.reason not in REASONS_OF[process.state]:
        yield f"the process is {process.state} for {process.reason}"
    possible = {
        "time-limit": "time_limit" in plan.options,
        "idle-limit": "idle_limit" in plan.options,
        "supervisor-shutdown": closing,
        "caller": touched,
    }
    if process.reason is not None and not possible.get(process.reason):
        yield f"nobody gave cause for {process.reason}"
    if process.state == "not-started" or process.pid is None:
        if (process.code, process.signal) != (None, None):
            yield "what never ran has an exit"
        return
    if process.kill_confirmed is not False and (process.code is None) == (process.signal is None):
        yield f"code {process.code} and signal {process.signal}"
    if process.kill_confirmed and process.survivors and process.state != "exited":
        yield f"a confirmed end with survivors {process.survivors}"
    if process.state == "exited" and not touched and plan.shape.code is not None and process.code != plan.shape.code:
        yield f"it exited with {process.code} by signal {process.signal}, not with {plan.shape.code}"


def _reasons(of: RoundPlan, *, slow: bool) -> set[str | None]:
    faults = {reason for fault in of.faults for reason in DISK[fault.name]}
    late = {"writer-stalled", "writer-stuck"} if slow else set[str]()
    return {None, "drain-timeout", "job-limit", "conversation-limit", "no-directory", *faults, *late}


def _stream(  # noqa: C901 - one question after another
    facts: StreamFacts, process: ProcessFacts, allowed: set[str | None]
) -> Iterator[str]:
    raw = facts.raw
    if process.state == "not-started":
        if (facts.state, facts.reason, raw.observed) != ("unavailable", "not-started", 0):
            yield f"of a command that was not started: {facts}"
        return
    if raw.pending != 0 or facts.held != 0:
        yield f"not settled: {raw}, {facts.held} held"
    if None in {raw.observed, raw.accepted, raw.discarded} or raw.observed != raw.accepted + raw.discarded:  # type: ignore[operator]
        yield f"it does not add up: {raw}"
    if facts.state not in {"complete", "partial", "failed", "unavailable", "disabled"}:
        yield f"it is {facts.state}"
    if (facts.reason is None) != (facts.state in {"complete", "disabled"}) or facts.reason not in allowed:
        yield f"it is {facts.state} for {facts.reason}"
    if facts.state == "complete":
        lost = (raw.discarded, facts.uncommitted if facts.access != "inline" else 0, process.holders)
        if lost not in {(0, 0, None), (0, 0, ())}:
            yield f"complete, with {lost} discarded, uncommitted, holders"
    if facts.retained.end != facts.committed:
        yield f"its boundary is {facts.retained.end} and {facts.committed} are committed"
    if facts.access == "inline" and (facts.preview is None or facts.preview.state != "complete"):
        yield "its text is said to be inline, and is not"


def _disabled(receipt: Receipt, plan: JobPlan) -> Iterator[str]:
    disabled = receipt.capture.state == "disabled"
    if disabled != (plan.options.get("capture") == "none") and receipt.capture.state != "unavailable":
        yield f"the capture is {receipt.capture.state}"
    if disabled and (receipt.stdout or receipt.stderr):
        yield "a disabled capture shows text"


def on_disk(  # noqa: C901 - one question after another
    receipt: Receipt, plan: JobPlan, directory: Path, *, touched: bool
) -> Iterator[str]:
    """Yield where the files are not what the receipt says."""
    place = directory / "tool-outputs" / "captures" / receipt.capture_id
    for name, facts in receipt.streams.items():
        if facts is None:
            continue
        content = None if facts.reference is None else content_of(directory / facts.reference)
        for text in _file(facts, content):
            yield f"{name}: {text}"
        if name == "stdout":
            yield from _text(receipt, facts, content, plan, touched=touched)
        copy = facts.raw_copy
        if copy is not None and copy.size is not None and copy.state != "failed":
            size = len(content_of(directory / copy.reference) or b"")
            if size != copy.size or (copy.state == "complete" and size != facts.raw.observed):
                yield f"{name}: the copy has {size} bytes: {copy}, {facts.raw}"
    told, durability = place / "receipt.json", receipt.durability
    if durability is not None and durability.error is None:
        if not told.exists():
            yield "its receipt was not published"
        elif Receipt.parse(told.read_bytes()) != receipt:
            yield "its receipt on the disk is another one"
    if all(facts is None or facts.access == "inline" for facts in receipt.streams.values()) and place.exists():
        yield "it is said to be inline and has files"


def content_of(path: Path) -> bytes | None:
    """Return a stream's file, by either of its names: what had not returned in time may have renamed it since [E2]."""
    for name in (path, path.with_suffix(".log")):
        try:
            return name.read_bytes()
        except FileNotFoundError:
            continue
    return None


def _file(facts: StreamFacts, content: bytes | None) -> Iterator[str]:
    if facts.reference is None or facts.access == "unavailable":
        return
    if content is None:
        yield f"{facts.reference} is not there"
        return
    if facts.retained.end not in {None, len(content)}:
        yield f"the file has {len(content)} bytes, the receipt says {facts.retained.end}"
    if facts.sha256 is not None and hashlib.sha256(content).hexdigest() != facts.sha256:
        yield "the digest is that of another text"
    if facts.retained.end == len(content) and facts.state == "complete" and content.count(LINE_FEED) != facts.lines:
        yield f"{content.count(LINE_FEED)} lines, the receipt says {facts.lines}"


def _text(
    receipt: Receipt, facts: StreamFacts, content: bytes | None, plan: JobPlan, *, touched: bool
) -> Iterator[str]:
    """Yield where the text is not the beginning of what the command prints, or not all of it."""
    wanted, process = plan.shape.stdout, receipt.process
    if content is None and facts.access == "inline" and facts.preview is not None:
        content = facts.preview.text.encode()
    if (
        wanted is None
        or content is None
        or process is None
        or (plan.options.get("merge") and plan.shape.name == "both")
    ):
        return
    if plan.options.get("merge") and plan.shape.name == "complaint":
        wanted = "broken\n"
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        if facts.retained.end is not None and facts.state == "complete":
            yield f"the file is no UTF-8: {error}"
        return
    natural = process.state == "exited" and process.signal is None and not touched
    if facts.state == "complete" and natural and text != wanted:
        yield f"the text is not what was printed: {text[-80:]!r} for {wanted[-80:]!r}"
    cut = MARKERS.sub("", text).rstrip("\N{REPLACEMENT CHARACTER}")
    if not wanted.startswith(cut):
        at = next((i for i, pair in enumerate(zip(cut, wanted, strict=False)) if pair[0] != pair[1]), len(wanted))
        yield f"the text is no beginning of what was printed: at {at}: {cut[at : at + 80]!r}"


def hidden(directory: Path) -> Iterator[str]:
    """Yield the files that have a secret, or end with the beginning of one; raw copies are not looked at."""
    for path in directory.rglob("*"):
        if not path.is_file() or path.name.startswith(("stdout.raw", "stderr.raw")):
            continue
        content = path.read_bytes()
        if any(half in content for half in HALVES):
            yield f"{path.relative_to(directory)} has a secret or half of one"
        if any(content.endswith(text[:LEAST_MASKED]) for text in SECRETS):
            yield f"{path.relative_to(directory)} ends with the beginning of a secret"
