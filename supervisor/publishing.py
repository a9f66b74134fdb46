"""Output that comes from elsewhere (a library call, a browser, another protocol), with the receipt of any other.

It goes the way of a child's bytes: sanitised before it is kept, within the same limits, settled and published by the
same steps. What differs is who says that it was whole. A pipe's end is seen; that of a stranger is only told, so a
capture is `complete` only if its producer says so, and a text that is known or thought to be cut never is [D3].
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final, Self, Unpack

from . import ending, matching, reporting
from .clock import SystemClock
from .errors import StorageError
from .limits import Limits
from .publishing_options import PublishingOptions, Upstream, check_data, check_options
from .pump import SLICE_BYTES, Pump
from .recovering import bound
from .request import conversation_path
from .sansio.cursor import new_capture_id
from .sansio.encodings import raw_bytes
from .sansio.leftover import carried
from .sansio.needles import NeedleSet, credential_values
from .sansio.preview import Preview, share
from .sansio.receipt import Receipt, worst
from .sansio.retention import Retention
from .sansio.rules import DEFAULT_RULES
from .sansio.sanitizer import Sanitizer
from .sansio.stream import Stream
from .sinks import Nowhere, Sink, SpoolSink
from .storage import LocalStorage

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType

    from .sansio.words import CaptureReason
    from .storage import Capture, Conversation, Sealed, Storage

SLICE_CHARACTERS: Final = SLICE_BYTES // 4
"""Of a text: as many as are a slice of bytes at most, so that none of it is encoded long before its turn."""


async def publish_text(
    conversation: str | os.PathLike[str] | None,
    text: str | bytes,
    *,
    kind: str = "tool",
    upstream: Upstream = "complete",
    **options: Unpack[PublishingOptions],
) -> Receipt:
    """Keep a finished text in the conversation and return its receipt, whose `source` is `kind`.

    It is kept in a file, however short it is. Text may be UTF-8 or UTF-16 with a byte order mark if it is bytes.

    Raises:
        ValueError, TypeError: an argument cannot be used; nothing was written. A fault of the disk is in the receipt.

    Cancellation: what was taken by then is published as cut; then the cancellation goes on.
    """
    async with open_capture(conversation, source=kind, upstream=upstream, **options) as capture:
        await capture.write(text)
    return capture.receipt


def open_capture(
    conversation: str | os.PathLike[str] | None,
    *,
    source: str,
    upstream: Upstream = "complete",
    **options: Unpack[PublishingOptions],
) -> OpenCapture:
    """Return a capture to be written inside `async with`; after the block its `receipt` is final and published.

    `source` names the producer, a word of lower-case letters, digits, `-` and `_`. `upstream` says whether all of its
    output will come here; only `complete` can make the capture so. An exception that leaves the block cuts it.

    Raises:
        ValueError, TypeError: an argument cannot be used. A directory that cannot be used is no error (D2).
    """
    return OpenCapture(conversation, source, upstream, options)


class _Gate:
    """The valve of a pump whose bytes do not come from a pipe: whoever writes waits."""

    def __init__(self) -> None:
        self.room: Final = asyncio.Event()
        self.room.set()

    def pause_reading(self) -> None:
        self.room.clear()

    def resume_reading(self) -> None:
        self.room.set()


class OpenCapture:
    """A text on its way to its receipt. Made by `open_capture`; one event loop. It has one stream, called `stdout`."""

    def __init__(
        self,
        conversation: str | os.PathLike[str] | None,
        source: str,
        upstream: Upstream,
        options: PublishingOptions,
    ) -> None:
        check_options(source, upstream, options)
        self._directory: Final = conversation_path(conversation)
        self._source: Final = source
        self._upstream: Upstream = upstream
        self._options: Final = options
        self._limits: Final = options.get("limits") or Limits()
        self._clock: Final = SystemClock()
        self._storage: Final[Storage] = options.get("storage") or LocalStorage()
        rules = DEFAULT_RULES.with_rules(options.get("rules", ()))
        self._needles: Final = NeedleSet.build(credential_values(os.environ), options.get("secrets") or {}, rules=rules)
        self.capture_id: Final = new_capture_id(self._clock.wall(), os.urandom(16))
        """Its identity, by which it can be read while it is written [E2]."""
        self.capture: Capture | None = None
        self.unavailable: CaptureReason | None = None
        self._conversation: Conversation | None = None
        self._limitations: list[str] = []
        self._pump: Pump | None = None
        self._gate: Final = _Gate()
        self._turn: Final = asyncio.Lock()
        self._began = self._clock.now()
        self._started_at: datetime = self._clock.wall()
        self._receipt: Receipt | None = None
        self._entered = False

    @property
    def receipt(self) -> Receipt:
        """The final receipt after the block, inside it a snapshot in state `pending`.

        Raises: RuntimeError before the block.
        """
        return self._receipt or self._made(None, settled=False)

    def truncate(self) -> None:
        """The producer turns out to have cut its output, or will be cut: the capture cannot be complete any more."""
        self._upstream = "truncated"

    async def write(self, data: str | bytes) -> None:
        """Return when `data` is taken, in memory or on disk. It waits while the disk is behind, never for good [B4].

        Two tasks may write; each one's data stays together. Cancellation: a part is taken, and the text counts as cut.

        Raises:
            RuntimeError: outside the `async with` block.
            TypeError: `data` is neither text nor bytes.
        """
        check_data(data)
        if self._pump is None or self._pump.ended:
            raise RuntimeError("a capture is written inside its `async with` block")
        size = SLICE_CHARACTERS if isinstance(data, str) else SLICE_BYTES
        try:
            async with self._turn:
                for start in range(0, len(data), size):
                    self._pump.data_received(raw_bytes(data[start : start + size]))
                    await self._gate.room.wait()
        except BaseException:
            self.truncate()
            raise

    async def __aenter__(self) -> Self:
        """Open the files. Returns a capture that can be written, whatever the directory is like."""
        if self._entered:
            raise RuntimeError("a capture is entered once")
        self._entered = True
        self._began, self._started_at = self._clock.now(), self._clock.wall()
        try:
            await self._open()
            self._pump = self._new_pump()
            await self._record(self._pump)
        except BaseException:
            await ending.outlast(asyncio.get_running_loop().create_task(self._discard()))
            raise
        self._pump.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Settle and publish the receipt. An exception cuts the text; it goes on, as a cancellation does."""
        if error is not None:
            self.truncate()
        await ending.outlast(asyncio.get_running_loop().create_task(self._settle()))

    async def _open(self) -> None:
        if self._directory is None:
            self.unavailable = "no-directory"
            return
        durability = self._options.get("durability", "barrier")
        try:
            self._conversation = await self._storage.open(self._directory, limits=self._limits, durability=durability)
            self.capture = await self._conversation.create_capture(self.capture_id, ("stdout",))
        except StorageError as error:
            self.unavailable = error.reason
            self._limitations.append(str(error))

    def _new_pump(self) -> Pump:
        limits = self._limits
        redact = self._options.get("redaction", "default") == "default"
        if redact:
            self._limitations.extend(reporting.not_searched(self._needles))
        engine = matching.matcher_of(self._needles, redact=redact)
        sanitizer = Sanitizer(self._needles, redact=redact, engine=engine, stream=True)
        sink: Sink = Nowhere()
        if self.capture is not None:
            retention = Retention(limits, merged=True)
            sink = SpoolSink("stdout", self.capture.spools["stdout"], retention, self.capture.reservation)
        pump = Pump(
            Stream("stdout", sanitizer, Preview(limits.preview_stdout_chars, limits.preview_bytes)),
            sink,
            clock=self._clock,
            stall_timeout=limits.stall_timeout,
            high_mark=lambda: limits.queue_bytes,
            on_hold=_nothing,
            on_unhold=_nothing,
            on_progress=_nothing,
        )
        pump.valve = self._gate
        if self.unavailable is not None:
            pump.end_retention(self.unavailable)
        return pump

    async def _record(self, pump: Pump) -> None:
        """Write the launch record, by which others know that the capture lives, and no completion is owed for it."""
        if self.capture is None or self._conversation is None:
            return
        try:
            await self.capture.record_launch(
                reporting.launch_record(self._conversation.owner, self.receipt, kept=False)
            )
        except StorageError as error:
            pump.end_retention(error.reason)

    async def _discard(self) -> None:
        """Leave nothing of a capture that was not entered."""
        if self.capture is not None:
            await self.capture.discard()
        if self._conversation is not None:
            await self._conversation.close()

    async def _settle(self) -> None:
        pump = self._pump
        assert pump is not None, "it was not entered"
        try:
            pump.pipe_ended()
            # Of a text that may have been cut, the end is no end: what is undecided there may be half a secret [C7].
            await pump.finish(whole=self._upstream == "complete")
            await pump.flush(spill=False)
            self._receipt = await self._publish()
        except BaseException:
            pump.abort()
            raise
        finally:
            if self._conversation is not None:
                await self._conversation.close()
            await matching.settled()

    async def _publish(self) -> Receipt:
        if self.capture is None:
            return self._made(None, settled=True).fitted()
        sealed = await self.capture.seal()
        receipt = self._made(sealed, settled=True).fitted()
        outcome = await self.capture.publish(receipt.to_json())
        receipt = reporting.after_publication(receipt, outcome)
        return receipt if self._directory is None else bound(receipt, self._directory)

    def _made(self, sealed: Sealed | None, *, settled: bool) -> Receipt:
        """Return the receipt from what is known now."""
        pump = self._pump
        if pump is None:
            raise RuntimeError("a capture has a receipt from its `async with` block on")
        preview, _ = share(pump.stream.preview, None, self._limits, failed=False)
        known = None if sealed is None else sealed.streams["stdout"]
        facts = reporting.stream_facts(self, pump, preview, known, settled=settled)
        if facts.state == "complete" and self._upstream != "complete":
            facts = facts.model_copy(update={"state": "partial"})
        label, call_id = self._options.get("label"), self._options.get("call_id")
        found = () if self._conversation is None or self.capture is None else self._conversation.limitations
        words = dict.fromkeys(reporting.clean(self._needles, word) for word in (*found, *self._limitations))
        return Receipt(
            capture_id=self.capture_id,
            call_id=None if call_id is None else reporting.clean(self._needles, call_id),
            conversation=None if self._conversation is None else carried(str(self._conversation.directory)),
            source=self._source,
            upstream=self._upstream,
            label=None if label is None else reporting.clean(self._needles, label),
            started_at=self._started_at,
            ended_at=self._clock.wall() if settled else None,
            duration=self._clock.now() - self._began if settled else None,
            capture=worst([facts]),
            streams={"stdout": facts, "stderr": None},
            durability=None if sealed is None else reporting.durability_facts(self._needles, sealed),
            limitations=tuple(words),
        )


def _nothing() -> None:
    """Nobody is held up but the writer, and nobody follows in this process."""
