"""A session in this process, where storage can be made to fail at a moment that no directory can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from supervisor import Limits, StorageError
from supervisor.cli import session
from supervisor.cli.place import MadeOnDemand
from supervisor.cli.session import Plan, run

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor.storage import Conversation


class FullLater(MadeOnDemand):
    """Storage that opens and then has no room for a capture."""

    async def open(self, directory: Path, **options: Any) -> Conversation:  # noqa: ANN401 - the seam's own
        """Return a conversation that can make nothing."""

        async def create_capture(*_: object) -> None:
            raise StorageError("making the capture: No space left on device", reason="no-space")

        conversation = await super().open(directory, **options)
        conversation.create_capture = create_capture  # type: ignore[method-assign, assignment]
        return conversation


@pytest.mark.asyncio
async def test_a_capture_that_cannot_be_made_is_said_even_when_quiet(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory was fine and the disk was not: the command runs, one line says that nothing is kept [D2]."""
    monkeypatch.setattr(session, "MadeOnDemand", FullLater)
    plan = Plan(
        command=("sh", "-c", "echo out; exit 3"),
        options={},
        directory=tmp_path / "kept",
        limits=Limits(),
        durability="none",
        secrets={},
        warnings=(),
        json=False,
        quiet=True,
    )
    assert await run(plan) == 3
    assert capfd.readouterr() == ("", "spoolvisor: warning: no output was kept: no-space\n")
