"""The system calls that storage makes, one method each: the seam at which tests inject faults.

Names are relative to a directory descriptor, so nothing that is swapped above a directory after it was opened can
redirect a call [D2]; `O_NOFOLLOW` guards the name itself. Every method raises OSError and nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CLOSE_ON_EXEC: Final = os.O_CLOEXEC | os.O_NOFOLLOW
FALLOC_FL_KEEP_SIZE: Final = 1
"""fallocate(2): readers take the file's size for the committed length, so a reservation must not change it."""
RENAME_NOREPLACE: Final = 1
UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What a file system answers to a call that it does not have."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_renameat2: Final = getattr(_libc, "renameat2", None)  # glibc 2.28, musl 1.2.5
_fallocate: Final = getattr(_libc, "fallocate64", None) or getattr(_libc, "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def _checked(result: int, name: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # fsync(2) there leaves the data in the drive's cache; F_FULLFSYNC is not everywhere.
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in {*UNSUPPORTED, errno.ENOTTY}:
                raise
        else:
            return
    os.fsync(descriptor)


class Files:
    """The real calls. Stateless, safe from any thread; made to be subclassed."""

    def open_directory(self, name: str, *, parent: int | None = None) -> int:
        """Return a descriptor of an existing directory; a symlink in the last place is refused with ENOTDIR."""
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | CLOSE_ON_EXEC, dir_fd=parent)

    def make_directory(self, name: str, *, parent: int) -> None:
        """Create a directory of mode 0700, less what the umask takes."""
        os.mkdir(name, 0o700, dir_fd=parent)

    def unmask_directory(self, name: str, *, parent: int) -> None:
        """Give the new directory `name` the mode that the umask took, without following a symlink put in its place."""
        if sys.platform == "linux":
            # fchmodat(2) has no AT_SYMLINK_NOFOLLOW before Linux 6.6, and fchmod refuses O_PATH descriptors.
            found = os.open(name, os.O_PATH | os.O_DIRECTORY | CLOSE_ON_EXEC, dir_fd=parent)
            try:
                os.chmod(f"/proc/self/fd/{found}", 0o700)
            finally:
                os.close(found)
        else:
            os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)

    def remove_directory(self, name: str, *, parent: int) -> None:
        """Remove an empty directory."""
        os.rmdir(name, dir_fd=parent)

    def names(self, directory: int) -> list[str]:
        """List a directory."""
        return os.listdir(directory)

    def create(self, name: str, *, parent: int, flags: int = os.O_WRONLY) -> int:
        """Create a file of mode 0600, less what the umask takes, and return its descriptor; EEXIST if it is there."""
        return os.open(name, flags | os.O_CREAT | os.O_EXCL | CLOSE_ON_EXEC, 0o600, dir_fd=parent)

    def open_existing(self, name: str, *, parent: int, flags: int = os.O_RDONLY) -> int:
        """Return a descriptor; a planted FIFO does not block the call (open(2), `O_NONBLOCK`)."""
        return os.open(name, flags | os.O_NONBLOCK | CLOSE_ON_EXEC, dir_fd=parent)

    def set_mode(self, descriptor: int, mode: int) -> None:
        """Set the mode of what we have just created: the umask may have taken our own bits."""
        os.fchmod(descriptor, mode)

    def status(self, descriptor: int) -> os.stat_result:
        """Return what the descriptor is of."""
        return os.fstat(descriptor)

    def status_at(self, name: str, *, parent: int) -> os.stat_result:
        """Return what `name` is, a symlink itself included."""
        return os.stat(name, dir_fd=parent, follow_symlinks=False)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
        """Return how many bytes the kernel took, which may be fewer than given (write(2))."""
        return os.writev(descriptor, buffers)

    def write_at(self, descriptor: int, data: bytes, *, offset: int) -> int:
        """Return how many bytes the kernel took at `offset` (pwrite(2)); the descriptor's own position stays."""
        return os.pwrite(descriptor, data, offset)

    def read(self, descriptor: int, count: int, *, offset: int) -> bytes:
        """Return up to `count` bytes from `offset` on; none means the end of the file (pread(2))."""
        return os.pread(descriptor, count, offset)

    def reserve(self, descriptor: int, size: int) -> None:
        """Reserve `size` bytes of space without changing the file's size."""
        if _fallocate is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        _checked(_fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, size), "fallocate")

    def truncate(self, descriptor: int, size: int) -> None:
        """Set a file's size; space reserved past it is freed."""
        os.ftruncate(descriptor, size)

    def sync_file(self, descriptor: int) -> None:
        """Return when the data is on the device. An error is final: a second call can succeed with the data lost."""
        _sync(descriptor)

    def sync_directory(self, descriptor: int) -> None:
        """Return when the directory's names are on the device."""
        _sync(descriptor)

    def close(self, descriptor: int) -> None:
        """Close; EIO or EDQUOT of an earlier write can surface here (close(2))."""
        os.close(descriptor)

    def rename_exclusive(self, source: str, target: str, *, parent: int) -> None:
        """Rename inside one directory by `renameat2(RENAME_NOREPLACE)`; EEXIST if `target` is there."""
        if _renameat2 is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source)
        names = os.fsencode(source), os.fsencode(target)
        _checked(_renameat2(parent, names[0], parent, names[1], RENAME_NOREPLACE), source)

    def rename(self, source: str, target: str, *, parent: int) -> None:
        """Rename inside one directory; of a directory, `target` may only be an empty one (rename(2))."""
        os.rename(source, target, src_dir_fd=parent, dst_dir_fd=parent)

    def link(self, source: str, target: str, *, parent: int) -> None:
        """Give a file a second name in the same directory; EEXIST if it is there."""
        os.link(source, target, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)

    def unlink(self, name: str, *, parent: int) -> None:
        """Remove a name."""
        os.unlink(name, dir_fd=parent)

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:
        """Take a flock(2), at once or raise EWOULDBLOCK; it is gone when the last copy of the descriptor is closed.

        With `wait`, return when it is held: on a thread whose caller has a deadline.
        """
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))


def rename_noreplace(files: Files, source: str, target: str, *, parent: int, durable: bool = False) -> None:
    """Rename inside one directory without ever replacing `target` [D3].

    Where the file system has no such call, link and unlink: a crash between the two leaves two names of one file,
    which recovery accepts and finishes (contract D2, facts 3). With `durable` the new name is on the device before the
    old one is removed: nobody promises that the two reach it in this order, and evidence must not lose both.
    """
    try:
        files.rename_exclusive(source, target, parent=parent)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        files.link(source, target, parent=parent)
        if durable:
            _sync_link(files, target, parent=parent)
        files.unlink(source, parent=parent)


def _sync_link(files: Files, name: str, *, parent: int) -> None:
    try:
        files.sync_directory(parent)
    except OSError as error:
        if error.errno not in UNSUPPORTED:  # as `directory.sync_directory`, whose caller names it when all is done
            files.unlink(name, parent=parent)
            raise


def rename_directory(files: Files, source: str, target: str, *, parent: int) -> None:
    """Rename a directory beside itself; one that has anything in it is never replaced. Raises: OSError."""
    try:
        files.rename_exclusive(source, target, parent=parent)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        # A directory has no second link. Nothing is lost by this: only an empty directory would be replaced.
        files.rename(source, target, parent=parent)


def write_some(files: Files, descriptor: int, buffers: Sequence[bytes | memoryview]) -> int:
    """Return how many bytes the kernel took, at least one: a write that takes nothing would be tried for ever."""
    count = files.write(descriptor, buffers)
    if count <= 0:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return count


def write_all(files: Files, descriptor: int, data: bytes) -> None:
    """Write all of `data`, however short the single writes are."""
    rest = memoryview(data)
    while rest:
        rest = rest[write_some(files, descriptor, [rest]) :]
