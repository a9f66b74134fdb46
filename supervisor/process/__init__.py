"""The only code that touches the operating system's processes."""

from __future__ import annotations

from .childlimits import ChildLimits
from .guard import Guard
from .launch import Launch
from .pipestatus import PipeReport
from .spawn import spawn
from .status import Usage
from .subreaper import adopt_orphans
from .terminal import Terminal
from .transport import Child

__all__ = ["Child", "ChildLimits", "Guard", "Launch", "PipeReport", "Terminal", "Usage", "adopt_orphans", "spawn"]
