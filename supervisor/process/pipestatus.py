"""The file through which bash tells what the members of a pipeline returned; `sansio.pipestatus` says how.

It is a memfd of this process, which no child inherits: bash opens it by this process's `/proc` entry, once to read the
prelude and once, at its end, to write the report. Its seals keep its size, so nobody can fill memory through it. The
way exists for a child with this process's user and rights only; where it does not exist, nothing is reported.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..sansio.pipestatus import REPORT_BYTES, prelude

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "BASH_ENV"


class PipeReport:
    """A report that one shell is to make. Whoever made it closes it.

    Raises: OSError, at construction, where there is no way for it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        if not hasattr(os, "memfd_create"):
            raise OSError("no memfd_create(2)")
        self._descriptor = os.memfd_create("pipestatus", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            path = self._path()
            os.write(self._descriptor, prelude(path, os.getpid(), environment.get(VARIABLE)))
            fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.environment: Final[Mapping[str, str]] = {**environment, VARIABLE: path}
        """The variables that the shell is started with; what it starts gets those that were given."""

    def _path(self) -> str:
        """Return how a child opens it. Raises OSError where it could not."""
        path = Path("/proc", str(os.getpid()), "fd", str(self._descriptor))
        if not os.path.samestat(path.stat(), os.fstat(self._descriptor)):
            raise OSError("/proc is of another pid namespace")
        # A process that changed its user without an exec belongs to root there (PR_SET_DUMPABLE, prctl(2)).
        if path.parent.stat().st_uid != os.geteuid():
            raise OSError("this process's /proc entries are closed to its children")
        return str(path)

    def read(self) -> bytes:
        """Return what the file begins with: the report, or the prelude if there is none."""
        return os.pread(self._descriptor, REPORT_BYTES, 0)

    def close(self) -> None:
        """Give the file up. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
