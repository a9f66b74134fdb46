r"""Which line ends were lone carriage returns, kept beside the redactor and not in it (contract B8, C1).

A program that shows its progress writes one state of a line over the other, with `\r` between them. The text that is
kept has a line feed for it, and so have all rules and needles: what searches for secrets knows one kind of line end.
The preview wants to know which they were, to show the last state alone. So the text is passed to the redactor with
line feeds, and what comes out is laid over what went in: it is the same but for markers, and each piece
between two markers stands in it, in order.

Where a value with a line feed in it was taken out, a piece may be found too early, and a line end then pass for the
other kind. That changes what a preview leaves out, and no other text: which kind it is decides nothing else.
"""

from __future__ import annotations

import re
from typing import Final

_MARKER: Final = re.compile(rb"\[REDACTED:[A-Za-z0-9_.-]+\]")


class Returns:
    """Remembers one stream's carriage returns across its redactor."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""
        """The text that the redactor holds, with its carriage returns."""

    def restored(self, fed: bytes, decided: bytes, held: int) -> bytes:
        """Return `decided` with its carriage returns.

        Args:
            fed: What was given to the redactor now, by `plain`.
            decided: What it returned for it.
            held: Bytes that it holds now.
        """
        if b"\r" not in fed and b"\r" not in self._held:
            whole = fed if held <= len(fed) else self._held + fed
            self._held = whole[len(whole) - held :]
            return decided
        text = self._held + fed
        end = len(text) - held
        self._held = text[end:]
        return _laid_over(decided, text[:end])


def plain(text: bytes) -> bytes:
    """Return the text with a line feed for each carriage return."""
    return text.replace(b"\r", b"\n")


def _laid_over(decided: bytes, text: bytes) -> bytes:
    searched = plain(text)
    if decided == searched:
        return text
    pieces: list[bytes] = []
    start = at = 0
    for marker in (*_MARKER.finditer(decided), None):
        piece = decided[start : len(decided) if marker is None else marker.start()]
        # The last piece is the text's end, unless the last marker's value reaches beyond it.
        last = marker is None and searched.endswith(piece)
        at = len(searched) - len(piece) if last else searched.find(piece, at)
        pieces.append(text[at : at + len(piece)] if at >= 0 else piece)
        at = max(at, 0) + len(piece)
        if marker is not None:
            pieces.append(marker[0])
            start = marker.end()
    return b"".join(pieces)
