"""A receipt as text for a person or a model: facts first and in whole, then what the child printed.

Every line of a child's output begins with `| `, and no line of ours does, so nothing that it prints can be taken for a
fact (contract A5). For the same reason what we put into our own lines is kept to one line each, and the output is split
at everything that any reader takes for a line's end, U+2028 and its like included. Facts are never cut; a budget
shortens the output only (E6).
"""

from __future__ import annotations

import shlex
import signal
from typing import TYPE_CHECKING, Final

from .fitting import PREVIEW_STEPS, shorter
from .limitations import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .receipt import PreviewFacts, Receipt, StreamFacts
    from .words import Access, CaptureReason, CaptureState, ProcessState, StreamName

BODY: Final = "| "
_ORDER: Final[tuple[StreamName, ...]] = ("stdout", "stderr")
_NAME_CHARACTERS: Final = 200
"""Of a command that stands in for a label: as long as a label may be (A6)."""
_PIDS: Final = 16
"""How many are listed; their number is always told."""

_ROUTES: Final[dict[Access, str]] = {"needs-transfer": "needs a transfer", "inline": "all of it is here"}
_ENDS: Final[dict[ProcessState, str]] = {"not-started": "not started", "unknown": "ended unseen"}
_STATES: Final[dict[CaptureState, str]] = {
    "pending": "it still grows and is no evidence yet",
    "complete": "all output is accounted for",
    "partial": "some output is not kept",
    "failed": "nothing kept of it can be relied on",
    "disabled": "no output was to be kept",
    "unavailable": "nothing could be kept on disk",
}
_UPSTREAM: Final[dict[str, str]] = {
    "truncated": "all that came is kept, and it was cut before it came",
    "unknown": "all that came is kept, and nobody says whether it was whole",
}
_REASONS: Final[dict[CaptureReason, str]] = {
    "drain-timeout": "a pipe was still open after the exit, and what came later was not read",
    "job-limit": "the job's limit was reached, and what came later is at most in the preview",
    "conversation-limit": "the conversation's limit was reached, and what came later is at most in the preview",
    "no-space": "the disk was full, and what came later is at most in the preview",
    "io-error": "writing failed, and what came later is at most in the preview",
    "writer-stalled": "the disk was too slow, and what came later is at most in the preview",
    "writer-stuck": "a call to the file system did not return, so nobody knows how much is kept",
    "unsafe-directory": "the directory could not be made private, so no file was written",
    "no-directory": "there was no directory to write to",
    "not-started": "the command did not start",
    "supervisor-lost": "the supervisor ended first, and what it had not written yet is lost",
    "internal": "the supervisor itself failed here, so the text is not to be relied on",
}


def headline(receipt: Receipt) -> str:
    """Return one line: what it was and how it ended."""
    name = receipt.label
    if not name and receipt.command:
        name = shlex.join(receipt.command)
        name = name if len(name) <= _NAME_CHARACTERS else name[: _NAME_CHARACTERS - 1] + "…"
    return f"{_one_line(name or receipt.capture_id)}: {outcome(receipt)}"


def outcome(receipt: Receipt) -> str:
    """Return how the process ended, in one line: state, reason, and code or signal beside them (A2)."""
    process = receipt.process
    if process is None:
        upstream = f" ({_one_line(receipt.upstream)})" if receipt.upstream and receipt.upstream != "complete" else ""
        return f"text from {_one_line(receipt.source)}{upstream}"
    if process.state == "running":
        return "running" if process.pid is None else f"running, pid {process.pid}"
    words: list[str] = []
    if process.state != "exited":
        cause = f": {process.reason}" if process.reason else ""
        words.append(
            {"not-started": "not started", "unknown": "ended unseen"}.get(process.state, process.state) + cause
        )
    if process.signal is not None:
        words.append(f"ended by signal {process.signal}{_signal_name(process.signal)}")
    elif process.code is not None:
        words.append(f"exited {process.code}")
    duration = "" if receipt.duration is None else f" in {_seconds(receipt.duration)}"
    return ", ".join(words) + duration


def render(receipt: Receipt, budget: int | None = None) -> str:
    """See `Receipt.render`. Lines end in line feeds, the last one too."""
    streams = {name: facts for name, facts in receipt.streams.items() if facts is not None}
    lines = [headline(receipt), *_process_lines(receipt), _capture_line(receipt)]
    lines += [_stream_line(name, streams[name]) for name in _ORDER if name in streams]
    lines += _trust_lines(receipt)
    previews = {name: facts.preview for name, facts in streams.items()}
    ordered = _ORDER if receipt.ok else _ORDER[::-1]
    shown = [(name, preview) for name in ordered if (preview := previews.get(name)) is not None and _has_body(preview)]
    heads = [f"{name}:" for name, _ in shown] if len(shown) > 1 else [""] * len(shown)
    room = None if budget is None else budget - _length([*lines, *filter(None, heads)])
    bodies = _bodies([preview for _, preview in shown], room)
    for head, body in zip(heads, bodies, strict=True):
        lines += [head, *body] if head else body
    return "\n".join(lines) + "\n"


def _process_lines(receipt: Receipt) -> Iterable[str]:
    process = receipt.process
    if process is None:
        return
    if process.error:
        yield f"error: {_one_line(process.error)}"
    if process.kill_confirmed is False:
        yield "not everything that was to be ended is known to be gone"
    if process.survivors:
        yield f"still alive: {_pids(process.survivors)}"
    if process.holders:
        yield f"pipe held open by: {_pids(process.holders)}"
    if process.pipestatus:
        yield f"pipe status: {' '.join(map(str, process.pipestatus))}"


def _capture_line(receipt: Receipt) -> str:
    state, reason = receipt.capture.state, receipt.capture.reason
    if reason is None and state == "partial" and receipt.upstream is not None:
        return f"capture {state}: {_UPSTREAM.get(receipt.upstream, _STATES[state])}"
    if reason is None:
        return f"capture {state}: {_STATES[state]}"
    return f"capture {state}, {reason}: {_REASONS[reason]}"


def _stream_line(name: StreamName, facts: StreamFacts) -> str:
    words = [_amount(facts)]
    if facts.lines:
        unfinished = ", the last one unfinished" if facts.ends_with_newline is False else ""
        words.append(f"{facts.lines:,} line{'' if facts.lines == 1 else 's'}{unfinished}")
    if facts.state != "complete":
        words.append(facts.state if facts.reason is None else f"{facts.state} ({facts.reason})")
    if facts.representation == "binary":
        words.append("binary")
    if facts.replaced:
        words.append(f"{facts.replaced:,} bytes were not UTF-8")
    if facts.omitted:
        words.append(f"{facts.omitted:,} bytes omitted as undecidable")
    if facts.redactions:
        named = ", ".join(f"{_one_line(key)} {count:,}" for key, count in facts.redactions.items())
        words.append(f"redacted {sum(facts.redactions.values()):,} ({named})")
    if facts.reference is not None and facts.raw.observed != 0:
        words.append("in " + _place(facts.reference, facts.path, facts.access))
    if (copy := facts.raw_copy) is not None:
        short = "" if copy.state in {"complete", "pending"} else f" and {copy.state} ({copy.reason})"
        words.append(f"unsanitised{short} in {_place(copy.reference, copy.path, facts.access)}")
    return f"{name}: {', '.join(words)}"


def _amount(facts: StreamFacts) -> str:
    """Return how much text there is and how much of it can be read back; the two may be unknown apart."""
    if facts.raw.observed == 0:
        return "empty"
    kept = facts.retained.end
    parts = (facts.committed, facts.held, facts.uncommitted)
    total = None if None in parts else sum(part or 0 for part in parts)
    if total is None:
        return "size unknown" if kept is None else f"{kept:,} bytes kept of an unknown size"
    if total == 0:
        return "no text" if facts.raw.observed is None else f"no text from {facts.raw.observed:,} bytes read"
    if kept is None:
        return f"{total:,} bytes, kept to an unknown part"
    return f"{total:,} bytes" if kept == total else f"{kept:,} of {total:,} bytes kept"


def _place(reference: str, path: str | None, access: Access) -> str:
    """Return where the text is: the path if it is of use here, since the reference is its end."""
    if access == "local":
        return _one_line(path or reference)
    return f"{_one_line(reference)} ({_ROUTES.get(access, 'not available here')})"


def _trust_lines(receipt: Receipt) -> Iterable[str]:
    durability = receipt.durability
    if durability is not None and not durability.barrier:
        error = f": {_one_line(durability.error)}" if durability.error else ""
        yield f"not synced to disk{error}"
    elif durability is not None and durability.error:
        yield f"synced to disk with an error: {_one_line(durability.error)}"
    if receipt.limitations:
        yield "limitations: " + "; ".join(_one_line(plain(word)) for word in receipt.limitations)


def _bodies(previews: list[PreviewFacts], room: int | None) -> list[list[str]]:
    """Return the lines of each; the first may use all the room but what the next needs of its quarter."""
    if room is None:
        return [_body(preview, PREVIEW_STEPS) for preview in previews]
    bodies: list[list[str]] = []
    for index, preview in enumerate(previews):
        later = previews[index + 1 :]
        wanted = sum(_length(_body(other, PREVIEW_STEPS)) for other in later)
        least = sum(_length(_within(other, 0)) for other in later)
        body = _within(preview, room - max(least, min(wanted, room // 4)))
        room -= _length(body)
        bodies.append(body)
    return bodies


def _within(preview: PreviewFacts, room: int) -> list[str]:
    """Return the lines of the most of a preview that `room` characters hold; at least the one that counts the rest.

    A text that is no longer than that line is shown instead of being counted.
    """
    low, high = 0, PREVIEW_STEPS
    best, whole = _body(preview, low), _body(preview, high)
    if _length(whole) <= max(room, _length(best)):
        return whole
    while high - low > 1:
        middle = (low + high) // 2
        candidate = _body(preview, middle)
        if _length(candidate) <= room:
            low, best = middle, candidate
        else:
            high = middle
    return best


def _has_body(preview: PreviewFacts) -> bool:
    return bool(preview.head or preview.tail or preview.omitted_bytes)


def _body(preview: PreviewFacts, keep: int) -> list[str]:
    preview = shorter(preview, keep)
    head = [BODY + line for line in preview.head.splitlines()]
    tail = [BODY + line for line in preview.tail.splitlines()]
    if preview.state == "complete":
        return head + tail
    return [*head, omission(f"{preview.omitted_bytes:,}", preview), *tail]


def omission(count: str, preview: PreviewFacts) -> str:
    """Return the line that stands for `count` bytes of the text, and says how much of it was written over anyway."""
    frames = preview.frames_dropped
    states = f"{frames:,} overwritten state{'' if frames == 1 else 's'} of a line"
    return f"[{count} bytes omitted{f', with {states}' if frames else ''}]"


def _length(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _pids(pids: tuple[int, ...]) -> str:
    listed = " ".join(map(str, pids[:_PIDS])) + (" …" if len(pids) > _PIDS else "")
    return f"{len(pids)} process{'' if len(pids) == 1 else 'es'} ({listed})"


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal, or one of another platform
        return ""


def _seconds(duration: float) -> str:
    return f"{duration:.2f} s" if duration < 10 else f"{duration:,.1f} s"  # noqa: PLR2004 - three digits say enough


def _one_line(text: str) -> str:
    """Escape what could end a line or reorder it (a command may hold anything); printable text stays as it is."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
