"""A conversation into which output comes from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from supervisor import Receipt
    from supervisor.sansio.receipt import StreamFacts


@dataclass(frozen=True)
class Conversation:
    """A conversation's directory, looked at from outside."""

    path: Path

    def captures(self) -> list[Path]:
        """Return the directories of its captures, oldest first."""
        return sorted((self.path / "tool-outputs" / "captures").glob("*"))

    def of(self, receipt: Receipt) -> Path:
        """Return the directory of the receipt's capture."""
        return self.path / "tool-outputs" / "captures" / receipt.capture_id

    def text(self, receipt: Receipt) -> bytes:
        """Return the file that the receipt leads to, after checking that its boundary is the file's size [B5]."""
        facts = self.stdout(receipt)
        assert facts.path is not None
        data = Path(facts.path).read_bytes()
        assert facts.retained.end == facts.committed == len(data)
        return data

    @staticmethod
    def stdout(receipt: Receipt) -> StreamFacts:
        """Return the facts of the only stream that such a capture has."""
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert receipt.streams["stderr"] is None
        return facts


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    """A private, empty directory as a conversation."""
    path = tmp_path / "conversation"
    path.mkdir(mode=0o700)
    return Conversation(path)
