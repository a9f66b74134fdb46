"""For tests of programs that use `supervisor`: children that are played, and the contract that they keep."""

from __future__ import annotations

from .contract import CHECKS, check_child
from .fake_child import FakeChild
from .real_child import RealChild
from .stage import ScriptedChild, ScriptedFake

__all__ = ["CHECKS", "FakeChild", "RealChild", "ScriptedChild", "ScriptedFake", "check_child"]
