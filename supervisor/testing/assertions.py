"""Assertions that explain themselves: what differs, in words, and the receipt beside it."""

from __future__ import annotations

import signal as signals
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, cast

from ..sansio.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from ..sansio.receipt import ProcessFacts, StreamFacts
    from ..sansio.words import CaptureReason, CaptureState, ProcessReason, ProcessState
    from ..supervisor import Supervisor

AROUND: Final = 20
"""Characters that are shown on each side of the first difference of two texts."""


class Expected(TypedDict, total=False):
    """What a test expects of a receipt. What it does not name may be anything."""

    process: ProcessState
    code: int | None
    signal: int | None
    reason: ProcessReason | None
    forced: bool
    kill_confirmed: bool | None
    survivors: tuple[int, ...] | list[int] | None
    capture: CaptureState
    capture_reason: CaptureReason | None
    stdout: str
    """The preview's text, which is all of it unless it was clipped."""
    stderr: str
    omitted: int
    """Bytes of both streams that were replaced by a marker because they could not be decided."""
    redactions: Mapping[str, int]
    """How often each name was redacted, in both streams together; all of them."""
    label: str | None
    command: tuple[str, ...] | list[str] | None
    barrier: bool | None
    """Whether a durability barrier stands behind it; None: there are no files, or nobody asked."""
    limitations: tuple[str, ...] | list[str]


def assert_receipt(receipt: Receipt, **expected: Unpack[Expected]) -> None:
    """Return if the receipt says what is expected.

    Raises:
        AssertionError: it says otherwise; the message has each difference in words, and the receipt.
        TypeError: an expectation of that name does not exist, or this is no receipt.
    """
    __tracebackhide__ = True
    _check_arguments(receipt, expected.keys())
    wrong: list[str] = []
    for name, wanted in expected.items():
        words, look = FACTS[name]
        found = look(receipt)
        if found != _as_kept(wanted):
            wrong.append(_difference(words, found, _as_kept(wanted)))
    if wrong:
        told = "\n".join(f"  {line}" for line in wrong)
        raise AssertionError(f"the receipt is not as expected:\n{told}\nthe receipt:\n{receipt.render()}")


def _as_kept(wanted: object) -> object:
    """Return a tuple for a list: receipts have the first, and tests write the second."""
    return tuple(cast("list[object]", wanted)) if isinstance(wanted, list) else wanted


def _check_arguments(receipt: object, names: AbstractSet[str]) -> None:
    if not isinstance(receipt, Receipt):
        raise TypeError(f"assert_receipt looks at a Receipt, not at a {type(receipt).__name__}")
    unknown = names - FACTS.keys()
    if unknown:
        raise TypeError(f"assert_receipt knows no {', '.join(sorted(unknown))}; it knows {', '.join(FACTS)}")


def assert_settled(supervisor: Supervisor) -> None:
    """Return if every job that the supervisor knows has its final receipt, with every byte accounted for.

    Raises: AssertionError, with what each of the others still waits for.
    """
    __tracebackhide__ = True
    wrong: list[str] = []
    for job in supervisor.jobs:
        receipt = job.receipt
        process = receipt.process
        if process is not None and process.state == "running":
            wrong.append(f"job {job.id} still runs, as pid {job.pid}: {_named(receipt)}")
        elif receipt.capture.state == "pending":
            wrong.append(f"job {job.id} has ended and is not settled; its pipes may be held: {_named(receipt)}")
        else:
            wrong.extend(f"job {job.id}: {line}" for line in _unsettled(receipt))
    if wrong:
        told = "\n".join(f"  {line}" for line in wrong)
        raise AssertionError(f"not everything is settled:\n{told}")


def _named(receipt: Receipt) -> str:
    return receipt.label or " ".join(receipt.command or ()) or receipt.capture_id


def _unsettled(receipt: Receipt) -> list[str]:
    wrong: list[str] = []
    for name, stream in receipt.streams.items():
        if stream is None:
            continue
        counts = stream.raw
        if counts.pending or stream.held:
            wrong.append(f"{name} has {counts.pending} bytes pending and {stream.held} held")
        parts = (counts.accepted, counts.pending, counts.discarded)
        if counts.observed is not None and None not in parts and counts.observed != sum(filter(None, parts)):
            wrong.append(f"{name} does not add up: {counts}")
    return wrong


def _difference(words: str, found: object, wanted: object) -> str:
    if isinstance(found, str) and isinstance(wanted, str) and max(len(found), len(wanted)) > 2 * AROUND:
        at = next(
            (index for index, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]),
            min(len(found), len(wanted)),
        )
        part = slice(max(0, at - AROUND), at + AROUND)
        lengths = f"{len(found)} and {len(wanted)} characters"
        return f"{words} differs from character {at} on ({lengths}): …{found[part]!r}…, not …{wanted[part]!r}…"
    return f"{words} is {_value(words, found)}, not {_value(words, wanted)}"


def _value(words: str, value: object) -> str:
    if value is None:
        return "nothing (null)"
    if words == "the signal" and isinstance(value, int):
        return f"{int(value)} ({signals.Signals(value).name})"
    return repr(value)


def _of_process(field: str) -> Callable[[Receipt], object]:
    def look(receipt: Receipt) -> object:
        process: ProcessFacts | None = receipt.process
        return None if process is None else getattr(process, field)

    return look


def _streams(receipt: Receipt) -> list[StreamFacts]:
    return [stream for stream in receipt.streams.values() if stream is not None]


def _redactions(receipt: Receipt) -> dict[str, int]:
    found: dict[str, int] = {}
    for stream in _streams(receipt):
        for name, count in (stream.redactions or {}).items():
            found[name] = found.get(name, 0) + count
    return found


FACTS: Final[Mapping[str, tuple[str, Callable[[Receipt], Any]]]] = {
    "process": ("the process state", _of_process("state")),
    "code": ("the exit code", _of_process("code")),
    "signal": ("the signal", _of_process("signal")),
    "reason": ("the reason of its end", _of_process("reason")),
    "forced": ("whether it had to be killed", _of_process("forced")),
    "kill_confirmed": ("whether its end is confirmed", _of_process("kill_confirmed")),
    "survivors": ("the list of survivors", _of_process("survivors")),
    "capture": ("the capture state", lambda receipt: receipt.capture.state),
    "capture_reason": ("the reason of the capture's state", lambda receipt: receipt.capture.reason),
    "stdout": ("stdout", lambda receipt: receipt.stdout),
    "stderr": ("stderr", lambda receipt: receipt.stderr),
    "omitted": ("the count of omitted bytes", lambda receipt: sum(item.omitted or 0 for item in _streams(receipt))),
    "redactions": ("what was redacted", _redactions),
    "label": ("the label", lambda receipt: receipt.label),
    "command": ("the command", lambda receipt: receipt.command),
    "barrier": (
        "whether a barrier stands behind it",
        lambda receipt: None if receipt.durability is None else receipt.durability.barrier,
    ),
    "limitations": ("the list of limitations", lambda receipt: receipt.limitations),
}
"""By the name of the expectation: its words, and where a receipt has it."""
