"""The pure half of one stream: raw bytes in, decided text out, every byte accounted for.

It joins sanitiser, preview and ledger, and knows one thing that they do not: whether retention is still on. A raw byte
that is fed while it is on counts as accepted, afterwards as discarded [B6]; sanitiser and preview go on either way, so
that the last error is in the preview's tail [B5]. The first cause that ended retention stays [A3].

What is swapped at that moment is the account that a fed byte is booked to, not a flag on the hot path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .ledger import Ledger
from .returns import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from .preview import Preview
    from .sanitizer import Sanitizer
    from .words import CaptureReason, CaptureState, StreamName


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a stream: a state and reason of contract A1 and A3."""

    state: CaptureState
    reason: CaptureReason | None


class Stream:
    """One stream of one job. Feed it; write what it returns; tell it what was written."""

    def __init__(self, name: StreamName, sanitizer: Sanitizer, preview: Preview) -> None:
        self.name: Final = name
        self.sanitizer: Final = sanitizer
        self.preview: Final = preview
        self.ledger: Final = Ledger()
        self.reason: CaptureReason | None = None
        self.trusted = True
        """False once our own code failed on this stream: nothing more is fed, shown or kept."""
        self.muted = False
        """Whether the caller asked that no text is kept or shown."""
        self._book: Callable[[int], None] = self.ledger.accept

    @property
    def retaining(self) -> bool:
        """Whether decided text is still meant to be written."""
        return self.reason is None

    def observe(self, count: int) -> None:
        """`count` bytes were read from the pipe. They wait to be fed, unless nothing may be fed any more."""
        self.ledger.observe(count)
        if not self.trusted:
            self.ledger.discard(count)

    def feed(self, raw: bytes, *, bulk: bool) -> bytes:
        """Return the text that `raw` decided. `bulk` says that more is waiting already, so that a flat hold will do."""
        if self.muted:
            self._book(len(raw))
            return b""
        text = self.sanitizer.feed(raw, bulk=bulk)
        self._book(len(raw))
        return self._decided(text)

    def quiet(self) -> bytes:
        """Return what need not be held, now that the pipe has nothing more to give."""
        return self._decided(self.sanitizer.quiet())

    def finish(self, *, whole: bool) -> bytes:
        """Return the last text, by the whole-text rule or, if this is no real end, with a marker for the rest [C7]."""
        return self._decided(self.sanitizer.finish() if whole else self.sanitizer.abort())

    def end_retention(self, reason: CaptureReason) -> None:
        """Nothing more will be written, for this reason; a later reason changes nothing."""
        if self.reason is None:
            self.reason = reason
            self._book = self.ledger.discard

    def mute(self) -> None:
        """Keep no text of this stream anywhere [B9]: what is read is counted and discarded."""
        self.muted = True
        self._book = self.ledger.discard

    def distrust(self) -> None:
        """Our own code failed on this stream [B5]: what is pending or comes later is dropped, nothing may be fed."""
        self.trusted = False
        self.end_retention("internal")
        self.ledger.discard(self.ledger.pending)
        self.ledger.hold(0)

    def committed(self, count: int) -> None:
        """`count` bytes of the decided text are on disk now."""
        self.ledger.commit(count)

    def verdict(self) -> Verdict:
        """Return what became of the stream: `complete` only if nothing at all is missing [D3]."""
        if not self.trusted:
            return Verdict("failed", "internal")
        if self.reason is not None:
            # Where a file ends that nobody knows the length of, nothing can be trusted [D8].
            return Verdict("failed" if self.reason == "writer-stuck" else "partial", self.reason)
        if self.muted:
            return Verdict("disabled", None)
        if not self.ledger.snapshot().whole:
            raise AssertionError(f"{self.name} ended with bytes missing and no reason: {self.ledger.snapshot()}")
        return Verdict("complete", None)

    def _decided(self, text: bytes) -> bytes:
        self.ledger.decide(len(text))
        self.ledger.hold(self.sanitizer.held)
        if text:
            self.preview.feed(text)
        return plain(text)
