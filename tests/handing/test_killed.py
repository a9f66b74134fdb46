"""A copy killed at each system call by which it changes anything leaves all of a capture, or nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from conftest import Talk


@pytest.mark.parametrize("action", ["export", "share"])
def test_a_copy_killed_at_any_call_and_run_again_ends_at_the_same(
    program: Callable[..., list[str]], fill: Callable[[Path], Coroutine[Any, Any, Talk]], tmp_path: Path, action: str
) -> None:
    """Before each system call in turn, in the middle of each write; nothing of the first run is left then."""
    room = tmp_path / "room"
    for directory in (tmp_path / "talk", room):
        directory.mkdir(mode=0o700)
    talk = asyncio.run(fill(tmp_path / "talk"))
    done = subprocess.run(
        program("killed_copy", action, talk.path, room, talk.ids[0]), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["calls"] > 40
    assert result["without"] > 20
    assert result["with_all"] > 5
    assert result["without"] + result["with_all"] == result["calls"]
