"""The supervisor for programs without an event loop of their own: every call blocks, and may come from any thread."""

from __future__ import annotations

from .completions import BlockingCompletion, BlockingCompletions, Subscription
from .job import BlockingJob, Pages
from .loop import WrongProcess, call
from .supervisor import BlockingSupervisor

__all__ = [
    "BlockingCompletion",
    "BlockingCompletions",
    "BlockingJob",
    "BlockingSupervisor",
    "Pages",
    "Subscription",
    "WrongProcess",
    "call",
]
