"""The messages about a job: facts first, outside of everything that is clipped, then what the child printed.

The receipt itself is in the message's metadata, as its JSON text: gptme writes metadata as JSON lines and as TOML, and
only a text survives both. What is shown of the output is as long as gptme shows it without the plug-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .names import BACKGROUND, module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from supervisor import Receipt

    from .jobs import SpooledJob
    from .reading import Part, StreamName

METADATA_KEY: Final = "spoolvisor_receipt"
"""Under which a message's metadata has the receipt."""
METADATA_BYTES: Final = 8 * 1024
"""Of the JSON there: its previews, which the message shows anyway, are what is shortened."""
STREAMS: Final[tuple[StreamName, ...]] = ("stdout", "stderr")

_CAPTURE: Final[Mapping[str, str]] = {
    "pending": "pending (the files still grow)",
    "partial": "partial (some output is not kept)",
    "failed": "failed (nothing kept can be relied on)",
    "unavailable": "unavailable (nothing is kept on disk)",
    "disabled": "disabled",
}


def message(content: str, receipt: Receipt) -> Any:  # noqa: ANN401 -- a `Message` of gptme
    """Return a system message that carries the receipt."""
    try:
        carried = receipt.fitted(METADATA_BYTES)
    except ValueError:  # its facts alone are longer
        carried = receipt
    metadata = {METADATA_KEY: carried.to_json().decode()}
    return module("gptme.message").Message("system", content, metadata=metadata)


def ending(receipt: Receipt) -> str:
    """Return how the process ended, as gptme says it, and the cause where it did not end by itself."""
    process = receipt.process
    if process is None or process.state == "running":
        return "running"
    cause = "" if process.state == "exited" else f"{process.state}: {process.reason}, "
    if process.signal is not None:
        return f"{cause}signal {process.signal}"
    return f"{cause}exit code {'unknown' if process.code is None else process.code}"


def facts(receipt: Receipt) -> str:
    """Return the capture's lines: state, reason, and for each stream that has text how much is kept and where."""
    capture = receipt.capture
    state = _CAPTURE.get(capture.state, capture.state)
    reason = f", {capture.reason}" if capture.reason else ""
    lines = [f"Capture {receipt.capture_id}: {state}{reason}"]
    for name in STREAMS:
        stream = receipt.streams.get(name)
        if stream is None or not stream.raw.observed:
            continue
        kept = "?" if stream.committed is None else stream.committed
        words = [f"{kept} bytes of {stream.representation or 'sanitised'} text kept of {stream.raw.observed} read"]
        if stream.redactions:
            words.append(f"{sum(stream.redactions.values())} redacted")
        if stream.reference and stream.access != "unavailable":
            words.append(f"`{stream.reference}`" + (f" (`{stream.path}`)" if stream.path else ""))
        lines.append(f"- {name}: {', '.join(words)}")
    lines.extend(f"- limitation: {limitation}" for limitation in receipt.limitations)
    return "\n".join(lines)


def body(read: Callable[[StreamName, int], Part]) -> str:
    """Return the newest text of both streams in blocks, each with what was left out before it; "" if there is none."""
    gptme = module(BACKGROUND)
    md_codeblock = module("gptme.util.context").md_codeblock
    blocks: list[str] = []
    limits = (gptme._STDOUT_DISPLAY_CHARS, gptme._STDERR_DISPLAY_CHARS)  # noqa: SLF001 -- as long as gptme shows it
    for name, limit in zip(STREAMS, limits, strict=True):
        shown = read(name, limit)
        text = shown.text
        if shown.skipped:
            text = f"...(truncated: {shown.skipped} bytes before this are not shown)...\n{text}"
        if text:
            blocks.append(md_codeblock(name, text))
        if shown.error:
            blocks.append(f"{name} could not be read in whole: {shown.error}")
    return "\n\n".join(blocks)


def completion(job: SpooledJob, receipt: Receipt) -> Any:  # noqa: ANN401 -- as `message`
    """Return the message about a job's end."""
    reason = f"\n\n{job.kill_reason}" if job.kill_reason else ""
    content = (
        f"Background shell job #{job.id} finished ({ending(receipt)}): `{name(job, receipt)}`{reason}\n\n"
        f"{facts(receipt)}\n\n{body(job.newest) or 'No output.'}"
    )
    return message(content, receipt)


def state(job: SpooledJob, read: Callable[[StreamName, int], Part], nothing: str) -> Any:  # noqa: ANN401 -- as `message`
    """Return the message about a job now, with what `read` gives of its output, or the words for none."""
    receipt = job.receipt
    shown = body(read)
    status = "Running" if job.is_running() else f"Finished ({ending(receipt)})"
    content = (
        f"**Job #{job.id}** - {status} ({job.elapsed_time():.1f}s)\nCommand: `{name(job, receipt)}`\n"
        f"{facts(receipt)}\n\n{shown or nothing}\n"
    )
    return message(content, receipt)


def name(job: SpooledJob, receipt: Receipt) -> str:
    """Return the command as it may be shown: sanitised, and cut where it is long."""
    return receipt.label or job.command
