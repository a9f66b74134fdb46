"""The only code that touches the disk: private directories, live files, the barrier, the receipt's name."""

from __future__ import annotations

from .allowance import Figures, Reservation, look_at_allowance
from .capture import Capture
from .contents import find_names
from .conversation import Conversation, LocalStorage, Storage
from .delivery import Claim, Deliveries, acknowledge
from .directory import make_directory, sync_directory
from .evidence import Owners
from .faults import SpoolFault, storage_error
from .files import Files
from .hostfiles import append_line, read_file, replace_file, sync_existing
from .incoming import Incoming
from .lending import reading_threads
from .outgoing import Outgoing, open_outgoing
from .owners import Owner, is_live
from .publish import RAW, Fault, Place, PublishOutcome, Sealed, SealedStream
from .reading import NOTHING, Look, Piece, look, read_piece
from .recovery import Found, find_capture, find_captures, recover_capture, site_of
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
    "Incoming",
    "LocalStorage",
    "Look",
    "Outgoing",
    "Owner",
    "Owners",
    "Piece",
    "Place",
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
    "append_line",
    "check_removable",
    "find_capture",
    "find_captures",
    "find_names",
    "is_live",
    "look",
    "look_at_allowance",
    "make_directory",
    "open_outgoing",
    "open_watch",
    "read_file",
    "read_piece",
    "reading_threads",
    "recover_capture",
    "remove_capture",
    "replace_file",
    "site_of",
    "storage_error",
    "sweep",
    "sync_directory",
    "sync_existing",
    "threads_at_work",
    "visiting",
]
