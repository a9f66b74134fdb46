"""What a command did once, as data: its chunks, the ends of its streams, its exit, and when each of them came.

A history turns a flaky real program into a deterministic fake: record it once, keep the JSON beside the tests, replay
it. Its times are data too; a replay keeps to them on a clock that it is given, and else does the same in the same order
as fast as it is read. It has what the program wrote as it wrote it: nothing is sanitised.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..sansio.exits import Exited, Signalled
from .fake_child import FakeChild
from .virtual_clock import sleep

if TYPE_CHECKING:
    from ..clock import Clock
    from ..sansio.words import StreamName

SCHEMA: Final = 1
STREAMS: Final[tuple[StreamName, ...]] = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Wrote:
    """A chunk, as one read(2) gave it."""

    at: float
    """Seconds after the start."""
    stream: StreamName
    data: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of a stream: nobody holds it any more."""

    at: float
    stream: StreamName


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit. A stream that ends later, or never, was held by a descendant."""

    at: float
    status: Exited | Signalled


Moment = Wrote | Closed | Ended


@dataclass(frozen=True, slots=True)
class History:
    """One run of a command. Made by `record`, a `Recorder`, or `parse`.

    Raises: ValueError at construction if the moments are not in the order of time, or the exit is not there once.
    """

    command: tuple[str, ...]
    merge: bool
    """Whether stdout carried both outputs."""
    moments: tuple[Moment, ...]

    def __post_init__(self) -> None:
        if sum(isinstance(moment, Ended) for moment in self.moments) != 1:
            raise ValueError("a history has one exit")
        times = [moment.at for moment in self.moments]
        if times != sorted(times):
            raise ValueError("the moments of a history are in the order of time")

    @property
    def streams(self) -> tuple[StreamName, ...]:
        """The outputs that it had."""
        return STREAMS[:1] if self.merge else STREAMS

    @property
    def status(self) -> Exited | Signalled:
        """How it ended."""
        return next(moment.status for moment in self.moments if isinstance(moment, Ended))

    def output(self, stream: StreamName = "stdout") -> bytes:
        """Return all that it wrote there."""
        return b"".join(moment.data for moment in self.moments if isinstance(moment, Wrote) and moment.stream == stream)

    def child(self, *, clock: Clock | None = None) -> FakeChild:
        """Return a new child that replays this; see `FakeChild.replay`."""
        return FakeChild.replay(self, clock=clock)

    async def play(self, child: FakeChild, clock: Clock | None = None) -> None:
        """Do with `child` what was recorded. Its stdin is read to the end meanwhile, so that no writer waits."""
        reading = asyncio.get_running_loop().create_task(child.read_stdin())
        try:
            await self._play(child, clock)
        finally:
            reading.cancel()
            await asyncio.wait({reading})
            if not reading.cancelled():
                reading.exception()  # the end of the child, which its script hears of too

    async def _play(self, child: FakeChild, clock: Clock | None) -> None:
        began = 0.0 if clock is None else clock.now()
        open_streams = {*self.streams}
        for moment in self.moments:
            if clock is not None:
                await sleep(clock, began + moment.at - clock.now())
            match moment:
                case Wrote(_, stream, data):
                    await child.feed(data, stream)
                case Closed(_, stream):
                    open_streams.discard(stream)
                    for name in STREAMS if self.merge else (stream,):
                        child.close(name)
                case Ended(_, status):
                    _end(child, status, hold_pipes=bool(open_streams))

    def to_json(self) -> str:
        """Return it as JSON, a moment a line: text as text where it is UTF-8, else in base64."""
        head = json.dumps({"schema": SCHEMA, "command": self.command, "merge": self.merge})[:-1]
        lines = ",\n".join(json.dumps(_plain(moment), ensure_ascii=False) for moment in self.moments)
        return f'{head}, "moments": [\n{lines}\n]}}\n'

    @classmethod
    def parse(cls, text: str) -> History:
        """Return the history of such a text. Raises: ValueError if it is none, or of another version."""
        try:
            found = json.loads(text)
            if found["schema"] != SCHEMA:
                raise ValueError(f"a history of schema {found['schema']!r}, not {SCHEMA}")
            moments = tuple(_moment(fields) for fields in found["moments"])
            return cls(tuple(map(str, found["command"])), bool(found["merge"]), moments)
        except (KeyError, TypeError, binascii.Error) as error:
            raise ValueError(f"this is no history: {error!r}") from error


def _end(child: FakeChild, status: Exited | Signalled, *, hold_pipes: bool) -> None:
    if isinstance(status, Exited):
        child.exit(status.code, hold_pipes=hold_pipes)
    else:
        child.exit(signal=status.signal, hold_pipes=hold_pipes)


def _plain(moment: Moment) -> dict[str, Any]:
    match moment:
        case Wrote(at, stream, data):
            try:
                return {"at": at, "stream": stream, "text": data.decode()}
            except UnicodeDecodeError:
                return {"at": at, "stream": stream, "base64": base64.b64encode(data).decode()}
        case Closed(at, stream):
            return {"at": at, "stream": stream, "end": True}
        case Ended(at, status):  # pragma: no branch -- every moment is named
            return (
                {"at": at, "code": status.code} if isinstance(status, Exited) else {"at": at, "signal": status.signal}
            )


def _moment(fields: dict[str, Any]) -> Moment:
    at = float(fields["at"])
    if "code" in fields:
        return Ended(at, Exited(int(fields["code"])))
    if "signal" in fields:
        return Ended(at, Signalled(int(fields["signal"])))
    stream = fields["stream"]
    if stream not in STREAMS:
        raise ValueError("a stream is named stdout or stderr")
    if fields.get("end"):
        return Closed(at, stream)
    if "text" in fields:
        return Wrote(at, stream, str(fields["text"]).encode())
    return Wrote(at, stream, base64.b64decode(fields["base64"], validate=True))
