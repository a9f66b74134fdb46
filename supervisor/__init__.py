"""An asyncio-native process supervisor: commands, their sanitised output, and an honest receipt for each.

It does not restart anything, and it is not the `supervisord` of the same import name: the distribution is `spoolvisor`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":
    raise ImportError("spoolvisor does not run on Windows: it needs POSIX pipes, signals and private files")

from . import loading

if TYPE_CHECKING:
    from .captures import follow_capture, read_capture
    from .completions import Completion
    from .durable import DurableFiles
    from .errors import (
        CursorError,
        JobFailed,
        LiveCapture,
        NeverReady,
        SpawnError,
        StorageError,
        SupervisorClosed,
        SupervisorError,
        TooManyJobs,
        UnknownCapture,
    )
    from .handing import export_captures, resolve, share_capture
    from .job import Job
    from .limits import Limits
    from .process import ChildLimits, Terminal
    from .publishing import OpenCapture, open_capture, publish_text
    from .recovering import list_captures, recover, remove_captures
    from .request import PIPE, OptionsDict
    from .sansio.cursor import Cursor
    from .sansio.page import Page
    from .sansio.receipt import Receipt
    from .sansio.rules import Rule
    from .sansio.searching import Match
    from .supervisor import Supervisor

__all__ = [
    "PIPE",
    "ChildLimits",
    "Completion",
    "Cursor",
    "CursorError",
    "DurableFiles",
    "Job",
    "JobFailed",
    "Limits",
    "LiveCapture",
    "Match",
    "NeverReady",
    "OpenCapture",
    "OptionsDict",
    "Page",
    "Receipt",
    "Rule",
    "SpawnError",
    "StorageError",
    "Supervisor",
    "SupervisorClosed",
    "SupervisorError",
    "Terminal",
    "TooManyJobs",
    "UnknownCapture",
    "export_captures",
    "follow_capture",
    "list_captures",
    "open_capture",
    "publish_text",
    "read_capture",
    "recover",
    "remove_captures",
    "resolve",
    "share_capture",
]

if not TYPE_CHECKING:  # else a type checker would take any name for one of ours
    __getattr__, __dir__ = loading.on_first_use(
        __name__,
        {
            "captures": ("follow_capture", "read_capture"),
            "completions": ("Completion",),
            "durable": ("DurableFiles",),
            "errors": (
                "CursorError",
                "JobFailed",
                "LiveCapture",
                "NeverReady",
                "SpawnError",
                "StorageError",
                "SupervisorClosed",
                "SupervisorError",
                "TooManyJobs",
                "UnknownCapture",
            ),
            "handing": ("export_captures", "resolve", "share_capture"),
            "job": ("Job",),
            "limits": ("Limits",),
            "process": ("ChildLimits", "Terminal"),
            "publishing": ("OpenCapture", "open_capture", "publish_text"),
            "recovering": ("list_captures", "recover", "remove_captures"),
            "request": ("PIPE", "OptionsDict"),
            "sansio.cursor": ("Cursor",),
            "sansio.page": ("Page",),
            "sansio.receipt": ("Receipt",),
            "sansio.rules": ("Rule",),
            "sansio.searching": ("Match",),
            "supervisor": ("Supervisor",),
        },
    )
