"""What stands between a child's bytes and everything that keeps or shows them: decoder, stripper, redactor (C1-C8).

The stages are in this order because each undoes a way to hide a secret from the next: a character in two chunks, a
colour change in mid-token, a NUL after every byte. Without redaction the same stages run with nothing to search for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from .decoder import Decoder
from .encodings import raw_bytes
from .engines.stdlib import engine_for
from .escapes import EscapeStripper
from .needles import NeedleSet
from .redactor import Redactor

if TYPE_CHECKING:
    from .engines import Engine
    from .words import Representation

Policy = Literal["default/1", "none"]
_NOTHING: Final = NeedleSet.build()


class Sanitizer:
    """One stream's sanitiser. What its calls return is valid UTF-8 that already satisfies the policy [C2]."""

    __slots__ = ("_decoder", "_dropped", "_redactor", "_stripper", "policy")

    encoding: Final = Decoder.encoding

    def __init__(self, needles: NeedleSet, *, redact: bool = True, engine: Engine | None = None) -> None:
        self.policy: Final[Policy] = "default/1" if redact else "none"
        self._decoder: Final = Decoder()
        self._stripper: Final = EscapeStripper()
        searched = needles if redact else _NOTHING
        self._redactor: Final = Redactor(searched, engine if engine and redact else engine_for(searched))
        self._dropped = 0

    @property
    def held(self) -> int:
        """Bytes fed and not decided: held by the redactor, or an unfinished character or sequence; at most 69."""
        return self._decoder.pending + self._stripper.pending + self._redactor.held

    @property
    def omitted(self) -> int:
        """Bytes that an abort left undecided, those of a cut character included."""
        return self._redactor.omitted + self._dropped

    @property
    def replaced(self) -> int:
        """Raw bytes that U+FFFD stands for."""
        return self._decoder.replaced

    @property
    def controls_removed(self) -> int:
        """Bytes of escapes and control characters that were dropped."""
        return self._stripper.removed

    @property
    def redactions(self) -> dict[str, int]:
        """Markers by name; a copy."""
        return dict(self._redactor.redactions)

    @property
    def representation(self) -> Representation:
        """What the text is of the raw bytes; `binary` says that it is a poor display, and settles at the end [B8]."""
        if self._decoder.binary:
            return "binary"
        return "decoded" if self.policy == "none" else "redacted"

    def use(self, needles: NeedleSet, *, engine: Engine | None = None) -> None:
        """Search for `needles` from now on, in held text too [C5]; without redaction nothing changes."""
        if self.policy != "none":
            self._redactor.use(needles, engine or engine_for(needles))

    def feed(self, raw: bytes, *, bulk: bool = False) -> bytes:
        """Return the text that `raw` decided. `bulk`: more is waiting, so up to 63 bytes may be held flat."""
        return self._redactor.feed(self._stripper.feed(self._decoder.feed(raw)), bulk=bulk)

    def quiet(self) -> bytes:
        """Return what need not be held, now that the pipe has nothing more to give: what no needle can begin with."""
        return self._redactor.feed(b"")

    def finish(self) -> bytes:
        """Return the rest, by the whole-text rule: the stream ended by itself [C7]. Nothing may be fed afterwards."""
        decided = self._redactor.feed(self._stripper.feed(self._decoder.finish()))
        self._stripper.finish()
        return decided + self._redactor.finish()

    def abort(self) -> bytes:
        """Return the rest, a marker for what is undecided: the stream was cut [C7]. Nothing may be fed afterwards."""
        self._dropped += self._decoder.abort()
        self._stripper.finish()
        return self._redactor.abort()


def sanitise_text(text: str, needles: NeedleSet) -> str:
    """Return a label, an argument or an error text as output would be shown; tabs and line feeds stay [C8]."""
    sanitizer = Sanitizer(needles)
    return (sanitizer.feed(raw_bytes(text), bulk=True) + sanitizer.finish()).decode()
