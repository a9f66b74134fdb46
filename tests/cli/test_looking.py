"""What the commands that look at captures share."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from supervisor.cli.looking import unless_missing
from supervisor.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_only_a_missing_directory_is_no_fault(tmp_path: Path) -> None:
    """Something that vanished inside of it is told, not taken for nothing to do."""

    async def fail() -> list[int]:
        raise StorageError("recovering: No such file", reason="io-error", errno=errno.ENOENT)

    assert await unless_missing(tmp_path / "missing", fail()) == []
    with pytest.raises(StorageError, match="recovering"):
        await unless_missing(tmp_path, fail())
