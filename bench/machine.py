"""Where a figure was measured: without it, it means nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")


def facts(directory: Path) -> dict[str, str]:
    """Return what a figure depends on, `directory` being where the files are written."""
    return {
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "uvloop": uvloop_version() or "absent",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": str(cores()),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "filesystem": filesystem(directory),
    }


def uvloop_version() -> str | None:
    """Return the version of uvloop, None where it is not installed."""
    try:
        return importlib.metadata.version("uvloop")
    except importlib.metadata.PackageNotFoundError:
        return None


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def filesystem(directory: Path) -> str:
    """Return the type of the file system that holds `directory`, where the system tells (proc(5), mountinfo)."""
    try:
        lines = MOUNTS.read_text().splitlines()
    except OSError:
        return "unknown"
    place = directory.resolve()
    found, depth = "unknown", -1
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = Path(_unescaped(before.split()[4]))
        # Of mounts on one place, the last one in the list lies on top.
        if place.is_relative_to(mount) and len(mount.parts) >= depth:
            found, depth = after.split()[0], len(mount.parts)
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
