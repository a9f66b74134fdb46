"""A conversation with captures to be handed over, and what is looked at in the copies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from supervisor import Receipt, Supervisor, publish_text

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from supervisor.sansio.receipt import StreamFacts


@dataclass
class Talk:
    """A conversation's directory, looked at from outside, and the receipts of its captures."""

    path: Path
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of its captures, oldest first."""
        return [receipt.capture_id for receipt in self.receipts]

    def captures(self) -> list[str]:
        """Return the names of what lies beside captures, hidden ones included."""
        return sorted(path.name for path in (self.path / "tool-outputs" / "captures").iterdir())

    def capture(self, number: int) -> Path:
        """Return the directory of one capture."""
        return self.path / "tool-outputs" / "captures" / self.ids[number]

    def record(self, capture_id: str) -> dict[str, Any]:
        """Return a receipt as it lies on this disk."""
        place = self.path / "tool-outputs" / "captures" / capture_id / "receipt.json"
        found: dict[str, Any] = json.loads(place.read_bytes())
        return found

    def tree(self) -> dict[str, bytes]:
        """Return all files of captures with what is in them."""
        captures = self.path / "tool-outputs" / "captures"
        return {str(path): path.read_bytes() for path in captures.rglob("*") if path.is_file()}


def facts_of(receipt: Receipt, name: str = "stdout") -> StreamFacts:
    """Return the facts of a stream that exists."""
    facts = receipt.streams[name]  # type: ignore[index]
    assert facts is not None
    return facts


@pytest.fixture
def facts() -> Callable[..., StreamFacts]:
    """Return the function that returns the facts of a receipt's stream."""
    return facts_of


async def filled(path: Path) -> Talk:
    """Make a failed command with a label and an unsanitised copy, and a text from a browser, in a private directory."""
    command = "seq 2000; echo oops >&2; exit 3"
    async with Supervisor(path) as supervisor:
        first = await supervisor.run(command, shell=True, label="marigold", keep="raw")
    return Talk(path, [first, await publish_text(path, "one\ntwo\n", kind="browser")])


def private(path: Path) -> Path:
    """Make a directory that is ours alone."""
    path.mkdir(mode=0o700)
    return path


@pytest_asyncio.fixture
async def talk(tmp_path: Path) -> Talk:
    """A conversation with two captures, whose supervisor has ended."""
    return await filled(private(tmp_path / "talk"))


@pytest.fixture
def fill() -> Callable[[Path], Coroutine[Any, Any, Talk]]:
    """Return the function that makes it, for tests without a loop."""
    return filled


@pytest.fixture
def other(tmp_path: Path) -> Talk:
    """An empty conversation."""
    return Talk(private(tmp_path / "other"))
