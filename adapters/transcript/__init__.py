"""A conversation's transcript that survives what it promises to, and the gate at which turns are acknowledged."""

from __future__ import annotations

from .gate import BarrierFailed, Busy, Event, Turn, TurnGate
from .log import Transcript

__all__ = ["BarrierFailed", "Busy", "Event", "Transcript", "Turn", "TurnGate"]
