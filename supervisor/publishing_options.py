"""What may be said of output that comes from elsewhere, checked at once: nothing was written if it is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from .request import CALL_ID_CHARACTERS
from .sansio.leftover import CHILD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .limits import Limits
    from .sansio.rules import Rule
    from .storage import Storage

Upstream = Literal["complete", "truncated", "unknown"]
"""What is known of a text that came from no child: all of it came, a part was cut off before, or nobody says."""

SOURCE: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
"""Who produced a text: a word, never a path, since other programs may make a name of it."""


class PublishingOptions(TypedDict, total=False):
    """The keyword arguments that `open_capture` and `publish_text` share."""

    label: str | None
    """What a person calls it; sanitised, at most 200 characters (A6)."""
    call_id: str | None
    """The host's own id of the call."""
    limits: Limits | None
    """What may be kept and shown."""
    secrets: Mapping[str, str] | None
    """Known values by name, besides those of credential-named variables (C5)."""
    rules: Iterable[Rule]
    """Forms of secrets that are masked besides those that everybody knows (C5)."""
    redaction: Literal["default", "none"]
    """`none` for text that is decoded and stripped only."""
    durability: Literal["barrier", "none"]
    """`none` to skip every sync; the receipt says which (D4)."""
    storage: Storage | None
    """Opens the directory; a seam for tests."""


def check_options(source: object, upstream: object, options: PublishingOptions) -> None:
    """Return if all can be used. Raises: TypeError, ValueError."""
    if not isinstance(source, str) or SOURCE.fullmatch(source) is None or source == CHILD:
        raise ValueError("a source or kind is a word such as 'browser', of at most 64 characters, and not 'process'")
    if upstream not in {"complete", "truncated", "unknown"}:
        raise ValueError('upstream must be "complete", "truncated" or "unknown"')
    if options.get("redaction", "default") not in {"default", "none"}:
        raise ValueError('redaction must be "default" or "none"')
    if options.get("durability", "barrier") not in {"barrier", "none"}:
        raise ValueError('durability must be "barrier" or "none"')
    _check_text("label", options.get("label"))
    _check_text("call_id", options.get("call_id"))
    if len(options.get("call_id") or "") > CALL_ID_CHARACTERS:
        raise ValueError(f"call_id has more than {CALL_ID_CHARACTERS} characters")


def _check_text(name: str, value: object) -> None:
    if not (value is None or isinstance(value, str)):
        raise TypeError(f"{name} must be a string")


def check_data(data: object) -> None:
    """Return if it can be written. Raises: TypeError."""
    if not isinstance(data, str | bytes):
        raise TypeError("a capture is written text or bytes")
