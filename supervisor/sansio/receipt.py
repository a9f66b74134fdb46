"""The receipt: what happened, as independent facts that nobody has to parse out of output text (contract A1-A6).

Process, capture, representation and preview are four states that are never merged into one "status". Every word that
a field may hold is closed (A3). Unknown is `None`, never 0 and never an inferred total (A4): a recovered capture, or
one whose writer is stuck, has many such fields. Models are frozen, refuse wrong types and negative counts, ignore
fields that a newer version may have added, and never show a value in an error message.

Text in a receipt is sanitised before it gets here (C8). All counts are bytes unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from ..errors import JobFailed, StorageError
from . import fitting, rendering
from .fields import Count, Label, Moment, Path, Text
from .words import (
    REASONS,
    STATES,
    Access,
    CaptureReason,
    CaptureState,
    PreviewState,
    ProcessReason,
    ProcessState,
    Representation,
    StreamName,
)

SCHEMA: Final = 1
RECEIPT_BYTES: Final = 64 * 1024
"""The JSON of a published receipt is at most this long; its room on disk is reserved before the spawn (design 4)."""

Reader = Callable[[StreamName], Awaitable[str]]


class Facts(BaseModel):
    """The base of every part of a receipt."""

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True, hide_input_in_errors=True)


class ProcessFacts(Facts):
    """What became of the child, whatever was or was not captured of it."""

    state: ProcessState
    code: int | None = None
    """The exit code; None when a signal ended the child, while it runs, and when nobody saw the exit (A2)."""
    signal: int | None = None
    """The number of the signal that ended the child."""
    reason: ProcessReason | None = None
    """The first cause of a timeout, a cancellation or an unknown end; it is not rewritten by later ones."""
    error: Text | None = None
    """Why the command could not be started, or what went wrong while it was being ended."""
    pid: int | None = None
    forced: bool = False
    """KILL was sent, because TERM was not enough."""
    kill_confirmed: bool | None = None
    """All that was to be ended is seen to be gone; False: something is left; None: nobody can know, or it runs."""
    survivors: tuple[int, ...] | None = None
    """Pids of the tree that outlived the ending; None where nobody can know (F3)."""
    holders: tuple[int, ...] | None = None
    """Pids that kept a pipe open past the drain window; None where the system does not tell (F2)."""
    pipestatus: tuple[int, ...] | None = None
    """The exit codes of a shell pipeline's parts, where the shell told them."""


class CaptureFacts(Facts):
    """The capture as a whole: its worst stream (A3)."""

    state: CaptureState
    reason: CaptureReason | None = None


class RawCounts(Facts):
    """Bytes of the child: `observed = accepted + pending + discarded` (B6). None: nobody counted to the end."""

    observed: Count | None = None
    """Read from the pipe."""
    accepted: Count | None = None
    """Fed to the sanitiser while retention was on."""
    pending: Count | None = None
    """Read, not yet fed."""
    discarded: Count | None = None
    """Fed or dropped after retention had ended."""


class Retained(Facts):
    """The range of the committed representation that can be read."""

    start: Count = 0
    end: Count | None = None
    """Its end, and the size of the file; None when a writer is stuck and nobody can know (D8)."""
    generation: Count = 0
    verified_end: Count | None = None
    """After a crash of the machine: bytes up to here were synced, those past it are unverified (D6)."""


class PreviewFacts(Facts):
    """The bounded text shown at once: all of it in `head` when complete, else the true beginning and end (E6)."""

    state: PreviewState
    head: Text = ""
    tail: Text = ""
    returned_bytes: Count = 0
    """UTF-8 bytes of `head` and `tail`."""
    budget_bytes: Count = 0
    """What `returned_bytes` could have been."""
    omitted_bytes: Count = 0
    """Bytes of the text that are in neither."""
    frames_dropped: Count = 0
    """States of a line that a carriage return wrote over, and that only the text itself has."""

    @property
    def text(self) -> str:
        """Head and tail, with a line between them that counts what is left out."""
        if self.state == "complete":
            return self.head + self.tail
        border = "\n" if self.head and not self.head.endswith("\n") else ""
        return f"{self.head}{border}{rendering.omission(str(self.omitted_bytes), self)}\n{self.tail}"


class RawCopy(Facts):
    """The unsanitised file that `keep="raw"` asked for beside the text (B8)."""

    sanitised: Literal[False] = False
    state: CaptureState = "pending"
    """`complete`: every byte that was read is in it. Its end never ends that of the text, nor the other way round."""
    reason: CaptureReason | None = None
    reference: Text
    path: Path = None
    size: Count | None = None
    """Bytes; None while it grows, and when nobody can know."""


class StreamFacts(Facts):
    """One output stream: what was read, what became of it, and where it is."""

    state: CaptureState
    reason: CaptureReason | None = None
    representation: Representation | None = None
    """None until it is settled at the end, and where no text is kept."""
    encoding: Text | None = "utf-8"
    policy: Text | None = None
    """Name and version of the redaction policy, `none` where redaction was switched off."""
    raw: RawCounts = RawCounts()
    committed: Count | None = None
    """Sanitised bytes on disk."""
    held: Count | None = None
    """Sanitised bytes that are not decided yet; 0 in every settled receipt."""
    uncommitted: Count | None = None
    """Sanitised bytes that were decided and never written."""
    omitted: Count | None = None
    """Bytes replaced by a marker because they could not be decided (C3)."""
    replaced: Count | None = None
    """Raw bytes that were not UTF-8, replaced by U+FFFD."""
    controls_removed: Count | None = None
    """Bytes of escape sequences and control characters taken out."""
    redactions: Mapping[Text, Count] | None = None
    """How many markers of each rule or variable were put in."""
    retained: Retained = Retained()
    lines: Count | None = None
    """Line feeds in the text (A6)."""
    ends_with_newline: bool | None = None
    """None for an empty text, and where nobody knows."""
    sha256: str | None = None
    """Of the committed bytes; it proves integrity and is no identity."""
    reference: Text | None = None
    """Relative to the conversation's directory."""
    path: Path = None
    """The same file here and now; metadata, not permission (E7)."""
    access: Access = "unavailable"
    """How a reader of this receipt gets at the text; `inline`: the preview is all of it, and there is no file."""
    raw_copy: RawCopy | None = None
    preview: PreviewFacts | None = None
    """None where no output text is kept anywhere (B9)."""


class Usage(Facts):
    """What the child cost, and who says so: rusage misses double-forked work, and its `max_rss` is one process's."""

    cpu: float | None = None
    """Seconds, user and system."""
    max_rss: Count | None = None
    source: Literal["rusage", "cgroup"] = "rusage"


class Durability(Facts):
    """Whether a durability barrier stands behind this receipt (D4)."""

    barrier: bool
    directories: bool | None = None
    """Directories were synced too; False where the file system cannot, None where it was not tried."""
    error: Text | None = None


class Receipt(Facts):
    """All facts about one job; a snapshot while `process.state` is `running`, else settled and final.

    Two receipts are equal if their facts are. It pickles as its JSON, so a bound reader stays behind.
    """

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    capture_id: Text
    job_id: Text | None = None
    call_id: Text | None = None
    """The host's own id of the call, where it has one."""
    conversation: Path = None
    """The directory that owns the capture."""
    source: Text = "process"
    """Who produced the text: `process` is a child of ours. It is untrusted data, wherever it is stored (E8)."""
    upstream: Text | None = None
    """Whether text that came from no child was whole when it came: `complete`, `truncated` or `unknown`."""
    label: Label | None = None
    command: tuple[Text, ...] | None = None
    """Sanitised; None when the caller did not want it recorded."""
    started_at: Moment | None = None
    ended_at: Moment | None = None
    duration: float | None = None
    """Seconds by the monotonic clock, which `ended_at - started_at` is not."""
    last_output_at: Moment | None = None
    """When the child last wrote something, kept or not, as far from `started_at` as the monotonic clock says; None: it
    never did, or nobody knows."""
    process: ProcessFacts | None = None
    """None for output that came from no child."""
    capture: CaptureFacts
    streams: Mapping[StreamName, StreamFacts | None]
    """`stderr` is None where one pipe or terminal really carried both (B7)."""
    usage: Usage | None = None
    durability: Durability | None = None
    limitations: tuple[Text, ...] = ()
    """What the platform or the moment could not give, one word or phrase each."""

    _reader: Reader | None = PrivateAttr(default=None)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a receipt from its JSON; unknown fields are ignored.

        Raises:
            ValueError: it is no JSON, its schema is missing or not 1, or a field has a value that is not allowed.
        """
        receipt = cls.model_validate_json(data, strict=True)
        if "schema_version" not in receipt.model_fields_set:
            raise ValueError("a receipt without a schema version")
        return receipt

    def to_json(self) -> bytes:
        """Return the compact JSON: UTF-8, one line, times in RFC 3339 with Z."""
        return self.model_dump_json(by_alias=True).encode()

    def fitted(self, limit: int = RECEIPT_BYTES) -> Receipt:
        """Return a receipt whose JSON is at most `limit` bytes: itself, or a copy trimmed as `fitting` says.

        Raises:
            ValueError: the untrimmable facts alone are longer.
        """
        return fitting.fitted(self, limit)

    def for_sharing(self) -> Receipt:
        """Return a copy for somebody else (E9), without what is incidental or true only here.

        It keeps identity, times, exit, capture, stream facts, previews and references. It loses paths, command, label
        (often the command), pids, error texts, usage, the unsanitised copy and the reader; a text that was `local`
        needs a transfer.
        """
        return fitting.shareable(self).bind(None)

    def bind(self, reader: Reader | None) -> Self:
        """Give this receipt the route by which `read_text` reads; returns itself."""
        self._reader = reader
        return self

    async def read_text(self, stream: StreamName) -> str:
        """Return all of the stream's text that can be had, "" for a stream that does not exist.

        Raises:
            ValueError: no stream has that name.
            StorageError: no reader is bound and the preview is not the whole text; or the reader's own.
        """
        if stream not in {"stdout", "stderr"}:
            raise ValueError("a stream is named stdout or stderr")
        facts = self.streams.get(stream)
        if facts is None:
            return ""
        if self._reader is not None:
            return await self._reader(stream)
        if facts.preview is not None and facts.preview.state == "complete":
            return facts.preview.text
        raise StorageError("this receipt has no route to the text beyond its preview", reason="no-directory")

    @property
    def stdout(self) -> str:
        """The preview's text; "" where there is none."""
        return self._preview_text("stdout")

    @property
    def stderr(self) -> str:
        """The preview's text; "" where there is none, and for a merged stream."""
        return self._preview_text("stderr")

    def _preview_text(self, stream: StreamName) -> str:
        facts = self.streams.get(stream)
        return facts.preview.text if facts is not None and facts.preview is not None else ""

    @property
    def ok(self) -> bool:
        """The child exited by itself with code 0, or there was none; says nothing about the capture."""
        process = self.process
        return process is None or (process.state == "exited" and process.code == 0 and process.signal is None)

    def check(self) -> Self:
        """Return itself if `ok`.

        Raises:
            JobFailed: for any other code, a signal, and every state but `exited`, `running` included.
        """
        if not self.ok:
            raise JobFailed(rendering.headline(self), receipt=self)
        return self

    def render(self, budget: int | None = None) -> str:
        """Return the receipt for a person or a model; `budget` bounds its characters, facts are never cut."""
        return rendering.render(self, budget)

    def __eq__(self, other: object) -> bool:
        """Compare the facts; pydantic would compare the bound readers too."""
        return self.__dict__ == other.__dict__ if isinstance(other, Receipt) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.capture_id)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON: a bound reader holds descriptors and tasks that belong to this process."""
        return (type(self).parse, (self.to_json(),))


def worst(streams: Iterable[StreamFacts | None]) -> CaptureFacts:
    """Return the state of a capture with these streams (A3). Raises: ValueError if there is none at all."""
    facts = max(
        (stream for stream in streams if stream is not None),
        key=lambda stream: (STATES.index(stream.state), REASONS.index(stream.reason)),
    )
    return CaptureFacts(state=facts.state, reason=facts.reason)
