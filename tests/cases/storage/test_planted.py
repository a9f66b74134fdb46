"""What was planted, moved or left open around our files is neither followed nor handed down (D2)."""

# ruff: noqa: ANN401 - fixtures hand out classes of conftest.py
from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import supervisor as package
from supervisor import Supervisor
from supervisor.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

LOUD: Final = "seq 1 20000; exit 5"
PATIENCE: Final = 60.0


@pytest.mark.asyncio
async def test_h6_049_a_name_that_was_guessed_is_not_written_through(
    conversation: Conversation, journal: Any, tmp_path: Path
) -> None:
    """H6-049 (anthropics/claude-code#14085): exports had predictable names in /tmp, where symlinks could wait."""
    victim = tmp_path / "authorized_keys"
    victim.write_text("kept as it is")

    def plant() -> None:
        (capture,) = conversation.captures()
        assert stat.S_IMODE(capture.stat().st_mode) == 0o700
        (capture / "stdout.live").symlink_to(victim)

    journal.before["create", "stdout.live"] = plant
    async with Supervisor(conversation.path, storage=LocalStorage(journal)) as supervisor:
        receipts = [await supervisor.run(LOUD, shell=True) for _ in range(3)]
    assert victim.read_text() == "kept as it is"
    assert [receipt.process and receipt.process.code for receipt in receipts] == [5, 5, 5]
    assert [receipt.capture.state for receipt in receipts] == ["unavailable", "complete", "complete"]
    _, first, second = [receipt.capture_id.rpartition("-")[2] for receipt in receipts]
    assert len(first) == len(second) == 32  # 128 bits
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 16


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("moved", "next_step"), [("tool-outputs", ("open_directory", "captures")), ("captures", ("create", "stdout.live"))]
)
async def test_h6_053_what_is_swapped_above_an_open_directory_leads_nowhere(
    conversation: Conversation, journal: Any, tmp_path: Path, moved: str, next_step: tuple[str, str]
) -> None:
    """H6-053 (RsyncProject/rsync#939): a flag that the kernel did not know kept nobody below the directory."""
    async with Supervisor(conversation.path) as supervisor:
        await supervisor.run(LOUD, shell=True)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "captures").mkdir(parents=True, mode=0o700)
    (elsewhere / ".supervisor").mkdir(mode=0o700)
    elsewhere.chmod(0o700)
    (found,) = [path for path in conversation.path.rglob(moved) if path.is_dir()]

    def swap() -> None:
        found.rename(found.with_name("away"))
        found.symlink_to(elsewhere)

    journal.before[next_step] = swap
    async with Supervisor(conversation.path, storage=LocalStorage(journal)) as supervisor:
        receipt = await supervisor.run(LOUD, shell=True)
    assert found.is_symlink()
    assert sorted(path.name for path in elsewhere.rglob("*")) == [".supervisor", "captures"]
    assert receipt.process is not None
    assert receipt.process.code == 5
    (kept,) = found.with_name("away").rglob(receipt.capture_id)
    assert (kept / "stdout.log").read_bytes().endswith(b"\n20000\n")


def test_h6_060_directories_that_the_command_line_makes_are_private(
    conversation: Conversation, umask: Callable[[int], object]
) -> None:
    """H6-060 (treeverse/dvc#2789): `get -o data/x` made `data` open to everybody under umask 0."""
    umask(0)
    home = Path(package.__file__).parent.parent
    kept, given = conversation.path / "a" / "b", conversation.path / "c" / "d" / "e"

    def spoolvisor(*arguments: str) -> str:
        command = [sys.executable, "-m", "supervisor", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(home)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    spoolvisor("run", "--dir", str(kept), "--", "echo", "out")
    (capture,) = kept.glob("tool-outputs/captures/*")
    spoolvisor("export", "--dir", str(kept), capture.name, str(given))
    made = list(conversation.path.rglob("*"))
    assert (given / "tool-outputs" / "captures" / capture.name / "stdout.log") in made
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in made} == {(True, 0o700), (False, 0o600)}
