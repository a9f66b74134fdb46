"""A directory that cannot be used: the command runs all the same, with capture unavailable, and that is said [D2]."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import CommandLine


def a_file(place: Path) -> Path:
    """Return a file."""
    path = place / "file"
    path.write_text("kept as it is\n")
    return path


def below_a_file(place: Path) -> Path:
    """Return a path that leads through a file."""
    return a_file(place) / "directory"


def a_symlink(place: Path) -> Path:
    """Return a symlink to a directory that would do."""
    (place / "real").mkdir(mode=0o700)
    (place / "link").symlink_to("real")
    return place / "link"


def a_dangling_symlink(place: Path) -> Path:
    """Return a symlink to nothing."""
    (place / "link").symlink_to("nowhere")
    return place / "link"


def world_writable(place: Path) -> Path:
    """Return a directory in which anybody may replace what we store."""
    path = place / "open"
    path.mkdir()
    path.chmod(0o777)
    return path


def foreign(place: Path) -> Path:
    """Return somebody else's directory."""
    if os.geteuid() != 0:
        return Path("/usr")
    path = place / "foreign"
    path.mkdir()
    os.chown(path, 65534, 65534)
    return path


def unwritable(place: Path) -> Path:
    """Return a directory of ours in which nothing can be made, for root neither."""
    if os.geteuid() == 0:
        return Path("/proc")
    path = place / "unwritable"
    path.mkdir(mode=0o500)
    return path


UNSUITABLE = [a_file, below_a_file, a_symlink, a_dangling_symlink, world_writable, foreign, unwritable]


@pytest.mark.parametrize("make", UNSUITABLE, ids=[make.__name__ for make in UNSUITABLE])
def test_the_command_runs_without_a_capture(spoolvisor: CommandLine, make: Callable[[Path], Path]) -> None:
    """Output and code pass through; a warning and the receipt say that nothing is kept; nothing is made or changed."""
    directory = make(spoolvisor.place)
    before = contents(spoolvisor.place)
    done = spoolvisor("run", "--dir", str(directory), "--", "sh", "-c", "echo out; exit 3")
    assert (done.code, done.out) == (3, "out\n")
    assert [line for line in done.errors if line.startswith("spoolvisor: warning: no output will be kept in ")]
    assert any(line.startswith("capture unavailable") for line in done.errors)
    assert contents(spoolvisor.place) == before


def contents(place: Path) -> dict[str, tuple[int, int]]:
    """Return each name below, with its mode and size."""
    found = {str(path): path.lstat() for path in place.rglob("*")}
    return {path: (status.st_mode, status.st_size) for path, status in found.items()}


def test_the_warning_comes_with_quiet_too(spoolvisor: CommandLine) -> None:
    """It is all that comes."""
    done = spoolvisor("run", "--quiet", "--dir", str(world_writable(spoolvisor.place)), "--", "true")
    assert (done.code, done.out) == (0, "")
    (line,) = done.errors
    assert line.startswith("spoolvisor: warning: ")


def test_json_says_it_too(spoolvisor: CommandLine) -> None:
    """The receipt has the closed word; without files its text is at most the preview [A3]."""
    done = spoolvisor("run", "--json", "--dir", str(a_symlink(spoolvisor.place)), "--", "echo", "x")
    assert done.receipt["capture"] == {"state": "unavailable", "reason": "unsafe-directory"}
    assert done.receipt["streams"]["stdout"]["path"] is None


def test_a_directory_that_is_only_readable_for_others_will_do(spoolvisor: CommandLine) -> None:
    """The owner's own directory may be 0755, and stays so."""
    directory = spoolvisor.place / "mine"
    directory.mkdir()
    directory.chmod(0o755)
    assert spoolvisor("run", "--quiet", "--dir", str(directory), "--", "true").err == ""
    assert len(spoolvisor.captures(directory)) == 1
    assert directory.stat().st_mode & 0o777 == 0o755


def test_no_home_is_no_obstacle(spoolvisor: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nowhere to keep anything by default: None, which the library takes as `no-directory` [D1]."""
    from supervisor.cli.place import conversation_directory  # noqa: PLC0415 - a user without an entry is no fixture

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert conversation_directory(None, {}) is None
    assert conversation_directory("given", {}) == Path("given")
    assert spoolvisor.place.is_dir()
