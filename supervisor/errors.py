"""One tree of errors, ordered by whose fault it is (design, "The public API").

The caller's faults are `ValueError`, `TypeError` and `UnknownCapture`, raised at once. The world's faults are the
typed errors below, with fields. Our own are `AssertionError`. No message carries output text or a variable's value,
and a storage fault under a running command is never raised: it is in the receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from .sansio.receipt import Receipt
    from .sansio.words import CaptureReason, CaptureState

SpawnFault = Literal[
    "program", "interpreter", "cwd", "permission", "format", "arguments", "limit", "terminal", "resources", "other"
]
"""What could not be had: the program, its `#!` interpreter, the directory, the right to execute, an executable
format, room for the arguments, one of the `ChildLimits`, a terminal, descriptors/processes/memory, or something
that no narrower word names."""


class SupervisorError(Exception):
    """The root of every error of the world that this package raises."""


class SpawnError(SupervisorError):
    """The command could not be started; nothing of it is left behind (contract F6).

    `errno` is the system's number or None, `fault` says what was missing, `subject` names it (a path or a
    limit, never an argument's value), `receipt` is the settled `not-started` receipt.
    """

    def __init__(self, message: str, *, errno: int | None, fault: SpawnFault, subject: str | None = None) -> None:
        super().__init__(message)
        self.errno: Final = errno
        self.fault: Final = fault
        self.subject: Final = subject
        self.receipt: Receipt | None = None


class TooManyJobs(SupervisorError):
    """`Limits.max_jobs` are live already; nothing was started, and no live job was touched (contract F9)."""

    def __init__(self, message: str, *, live: int) -> None:
        super().__init__(message)
        self.live: Final = live


class SupervisorClosed(SupervisorError, RuntimeError):
    """The supervisor is closed, or was while this start waited for a free place; nothing was started (contract F9)."""


class NeverReady(SupervisorError):
    """What a wait of a `Job` was for cannot come any more.

    `ended` says whether the job has ended; if not, no more of its output is kept. `state` and `reason` are those of the
    stream that was searched; None where a port or a file was waited for.
    """

    def __init__(
        self, message: str, *, ended: bool, state: CaptureState | None = None, reason: CaptureReason | None = None
    ) -> None:
        super().__init__(message)
        self.ended: Final = ended
        self.state: Final = state
        self.reason: Final = reason


class CursorError(SupervisorError):
    """A cursor of an old generation, or outside the retained range (contract E3); carries that range, in bytes."""

    def __init__(self, message: str, *, start: int, end: int, generation: int) -> None:
        super().__init__(message)
        self.start: Final = start
        self.end: Final = end
        self.generation: Final = generation


class StorageError(SupervisorError):
    """A directory or file could not be used; `reason` is a word of contract A3, `errno` the system's number or None."""

    def __init__(self, message: str, *, reason: CaptureReason, errno: int | None = None) -> None:
        super().__init__(message)
        self.reason: Final = reason
        self.errno: Final = errno


class JobFailed(SupervisorError):
    """`Receipt.check()` found anything but a clean exit with code 0; `receipt` is that receipt (contract A2)."""

    def __init__(self, message: str, *, receipt: Receipt) -> None:
        super().__init__(message)
        self.receipt: Final = receipt


class UnknownCapture(SupervisorError, LookupError):
    """No capture or job of that id is known here."""


class LiveCapture(SupervisorError):
    """The capture `capture_id` is still written, or nobody can know that it is not, so it was not removed (D1)."""

    def __init__(self, message: str, *, capture_id: str) -> None:
        super().__init__(message)
        self.capture_id: Final = capture_id
