"""Making a receipt smaller: to fit its reserved room (design, "The public API"), or to be shown to somebody else (E9).

Trimming goes by a table, in order, until the JSON is short enough; a later row is touched only when the rows before it
are exhausted. Every cut is visible: a preview that lost text is `clipped`, and each row leaves a word in
`limitations`. Counts stay true: what a shorter preview lost is added to `omitted_bytes`, and redactions whose names
are dropped are summed under one name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .receipt import PreviewFacts, Receipt, StreamFacts

COMMAND_CHARACTERS: Final = 8 * 1024
"""An argv may be megabytes (execve(2): a quarter of the stack limit); before a preview is touched it is cut to this."""
OTHER_NAMES: Final = "(others)"
"""No rule or variable is called this: marker names are `[A-Za-z0-9_.-]`."""
PREVIEW_STEPS: Final = 1024
"""Into how many shares a preview is divided for being shortened."""


class _Step(NamedTuple):
    """`apply(receipt, keep)` for a `keep` of 0 to `most(receipt)`: the more kept, the longer the JSON."""

    limitation: str
    most: Callable[[Receipt], int]
    apply: Callable[[Receipt, int], Receipt]


def fitted(receipt: Receipt, limit: int) -> Receipt:
    """See `Receipt.fitted`."""
    for step in _STEPS:
        if len(receipt.to_json()) <= limit:
            return receipt
        receipt = _trimmed(receipt, step, limit)
    if len(receipt.to_json()) > limit:
        raise ValueError("the limit is below what the untrimmable facts take")
    return receipt


def _trimmed(receipt: Receipt, step: _Step, limit: int) -> Receipt:
    """Return what the step makes of the receipt when it keeps the most that fits, or as little as it can."""
    low, high = 0, step.most(receipt)
    if high == 0:
        return receipt
    limitations = tuple(dict.fromkeys((*receipt.limitations, step.limitation)))
    named = receipt.model_copy(update={"limitations": limitations})
    best = step.apply(named, 0)
    # `high` keeps all and is known to be too long, so the answer is below it.
    while high - low > 1:
        middle = (low + high) // 2
        candidate = step.apply(named, middle)
        if len(candidate.to_json()) <= limit:
            low, best = middle, candidate
        else:
            high = middle
    return best


def shareable(receipt: Receipt) -> Receipt:
    """See `Receipt.for_sharing`."""
    process, durability = receipt.process, receipt.durability
    if process is not None:
        process = process.model_copy(update={"pid": None, "survivors": None, "holders": None, "error": None})
    if durability is not None:
        durability = durability.model_copy(update={"error": None})
    return receipt.model_copy(
        update={
            "conversation": None,
            "command": None,
            "label": None,
            "usage": None,
            "process": process,
            "durability": durability,
            "streams": _each_stream(receipt, _without_route),
        }
    )


def _without_route(facts: StreamFacts) -> StreamFacts:
    access = "needs-transfer" if facts.access == "local" else facts.access
    return facts.model_copy(update={"path": None, "access": access, "raw_copy": None})


def _each_stream(receipt: Receipt, change: Callable[[StreamFacts], StreamFacts]) -> Mapping[str, StreamFacts | None]:
    return {name: None if facts is None else change(facts) for name, facts in receipt.streams.items()}


def _facts(receipt: Receipt) -> list[StreamFacts]:
    return [facts for facts in receipt.streams.values() if facts is not None]


def _command_length(receipt: Receipt) -> int:
    return sum(len(argument) + 1 for argument in receipt.command or ())


def _command_excess(receipt: Receipt) -> int:
    return max(0, _command_length(receipt) - COMMAND_CHARACTERS)


def _with_long_command(receipt: Receipt, keep: int) -> Receipt:
    return _with_command(receipt, COMMAND_CHARACTERS + keep)


def _with_command(receipt: Receipt, keep: int) -> Receipt:
    """Keep the first `keep` characters of the command, each argument counted with one separator."""
    arguments: list[str] = []
    for argument in receipt.command or ():
        if keep <= 0:
            break
        arguments.append(argument[:keep])
        keep -= len(argument) + 1
    return receipt.model_copy(update={"command": tuple(arguments) or None})


def _preview_steps(receipt: Receipt) -> int:
    shown = any(facts.preview is not None and facts.preview.returned_bytes for facts in _facts(receipt))
    return PREVIEW_STEPS if shown else 0


def _with_previews(receipt: Receipt, keep: int) -> Receipt:
    """Keep the same share, `keep` in 1,024, of the characters of every preview."""

    def change(facts: StreamFacts) -> StreamFacts:
        if facts.preview is None:
            return facts
        preview = shorter(facts.preview, keep)
        lost = facts.access == "inline" and preview.state == "clipped"
        access = "unavailable" if lost else facts.access
        return facts.model_copy(update={"preview": preview, "access": access})

    return receipt.model_copy(update={"streams": _each_stream(receipt, change)})


def shorter(preview: PreviewFacts, keep: int) -> PreviewFacts:
    """Return the preview with `keep` in 1,024 of its characters: the first of its head, the last of its tail."""
    text = preview.head + preview.tail
    if preview.state == "complete":
        kept = len(text) * keep // PREVIEW_STEPS
        in_head = kept // 4
        in_tail = kept - in_head
    else:
        in_head = len(preview.head) * keep // PREVIEW_STEPS
        in_tail = len(preview.tail) * keep // PREVIEW_STEPS
    head, tail = text[:in_head], text[len(text) - in_tail :]
    returned = len(head.encode()) + len(tail.encode())
    lost = len(text.encode()) - returned
    if lost == 0:
        return preview
    return preview.model_copy(
        update={
            "state": "clipped",
            "head": head,
            "tail": tail,
            "returned_bytes": returned,
            "omitted_bytes": preview.omitted_bytes + lost,
        }
    )


def _pids(receipt: Receipt) -> int:
    process = receipt.process
    return 0 if process is None else max(len(process.survivors or ()), len(process.holders or ()))


def _with_pids(receipt: Receipt, keep: int) -> Receipt:
    """Keep the first `keep` survivors and holders; a list that is None stays None, for nobody knows."""
    process = receipt.process
    assert process is not None, "no process has no pids, so there was nothing to trim"
    survivors = None if process.survivors is None else process.survivors[:keep]
    holders = None if process.holders is None else process.holders[:keep]
    process = process.model_copy(update={"survivors": survivors, "holders": holders})
    return receipt.model_copy(update={"process": process})


def _redaction_names(receipt: Receipt) -> int:
    return max((len(facts.redactions or ()) for facts in _facts(receipt)), default=0)


def _with_redactions(receipt: Receipt, keep: int) -> Receipt:
    """Keep the `keep` most frequent names of each stream, and the sum of the rest."""

    def change(facts: StreamFacts) -> StreamFacts:
        if not facts.redactions or len(facts.redactions) <= keep:
            return facts
        ranked = sorted(facts.redactions.items(), key=lambda item: -item[1])
        others = sum(count for _, count in ranked[keep:])
        return facts.model_copy(update={"redactions": {**dict(ranked[:keep]), OTHER_NAMES: others}})

    return receipt.model_copy(update={"streams": _each_stream(receipt, change)})


def _label_length(receipt: Receipt) -> int:
    return len(receipt.label or "")


def _with_label(receipt: Receipt, keep: int) -> Receipt:
    return receipt.model_copy(update={"label": (receipt.label or "")[:keep] or None})


def _error_length(receipt: Receipt) -> int:
    errors = (receipt.process and receipt.process.error, receipt.durability and receipt.durability.error)
    return max(len(error or "") for error in errors)


def _with_errors(receipt: Receipt, keep: int) -> Receipt:
    parts: dict[str, Any] = {}
    if receipt.process is not None:
        parts["process"] = receipt.process.model_copy(update={"error": (receipt.process.error or "")[:keep] or None})
    if receipt.durability is not None:
        error = (receipt.durability.error or "")[:keep] or None
        parts["durability"] = receipt.durability.model_copy(update={"error": error})
    return receipt.model_copy(update=parts)


_STEPS: Final[tuple[_Step, ...]] = (
    _Step(
        "command-clipped",
        _command_excess,
        _with_long_command,
    ),
    _Step("preview-clipped", _preview_steps, _with_previews),
    _Step("survivors-clipped", _pids, _with_pids),
    _Step("redactions-clipped", _redaction_names, _with_redactions),
    _Step("label-clipped", _label_length, _with_label),
    _Step("command-clipped", _command_length, _with_command),
    _Step("errors-clipped", _error_length, _with_errors),
)
