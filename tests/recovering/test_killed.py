"""Recovery and removal, killed at each of their system calls (D6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Left


def killed_at_each_call(
    program: Callable[..., list[str]], action: str, conversation: Path, room: Path, *ids: str
) -> dict[str, Any]:
    """Run the program that kills itself at each call, and return what it found."""
    room.mkdir()
    done = subprocess.run(
        program("killed_recovery", action, conversation, room, *ids), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_recovery_killed_at_any_call_and_run_again_ends_at_the_same(
    program: Callable[..., list[str]], left: Left, tmp_path: Path
) -> None:
    """Before each system call in turn, in the middle of each write; half-done states of the owner are among it."""
    directory, ids = left.path, left.ids
    first, second, third = (left.captures / capture_id for capture_id in ids[:3])
    os.link(first / "stdout.live", first / "stdout.log")
    (second / "launch.json").rename(second / ".launch.unfinished")
    (third / ".receipt.reserved").unlink()
    for capture_id in ids[3:]:
        shutil.rmtree(left.captures / capture_id)
    result = killed_at_each_call(program, "recover", directory, tmp_path / "room")
    assert result["calls"] > 100
    assert [receipt["capture"]["reason"] for receipt in result["expected"][:-1]] == ["supervisor-lost"] * 3
    assert sum("receipt.json" in name for name in result["expected"][-1]) == 3
    assert result["differing"] == []


def test_a_removal_killed_at_any_call_and_run_again_ends_at_the_same(
    program: Callable[..., list[str]], left: Left, tmp_path: Path
) -> None:
    """The captures are gone, all others are untouched, and nothing is left under another name."""
    directory, ids = left.path, left.ids
    for capture_id in ids[3:]:
        shutil.rmtree(left.captures / capture_id)
    result = killed_at_each_call(program, "remove", directory, tmp_path / "room", *ids[:2])
    assert [receipt["capture_id"] for receipt in result["expected"][:-1]] == [ids[2]]
    assert not [name for name in result["expected"][-1] if ".removed" in name]
    assert result["differing"] == []
