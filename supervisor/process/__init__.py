"""The only code that touches the operating system's processes."""

from __future__ import annotations

from .launch import Launch
from .spawn import spawn
from .status import Usage
from .subreaper import adopt_orphans
from .transport import Child

__all__ = ["Child", "Launch", "Usage", "adopt_orphans", "spawn"]
