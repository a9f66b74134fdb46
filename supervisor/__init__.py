"""An asyncio-native process supervisor: commands, their sanitised output, and an honest receipt for each.

It does not restart anything, and it is not the `supervisord` of the same import name: the distribution is `spoolvisor`.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("spoolvisor does not run on Windows: it needs POSIX pipes, signals and private files")

from .errors import (
    CursorError,
    JobFailed,
    SpawnError,
    StorageError,
    SupervisorError,
    TooManyJobs,
    UnknownCapture,
)
from .job import Job
from .limits import Limits
from .request import PIPE
from .sansio.cursor import Cursor
from .sansio.receipt import Receipt
from .supervisor import Supervisor

__all__ = [
    "PIPE",
    "Cursor",
    "CursorError",
    "Job",
    "JobFailed",
    "Limits",
    "Receipt",
    "SpawnError",
    "StorageError",
    "Supervisor",
    "SupervisorError",
    "TooManyJobs",
    "UnknownCapture",
]
