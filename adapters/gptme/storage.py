"""Saved outputs of gptme's tools: published as captures instead of written as files that anybody may read.

The text is sanitised, the file private and never overwritten, and the conversation's allowance holds for it. It is
what the tool had in hand, so its receipt says that nobody knows whether it was all (`upstream`).
"""

from __future__ import annotations

import errno
import functools
import logging
import re
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapters.blocking import call
from supervisor import publish_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from supervisor import Receipt

log: Final = logging.getLogger("spoolvisor.gptme")

_shortening: Final[ContextVar[bool]] = ContextVar("spoolvisor_shortening", default=False)
"""A command's result is being shortened in this context."""

SAVE_SECONDS: Final = 30.0
"""After which a directory that does not answer is given up."""


def saver(secrets: Mapping[str, str]) -> Callable[..., tuple[str, Path]]:
    """Return what stands in for gptme's `save_large_output`; it masks these values besides the environment's."""

    def save_large_output(
        content: str,
        logdir: Path,
        output_type: str = "tool",
        command_info: str | None = None,
        original_tokens: int | None = None,
    ) -> tuple[str, Path]:
        """Save a large output and return a summary and the path, as gptme's own does.

        Raises: OSError: nothing could be saved. Those who would remove the text then leave it. Where the text is a
        command's result that is being shortened, the error would take all of it away: there it is not raised, and the
        path is none that could be opened, and says so.
        """
        kind = source_word(output_type)
        receipt = _published(logdir, content, kind, command_info, secrets)
        stream = None if receipt is None else receipt.streams["stdout"]
        path = None if stream is None else stream.path
        reason = "disk does not answer" if receipt is None else receipt.capture.reason
        if not path and not _shortening.get():
            raise OSError(errno.EIO, f"an output could not be saved: {reason or 'unavailable'}")
        saved = Path(path) if path else Path(f"not saved ({reason or 'unavailable'})")
        summary = [f"[Large {output_type} output {'saved' if path else 'not saved'}]"]
        if command_info:
            summary.append(f"Command: {command_info}")
        if original_tokens:
            summary.append(f"Original: {original_tokens} tokens")
        if path and reason:
            summary.append(f"Saved in part: {reason}")
        summary.append(f"Full output: {saved}")
        return "\n".join(summary), saved

    return save_large_output


def shortener(stock: Callable[..., str]) -> Callable[..., str]:
    """Return what stands in for the shell tool's `_shorten_stdout`: itself, but no disk takes the result away."""

    @functools.wraps(stock)
    def shorten(*arguments: object, **options: object) -> str:
        token = _shortening.set(True)
        try:
            return stock(*arguments, **options)
        finally:
            _shortening.reset(token)

    return shorten


def source_word(output_type: str) -> str:
    """Return the tool's name as a receipt's `source` may be; it never becomes part of a path."""
    word = re.sub(r"[^a-z0-9_-]+", "-", output_type.lower()).strip("-_0123456789")[:40]
    return "tool" if word in {"", "process"} else word


def _published(logdir: Path, content: str, kind: str, label: str | None, secrets: Mapping[str, str]) -> Receipt | None:
    with suppress(OSError):  # then publishing says what is wrong
        Path(logdir).mkdir(parents=True, exist_ok=True)
    text = content.encode("utf-8", "surrogatepass")  # what is no character becomes U+FFFD, and is counted
    try:
        return call(
            lambda: publish_text(logdir, text, kind=kind, upstream="unknown", label=label, secrets=secrets),
            SAVE_SECONDS,
        )
    except TimeoutError:
        log.warning("an output of %s was not saved: %s does not answer", kind, logdir)
        return None
