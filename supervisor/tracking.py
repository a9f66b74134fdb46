"""What a follower remembers between two pages, so that a file which was changed under it is an error, never silence.

A live file only grows and a final one does not change [D3, E2]. Following opens it anew for each page, by its name: no
descriptor waits, the name may change from live to final, and a file that was put in its place is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import CursorError, StorageError

if TYPE_CHECKING:
    from .sansio.page import Standing
    from .storage import Piece


class Track:
    """The file of one stream as one follower has seen it."""

    def __init__(self) -> None:
        self._identity: tuple[int, int] | None = None
        self.size = 0
        """The length that the file had at the last look."""

    def check(self, piece: Piece, standing: Standing) -> None:
        """Take in one more look.

        Raises:
            StorageError: another file is in the place of the one that was followed.
            CursorError: it became shorter; carries what is left of it.
        """
        if self._identity is not None and piece.identity != self._identity:
            raise StorageError("the file that was followed is gone or was replaced", reason="io-error")
        if piece.size < self.size:
            raise CursorError(
                f"the file that was followed became shorter: {piece.size} bytes, not {self.size}",
                start=standing.start,
                end=piece.size,
                generation=standing.generation,
            )
        self._identity, self.size = piece.identity, piece.size
