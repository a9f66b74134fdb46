"""The single looks of `doctor`. Each changes nothing and leaves nothing, and says what follows from what it saw."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ..matching import engine_name
from ..process.status import pidfd_supported
from ..sansio.engines import stdlib
from ..storage import Files
from ..storage.directory import check_directory, sync_directory
from ..storage.faults import UnsafeDirectoryError, text_of
from ..storage.owners import LOCK_UNSUPPORTED
from .loops import loop_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

DISTRIBUTION: Final = "spoolvisor"
IMPORT_NAMES: Final = ("supervisor", "adapters")
NO_UNNAMED_FILES: Final = frozenset({errno.EISDIR, errno.ENOENT, errno.EOPNOTSUPP})
"""How a file system, or a kernel, says that it has no O_TMPFILE (open(2))."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look has found."""

    verdict: Literal["ok", "warn", "fail"]
    text: str


def contained(look: Callable[[], Finding]) -> Finding:
    """Return what a look finds; one that the system refuses has failed, and the others go on."""
    try:
        return look()
    except OSError as error:
        return Finding("fail", f"cannot be looked at: {text_of(error)}")


def owners() -> dict[str, Sequence[str]]:
    """Return which installed distributions own our import names."""
    found = metadata.packages_distributions()
    return {name: sorted(set(found.get(name, ()))) for name in IMPORT_NAMES}


def names(owned: Mapping[str, Sequence[str]]) -> Finding:
    """Look whether the import names are ours alone: no installer warns when one distribution overwrites another."""
    wrong = [
        f"{name} is also of {', '.join(others)}"
        for name, distributions in owned.items()
        if (others := [each for each in distributions if each != DISTRIBUTION])
    ]
    ours = Path(__file__).parents[2]
    wrong += [
        f"{name} is imported from {origin}"
        for name in IMPORT_NAMES
        if (origin := _origin(name)) is not None and origin != ours / name
    ]
    if wrong:
        return Finding("fail", f"{'; '.join(wrong)}: install {DISTRIBUTION} into an environment of its own")
    installed = any(DISTRIBUTION in distributions for distributions in owned.values())
    return Finding("ok", "supervisor and adapters are ours alone" + ("" if installed else ", from a checkout"))


def loop() -> Finding:
    """Look which event loop the command line runs on."""
    if loop_factory() is None:
        return Finding("warn", "asyncio's own, which is slower: uvloop is not installed")
    return Finding("ok", f"uvloop {metadata.version('uvloop')}")


def engine() -> Finding:
    """Look what known values and rules are searched with."""
    found = engine_name()
    if found == stdlib.NAME:
        return Finding("warn", "the standard library's, some hundred times slower: hyperscan is not installed")
    return Finding("ok", f"{found} {metadata.version(found)}")


def directory(wanted: Path, nearest: Path) -> Finding:
    """Look whether captures can be kept in `wanted`, of which `nearest` exists."""
    with _opened(nearest) as number:
        try:
            check_directory(Files(), number, private=False)
        except UnsafeDirectoryError as error:
            # Above the directory that we make, anything that lets us make it will do: /tmp is everybody's.
            if nearest == wanted:
                return Finding("fail", f"{wanted}: {text_of(error)}")
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("fail", f"{nearest} cannot be written to")
    return Finding("ok", str(wanted) if nearest == wanted else f"{wanted}, to be made by the first run")


def barrier(nearest: Path) -> Finding:
    """Look whether directories can be synced, so that a published name survives a loss of power [D4]."""
    with _opened(nearest) as number:
        try:
            missing = sync_directory(Files(), number)
        except OSError as error:
            return Finding("fail", f"syncing {nearest} failed: {text_of(error)}")
    if missing is not None:
        return Finding("warn", f"the file system of {nearest} has no barrier for directories; receipts will say so")
    return Finding("ok", f"the file system of {nearest} syncs directories")


def locks(nearest: Path) -> Finding:
    """Look whether files can be locked, by which one process knows that another one lives [D6]."""
    try:
        number = os.open(nearest, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in NO_UNNAMED_FILES:
            raise
        return Finding("warn", f"the file system of {nearest} has no unnamed files to try them on")
    try:
        Files().lock(number, exclusive=True)
    except OSError as error:
        if error.errno not in LOCK_UNSUPPORTED:
            raise
        return Finding("warn", f"the file system of {nearest} has none: others cannot tell whether a capture is live")
    finally:
        os.close(number)
    return Finding("ok", f"the file system of {nearest} has them")


def pidfd() -> Finding:
    """Look how the end of a command is seen."""
    if pidfd_supported():
        return Finding("ok", "the end of a command is seen by its pidfd")
    return Finding("warn", "there is none: the end of a command is seen by a slower way, and receipts will say so")


def cgroup(membership: Path, root: Path) -> Finding:
    """Look whether this process may make control groups below its own (cgroups(7))."""
    try:
        lines = membership.read_text().splitlines()
    except FileNotFoundError:
        lines = []
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if own is None or not (root / "cgroup.controllers").exists():
        return Finding("warn", "v2 is not there")
    group = root / own.lstrip("/")
    if os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK):
        return Finding("ok", f"v2, and {own} is writable")
    return Finding("warn", f"v2, but {own} is not writable")


def nearest_directory(wanted: Path) -> Path:
    """Return the directory itself, or the innermost one above it that exists."""
    return next((path for path in (wanted, *wanted.parents) if path.is_dir()), Path("/"))


def _origin(name: str) -> Path | None:
    spec = util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@contextmanager
def _opened(path: Path) -> Generator[int]:
    number = Files().open_directory(str(path))
    try:
        yield number
    finally:
        os.close(number)
