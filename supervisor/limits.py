"""The numbers that bound a supervisor. None of them is a measured optimum (contract D5); all can be set.

`math.inf` means "no limit"; negative numbers and NaN are refused, and so is zero.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MIB: Final = 1024 * 1024


def positive(value: float) -> float:
    """Return `value` if it is above zero (`inf` included). Raises: ValueError for zero, a negative number or NaN."""
    if math.isnan(value) or value <= 0:
        raise ValueError("must be a number above zero (inf for no limit)")
    return value


def not_negative(value: float) -> float:
    """Return `value` if it is zero or above (`inf` included). Raises: ValueError for a negative number or NaN."""
    if math.isnan(value) or value < 0:
        raise ValueError("must be zero or a number above it (inf for no limit)")
    return value


Positive = Annotated[float, AfterValidator(positive)]


class Limits(BaseModel):
    """What one supervisor may keep, hold and show. Bytes unless the name says otherwise; frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    job_bytes: Positive = 32 * MIB
    """Retained per job, both streams together."""
    stderr_reserve_bytes: Annotated[float, AfterValidator(not_negative)] = 1 * MIB
    """The part of `job_bytes` that stdout may not use (at most half of it is kept free)."""
    conversation_bytes: Positive = 128 * MIB
    """Retained per conversation, by all its jobs and processes."""
    queue_bytes: Annotated[int, Field(gt=0)] = 4 * MIB
    """Read but not yet sanitised, per stream: the reader pauses there and resumes at a quarter of it."""
    buffered_bytes: Annotated[int, Field(gt=0)] = 64 * MIB
    """The same for all streams of a supervisor together: a stream's own mark falls to its share of this."""
    stall_timeout: Positive = 5.0
    """Seconds for which a disk may hold a child up before persistence is given up."""
    preview_stdout_chars: Annotated[int, Field(gt=0)] = 8_000
    preview_stderr_chars: Annotated[int, Field(gt=0)] = 2_000
    preview_bytes: Annotated[int, Field(gt=0)] = 16 * 1024
    """UTF-8 bytes of both previews together."""
    max_jobs: Annotated[int, Field(gt=0)] | None = None
    """Live jobs per supervisor; None for no limit. `Supervisor(admission=)` says what becomes of the next one."""
    digest: Literal["sha256"] | None = "sha256"
    """The digest of each committed stream, or None to save its cost."""
