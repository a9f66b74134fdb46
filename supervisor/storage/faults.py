"""What an errno of the disk is called in a receipt (contract A3)."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from ..errors import StorageError, SupervisorError

if TYPE_CHECKING:
    from ..sansio.words import CaptureReason

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""EFBIG (RLIMIT_FSIZE, or the file system's own maximum): nothing is broken, there is just no room for more; the errno
beside the word tells it from a full disk."""
UNSAFE: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM})
"""What opening a directory answers where something else is in its place (a symlink gives ENOTDIR) or it is not ours."""


class SpoolFault(SupervisorError):
    """Nothing more can be written to a spool; `errno` is the system's number or None. The prefix on disk stays [B5]."""

    def __init__(self, reason: CaptureReason, number: int | None) -> None:
        super().__init__(f"the spool takes no more: {reason}" + (f" ({os.strerror(number)})" if number else ""))
        self.reason: Final[CaptureReason] = reason
        self.errno: Final = number


class UnsafeDirectoryError(OSError):
    """A directory or file that is there, but not private, not ours or not of its kind; never changed by us [D2]."""


def write_reason(number: int | None) -> CaptureReason:
    """Return the word for a failed write, sync, close or rename."""
    return "no-space" if number in NO_SPACE else "io-error"


def text_of(error: OSError) -> str:
    """Return what the system calls the error; never a path."""
    if isinstance(error, UnsafeDirectoryError):
        return str(error.strerror)
    return os.strerror(error.errno) if error.errno else "input/output error"


def storage_error(action: str, error: OSError) -> StorageError:
    """Return the typed error for what failed while a directory or file was opened or made."""
    reason: CaptureReason = write_reason(error.errno)
    if error.errno == errno.ENOENT:
        reason = "no-directory"
    elif isinstance(error, UnsafeDirectoryError) or error.errno in UNSAFE:
        reason = "unsafe-directory"
    return StorageError(f"{action}: {text_of(error)}", reason=reason, errno=error.errno)
