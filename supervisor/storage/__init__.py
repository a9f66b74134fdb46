"""The only code that touches the disk: private directories, live files, the barrier, the receipt's name."""

from __future__ import annotations

from .allowance import Allowance, Reservation
from .capture import Capture
from .conversation import Conversation, LocalStorage, Storage
from .faults import SpoolFault
from .files import Files
from .owners import Owner, is_live
from .publish import Fault, PublishOutcome, Sealed, SealedStream
from .spool import Spool
from .writers import Writers

__all__ = [
    "Allowance",
    "Capture",
    "Conversation",
    "Fault",
    "Files",
    "LocalStorage",
    "Owner",
    "PublishOutcome",
    "Reservation",
    "Sealed",
    "SealedStream",
    "Spool",
    "SpoolFault",
    "Storage",
    "Writers",
    "is_live",
]
