"""The only code that touches the disk: private directories, live files, the barrier, the receipt's name."""

from __future__ import annotations

from .allowance import Figures, Reservation, look_at_allowance
from .capture import Capture
from .conversation import Conversation, LocalStorage, Storage
from .delivery import Claim, Deliveries, acknowledge
from .evidence import Owners
from .faults import SpoolFault
from .files import Files
from .lending import reading_threads
from .owners import Owner, is_live
from .publish import RAW, Fault, PublishOutcome, Sealed, SealedStream
from .reading import NOTHING, Look, Piece, look, read_piece
from .recovery import Found, find_captures, recover_capture, site_of
from .removal import check_removable, remove_capture, sweep
from .spool import Spool
from .visiting import Visit, visiting
from .watching import Watch, open_watch
from .writers import Writers, threads_at_work

__all__ = [
    "NOTHING",
    "RAW",
    "Capture",
    "Claim",
    "Conversation",
    "Deliveries",
    "Fault",
    "Figures",
    "Files",
    "Found",
    "LocalStorage",
    "Look",
    "Owner",
    "Owners",
    "Piece",
    "PublishOutcome",
    "Reservation",
    "Sealed",
    "SealedStream",
    "Spool",
    "SpoolFault",
    "Storage",
    "Visit",
    "Watch",
    "Writers",
    "acknowledge",
    "check_removable",
    "find_captures",
    "is_live",
    "look",
    "look_at_allowance",
    "open_watch",
    "read_piece",
    "reading_threads",
    "recover_capture",
    "remove_capture",
    "site_of",
    "sweep",
    "threads_at_work",
    "visiting",
]
