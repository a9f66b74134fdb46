"""For tests of programs that use `supervisor`: children that are played, time that is moved, disks that fail.

All of it goes through the seams `spawn`, `storage` and `clock` of `Supervisor`: nothing is patched, and there is no
test mode. What a fake child promises is the contract that a real one keeps too (`check_child`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import loading

if TYPE_CHECKING:
    from .assertions import Expected, assert_receipt, assert_settled
    from .contract import CHECKS, REPLAYED, check_child
    from .failing_storage import FailingStorage
    from .fake_child import FakeChild
    from .fake_children import FakeChildren, MissingCommand, UnexpectedCommand
    from .history import History
    from .leaks import assert_no_leaks
    from .reactions import Reaction, delay, exit_with, ignore
    from .real_child import RealChild
    from .recording import Recorder, record
    from .stage import ScriptedChild, ScriptedFake, ScriptedReplay
    from .virtual_clock import VirtualClock

__all__ = [
    "CHECKS",
    "REPLAYED",
    "Expected",
    "FailingStorage",
    "FakeChild",
    "FakeChildren",
    "History",
    "MissingCommand",
    "Reaction",
    "RealChild",
    "Recorder",
    "ScriptedChild",
    "ScriptedFake",
    "ScriptedReplay",
    "UnexpectedCommand",
    "VirtualClock",
    "assert_no_leaks",
    "assert_receipt",
    "assert_settled",
    "check_child",
    "delay",
    "exit_with",
    "ignore",
    "record",
]

if not TYPE_CHECKING:  # else a type checker would take any name for one of ours
    __getattr__, __dir__ = loading.on_first_use(
        __name__,
        {
            "assertions": ("Expected", "assert_receipt", "assert_settled"),
            "contract": ("CHECKS", "REPLAYED", "check_child"),
            "failing_storage": ("FailingStorage",),
            "fake_child": ("FakeChild",),
            "fake_children": ("FakeChildren", "MissingCommand", "UnexpectedCommand"),
            "history": ("History",),
            "leaks": ("assert_no_leaks",),
            "reactions": ("Reaction", "delay", "exit_with", "ignore"),
            "real_child": ("RealChild",),
            "recording": ("Recorder", "record"),
            "stage": ("ScriptedChild", "ScriptedFake", "ScriptedReplay"),
            "virtual_clock": ("VirtualClock",),
        },
    )
