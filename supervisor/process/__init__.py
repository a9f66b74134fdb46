"""The only code that touches the operating system's processes."""

from __future__ import annotations

from .launch import Launch
from .spawn import spawn
from .status import Usage
from .transport import Child

__all__ = ["Child", "Launch", "Usage", "spawn"]
