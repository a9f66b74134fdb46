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
from .needles import NOTHING
from .redactor import Redactor
from .returns import Returns, plain
from .rules import NO_RULES

if TYPE_CHECKING:
    from .decoder import Encoding
    from .engines import Engine
    from .needles import NeedleSet
    from .rules import RuleSet
    from .words import Representation

Policy = Literal["default/2", "none"]


class Sanitizer:
    """One stream's sanitiser. What its calls return is valid UTF-8 that already satisfies the policy [C2].

    `engine`: built of `needles` and their rules; without redaction, of nothing (`needles.NOTHING`).
    `stream`: the bytes are a stream's from its first one on, so that a byte order mark there is heeded; carriage
    returns that are no part of a line end stay in the text, each standing for a line feed.
    """

    __slots__ = ("_decoder", "_dropped", "_is_clean", "_redactor", "_returns", "_rules", "_stripper", "policy")

    def __init__(
        self,
        needles: NeedleSet,
        *,
        redact: bool = True,
        rules: RuleSet | None = None,
        engine: Engine | None = None,
        stream: bool = False,
    ) -> None:
        self.policy: Final[Policy] = "default/2" if redact else "none"
        self._decoder: Final = Decoder(marks=stream)
        self._stripper: Final = EscapeStripper(returns=stream)
        self._returns: Final = Returns()
        searched, self._rules = (needles, rules or needles.rules) if redact else (NOTHING, NO_RULES)
        chosen = engine or engine_for(searched, self._rules)
        self._is_clean = chosen.is_clean
        self._redactor: Final = Redactor(searched, self._rules, chosen)
        self._dropped = 0

    @property
    def encoding(self) -> Encoding:
        """Of the raw bytes, as far as they were fed."""
        return self._decoder.encoding

    @property
    def held(self) -> int:
        r"""Bytes fed and not decided: held by the redactor, an unfinished character or sequence, a `\r`; bounded."""
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
            chosen = engine or engine_for(needles, self._rules)
            self._is_clean = chosen.is_clean
            self._redactor.use(needles, chosen)

    def feed(self, raw: bytes, *, bulk: bool = False) -> bytes:
        """Return the text that `raw` decided. `bulk`: more is waiting, so up to 63 bytes may be held flat."""
        return self._redact(self._stripper.feed(self._decoder.feed(raw), self._is_clean), bulk=bulk)

    def quiet(self) -> bytes:
        """Return what need not be held, now that the pipe has nothing more to give: what no needle can begin with."""
        return self._redact(b"")

    def finish(self) -> bytes:
        """Return the rest, by the whole-text rule: the stream ended by itself [C7]. Nothing may be fed afterwards."""
        decided = self._redact(self._stripper.feed(self._decoder.finish()) + self._stripper.finish())
        return decided + self._returns.restored(b"", self._redactor.finish(), 0)

    def abort(self) -> bytes:
        """Return the rest, a marker for what is undecided: the stream was cut [C7]. Nothing may be fed afterwards."""
        self._dropped += self._decoder.abort()
        decided = self._redact(self._stripper.finish())
        return decided + self._returns.restored(b"", self._redactor.abort(), 0)

    def _redact(self, text: bytes, *, bulk: bool = False) -> bytes:
        decided = self._redactor.feed(plain(text), bulk=bulk)
        return self._returns.restored(text, decided, self._redactor.held)


def sanitise_text(text: str, needles: NeedleSet) -> str:
    """Return a label, an argument or an error text as output would be shown; tabs and line feeds stay [C8]."""
    sanitizer = Sanitizer(needles)
    return (sanitizer.feed(raw_bytes(text), bulk=True) + sanitizer.finish()).decode()
