"""A descriptor is never closed under its user."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from supervisor.storage.descriptor import Descriptor
from supervisor.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path


class CloseFails(Files):
    """A disk that reports at close(2) that earlier writes were lost."""

    def close(self, descriptor: int) -> None:
        """Close and fail."""
        super().close(descriptor)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def opened(path: Path, files: Files | None = None) -> tuple[Descriptor, int]:
    """Return a descriptor of a new file, and its number."""
    number = os.open(path / "file", os.O_WRONLY | os.O_CREAT)
    return Descriptor(files or Files(), number), number


def is_open(number: int) -> bool:
    """Return whether the number is a descriptor of this process."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_close_waits_for_the_last_borrower(tmp_path: Path) -> None:
    """The number stays taken until every borrower gave it back, so that nobody else can get it meanwhile."""
    descriptor, number = opened(tmp_path)
    with descriptor.borrow():
        with descriptor.borrow():
            descriptor.close()
            assert is_open(number)
        assert is_open(number)
    assert not is_open(number)


def test_closed_descriptor_is_not_lent(tmp_path: Path) -> None:
    """After `close`, also a deferred one, a new borrower gets EBADF; a second close does nothing."""
    descriptor, number = opened(tmp_path)
    descriptor.close()
    assert not is_open(number)
    with pytest.raises(OSError, match="Bad file") as caught, descriptor.borrow():
        pass
    assert caught.value.errno == errno.EBADF
    descriptor.close()


def test_close_reports_its_error_once(tmp_path: Path) -> None:
    """[B5] A failed close is a fault; the descriptor is gone, and `discard` is for those who cannot use the error."""
    descriptor, number = opened(tmp_path, CloseFails())
    with pytest.raises(OSError, match="quota"):
        descriptor.close()
    assert not is_open(number)
    descriptor.close()
    again, number = opened(tmp_path, CloseFails())
    again.discard()
    assert not is_open(number)


def test_deferred_close_does_not_disturb_the_borrower(tmp_path: Path) -> None:
    """An error of the late close does not replace the borrower's own outcome."""
    descriptor, number = opened(tmp_path, CloseFails())
    with descriptor.borrow():
        descriptor.close()
    assert not is_open(number)


def test_a_copy_is_closed_once_whatever_the_lock_is(tmp_path: Path) -> None:
    """In a fork a thread that is not there any more may have had it."""
    descriptor, number = opened(tmp_path)
    descriptor._lock.acquire()
    descriptor.close_copy()
    descriptor._lock.release()
    assert not is_open(number)
    descriptor.close()
    with pytest.raises(OSError, match="Bad file"), descriptor.borrow():
        pass


def test_a_number_that_was_closed_is_not_closed_again_as_a_copy(tmp_path: Path) -> None:
    """It may be somebody else's by then; one that a borrower still holds open is ours."""
    descriptor, number = opened(tmp_path)
    descriptor.close()
    others = os.dup(2)
    assert others == number
    descriptor.close_copy()
    assert is_open(others)
    os.close(others)
    lent, number = opened(tmp_path)
    with lent.borrow():
        lent.close()
        lent.close_copy()
        assert not is_open(number)
