"""The closed words of contract A1 and A3, and which of them is worse. They are part of the public interface."""

from __future__ import annotations

from typing import Final, Literal

StreamName = Literal["stdout", "stderr"]
ProcessState = Literal["not-started", "running", "exited", "cancelled", "timeout", "unknown"]
ProcessReason = Literal[
    "time-limit",
    "idle-limit",
    "caller",
    "supervisor-shutdown",
    "memory",
    "output-limit",
    "status-lost",
]
CaptureState = Literal["pending", "complete", "partial", "failed", "disabled", "unavailable"]
CaptureReason = Literal[
    "drain-timeout",
    "job-limit",
    "conversation-limit",
    "no-space",
    "io-error",
    "writer-stalled",
    "writer-stuck",
    "unsafe-directory",
    "no-directory",
    "not-started",
    "supervisor-lost",
    "internal",
]
Representation = Literal["redacted", "decoded", "binary"]
PreviewState = Literal["complete", "clipped"]
Access = Literal["inline", "local", "needs-transfer", "unavailable"]

STATES: Final[tuple[CaptureState, ...]] = ("complete", "partial", "failed", "pending", "unavailable", "disabled")
"""Worst last. The last three are said of a capture as a whole, so one stream that has them speaks for both."""
REASONS: Final[tuple[CaptureReason | None, ...]] = (
    None,
    "not-started",
    "no-directory",
    "unsafe-directory",
    "supervisor-lost",
    "conversation-limit",
    "job-limit",
    "drain-timeout",  # a source that was still open is less expected than a limit which the caller set
    "no-space",
    "writer-stalled",
    "io-error",
    "writer-stuck",
    "internal",
)
"""Least expected last: which reason a capture takes among streams of the same state."""
