"""What the redaction reports share: a text as a stream becomes it, the same for every way to cut it (C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CUTS: Final = 400
"""How many places a text is cut at, one after the other, at most."""


def text_of(needles: NeedleSet, chunks: Iterable[bytes], *, quiet: bool) -> bytes:
    """Return what the chunks become; with `quiet` the pipe had nothing more after each of them."""
    sanitizer = Sanitizer(needles)
    text = b""
    for chunk in chunks:
        text += sanitizer.feed(chunk, bulk=not quiet)
        if quiet:
            text += sanitizer.quiet()
    return text + sanitizer.finish()


@pytest.fixture(scope="session")
def masked() -> Callable[..., str]:
    """Return a function that sanitises a text in one chunk, byte by byte, and cut in two at each place."""

    def sanitised(secrets: Mapping[str, Any], text: str | bytes) -> str:
        needles = NeedleSet.build(secrets)
        data = text.encode() if isinstance(text, str) else text
        places = range(0, len(data) + 1, len(data) // CUTS + 1)
        ways = [[data], [bytes((byte,)) for byte in data], *([data[:at], data[at:]] for at in places)]
        results = {text_of(needles, way, quiet=quiet) for way in ways for quiet in (False, True)}
        assert len(results) == 1
        return results.pop().decode()

    return sanitised


@pytest.fixture(scope="session")
def sanitizer() -> Callable[..., Sanitizer]:
    """Return a function that makes the sanitiser of a stream."""
    return lambda **secrets: Sanitizer(NeedleSet.build(secrets))
