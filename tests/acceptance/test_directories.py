"""A directory that gives no privacy is not used, not changed, and no reason to refuse the command (D2)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import Receipt, Supervisor, publish_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Conversation

NOBODY: Final = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory to another user needs root")


def tree(path: Path) -> dict[str, tuple[int, int, int]]:
    """Return mode, owner and size of everything under `path`, itself included."""
    found: dict[str, tuple[int, int, int]] = {}
    for entry in (path, *path.rglob("*")):
        status = entry.lstat()
        found[str(entry)] = (status.st_mode, status.st_uid, status.st_size)
    return found


def world_writable(path: Path) -> None:
    """Make the conversation itself writable for everybody."""
    path.chmod(0o777)


def sticky(path: Path) -> None:
    """Make it like /tmp, which is world-writable all the same."""
    path.chmod(0o1777)


def foreign(path: Path) -> None:
    """Give it to another user."""
    os.chown(path, NOBODY, NOBODY)


def link(path: Path) -> None:
    """Put a symlink in its place."""
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def linked_below(path: Path) -> None:
    """Put a symlink in the place of a directory below."""
    (path / "elsewhere").mkdir()
    (path / "tool-outputs").symlink_to("elsewhere")


def open_below(path: Path) -> None:
    """Have the directory of the captures open to others."""
    (path / "tool-outputs" / "captures").mkdir(parents=True)
    (path / "tool-outputs" / "captures").chmod(0o755)


def file_below(path: Path) -> None:
    """Have a file in the place of a directory."""
    (path / "tool-outputs").write_text("not a directory")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "spoil",
    [world_writable, sticky, pytest.param(foreign, marks=as_root), link, linked_below, open_below, file_below],
)
async def test_an_unsafe_directory_is_not_used(conversation: Conversation, spoil: Callable[[Path], None]) -> None:
    """Capture is unavailable and says why, both ways of running work, and everything is as it was."""
    spoil(conversation.path)
    before = tree(conversation.path.parent)
    async with Supervisor(conversation.path) as supervisor:
        run = await supervisor.run("echo out; exit 3", shell=True)
        started = await (await supervisor.start("echo out; exit 3", shell=True)).wait()
    for receipt in (run, started):
        assert receipt.process is not None
        assert receipt.process.code == 3
        assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "unsafe-directory")
        assert receipt.stdout == "out\n"
        assert receipt.durability is None
        facts = receipt.streams["stdout"]
        assert facts is not None
        assert (facts.reference, facts.path, facts.access) == (None, None, "unavailable")
        assert any("opening the conversation" in limitation for limitation in receipt.limitations)
    after = tree(conversation.path.parent)
    made_safely = {str(conversation.path / "tool-outputs")} if spoil is open_below else set()
    assert {path: facts for path, facts in after.items() if before.get(path) != facts}.keys() <= made_safely


@pytest.fixture
def latin(tmp_path: Path) -> Path:
    """A directory whose name is no UTF-8."""
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    directory.mkdir(0o700)
    return directory


@pytest.mark.asyncio
async def test_a_name_that_json_cannot_carry_is_left_out_of_receipts(latin: Path) -> None:
    """The capture is there, with a reference, and is read."""
    async with Supervisor(latin) as supervisor:
        receipt = await (await supervisor.start(["echo", "hi"])).wait()
    published = await publish_text(latin, "text", kind="tool")
    for each in (receipt, published):
        facts = each.streams["stdout"]
        assert facts is not None
        assert (each.capture.state, facts.access, facts.path, each.conversation) == ("complete", "local", None, None)
        assert facts.reference is not None
        assert Receipt.parse(each.to_json()) == each
    assert await receipt.read_text("stdout") == "hi\n"


@pytest.mark.asyncio
async def test_a_missing_directory_is_not_made(tmp_path: Path) -> None:
    """Whoever owns the conversation makes it (D1)."""
    async with Supervisor(tmp_path / "missing") as supervisor:
        receipt = await supervisor.run("echo out; exit 3", shell=True)
    assert (receipt.capture.state, receipt.capture.reason) == ("unavailable", "no-directory")
    assert receipt.stdout == "out\n"
    assert not (tmp_path / "missing").exists()


@pytest.mark.asyncio
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
async def test_modes_are_private_under_any_umask(conversation: Conversation, mask: int) -> None:
    """0700 and 0600 from the creation on; the host's own 0755 directories stay (D2)."""
    conversation.path.chmod(0o755)
    (conversation.path / "tool-outputs").mkdir()
    (conversation.path / "tool-outputs").chmod(0o755)
    previous = os.umask(mask)
    try:
        async with Supervisor(conversation.path) as supervisor:
            receipt = await (await supervisor.start("umask; echo out", shell=True)).wait()
    finally:
        os.umask(previous)
    assert receipt.capture.state == "complete"
    assert receipt.stdout == f"{mask:04o}\nout\n"  # the child has the umask that it would have had
    assert stat.S_IMODE((conversation.path / "tool-outputs").stat().st_mode) == 0o755
    for path in (conversation.path / "tool-outputs").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.asyncio
async def test_a_group_writable_directory_is_used_and_named(conversation: Conversation) -> None:
    """Members of the group could replace what is stored; the receipt says so (D2)."""
    conversation.path.chmod(0o770)
    async with Supervisor(conversation.path) as supervisor:
        receipt = await supervisor.run("echo out; exit 3", shell=True)
    assert receipt.capture.state == "complete"
    assert "group-writable-directory" in receipt.limitations


@contextmanager
def reachable() -> Iterator[Path]:
    """Give a directory that another user can walk to, which pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@as_root
def test_an_ordinary_user_gets_a_capture_only_where_one_can_be_made(
    host_program: Callable[..., list[str]], loop_module: str
) -> None:
    """Root ignores modes, so this needs somebody else; the command runs in each case."""
    cases = {"own": (NOBODY, 0o700), "unwritable": (NOBODY, 0o500), "closed": (NOBODY, 0), "roots": (0, 0o755)}
    with reachable() as above:
        for name, (owner, mode) in cases.items():
            (above / name).mkdir()
            os.chown(above / name, owner, owner)
            (above / name).chmod(mode)
        command = host_program("unprivileged_host", loop_module, *(str(above / name) for name in cases))
        told: list[dict[str, Any]] = json.loads(
            subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
        )
        left = {name: [path.name for path in (above / name).iterdir()] for name in cases}
    for receipt in told:
        assert receipt["process"]["code"] == 3
        assert receipt["streams"]["stdout"]["preview"]["head"] == "out\n"
    complete, unsafe = (
        {"state": "complete", "reason": None},
        {"state": "unavailable", "reason": "unsafe-directory"},
    )
    assert [receipt["capture"] for receipt in told] == [complete] * 2 + [unsafe] * 6
    assert left == {"own": ["tool-outputs"], "unwritable": [], "closed": [], "roots": []}
