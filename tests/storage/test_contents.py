"""Which files a capture has, where somebody else has put one beside them [D2, E7]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor import Supervisor, list_captures
from supervisor.storage import Files
from supervisor.storage.contents import find_names
from supervisor.storage.evidence import find_rooms

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
@pytest.mark.parametrize(("live", "expected"), [(False, "stdout.log"), (True, "stdout.live")])
async def test_the_name_in_the_receipt_goes_before_one_that_somebody_else_made(
    tmp_path: Path,
    live: bool,  # noqa: FBT001 - a parameter of the test
    expected: str,
) -> None:
    """Whichever of the two names it is: a file under the other one is not ours."""
    async with Supervisor(tmp_path, durability="none") as supervisor:
        receipt = await (await supervisor.start(["echo", "ours"])).wait()
    capture = tmp_path / "tool-outputs" / "captures" / receipt.capture_id
    if live:
        facts = receipt.streams["stdout"]
        assert facts is not None
        changed = facts.model_copy(update={"reference": f"{facts.reference}".replace(".log", ".live")})
        receipt = receipt.model_copy(update={"streams": {**receipt.streams, "stdout": changed}})
        (capture / "stdout.log").rename(capture / "stdout.live")
        (capture / "receipt.json").write_bytes(receipt.to_json())
    other = capture / ("stdout.log" if live else "stdout.live")
    other.write_bytes(b"theirs")
    rooms = find_rooms(Files(), tmp_path)
    assert rooms is not None
    try:
        names = find_names(Files(), rooms, receipt)
    finally:
        rooms.discard()
    assert names is not None
    assert names["stdout"] == expected
    (listed,) = await list_captures(tmp_path)
    facts = listed.streams["stdout"]
    assert facts is not None
    assert facts.reference == f"tool-outputs/captures/{receipt.capture_id}/{expected}"
