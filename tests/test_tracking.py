"""What a follower has seen of a file is compared with what it sees (contract E3)."""

from __future__ import annotations

import pytest

from supervisor.errors import CursorError, StorageError
from supervisor.sansio.page import PENDING
from supervisor.storage import NOTHING, Piece
from supervisor.tracking import Track


def piece(size: int, inode: int = 7) -> Piece:
    """Return a look at a file."""
    return Piece(b"", size, (1, inode))


def test_a_file_may_appear_and_grow() -> None:
    """It is made after the follower came, and only grows."""
    track = Track()
    for seen in (NOTHING, NOTHING, piece(0), piece(5), piece(5), piece(9)):
        track.check(seen, PENDING)


@pytest.mark.parametrize("other", [NOTHING, piece(9, inode=8)])
def test_another_file_or_none_is_an_error(other: Piece) -> None:
    """Its bytes would be somebody else's text, or none."""
    track = Track()
    track.check(piece(5), PENDING)
    with pytest.raises(StorageError, match="replaced"):
        track.check(other, PENDING)


def test_a_shorter_file_is_an_error_with_what_is_left() -> None:
    """What was read is no longer there."""
    track = Track()
    track.check(piece(5), PENDING)
    with pytest.raises(CursorError) as caught:
        track.check(piece(4), PENDING)
    assert (caught.value.start, caught.value.end, caught.value.generation) == (0, 4, 0)
