"""The import direction of the design ("Layout") as a failing test."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent

FLOOR: Final = ("supervisor.sansio", "supervisor.errors", "supervisor.limits")
"""What every room of `supervisor` may import."""

ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "supervisor.sansio": FLOOR,
    "supervisor.process": (*FLOOR, "supervisor.process"),
    "supervisor.storage": (*FLOOR, "supervisor.storage"),
}
"""The rooms, with the only modules of ours that each may import; the root and `cli` may import all three."""

IMPURE: Final = frozenset(
    {"aiofiles", "asyncio", "io", "multiprocessing", "os", "pathlib", "select", "shutil", "socket", "subprocess"}
    | {"tempfile", "threading", "time", "uvloop"}
)
"""What would let `sansio` wait, look at a clock, or touch the system."""

SHARED_ADAPTERS: Final = frozenset({"adapters.blocking", "adapters.transcript"})
"""The adapters on which a host adapter may build."""


def package_of(module: str, path: Path) -> str:
    """Return the package against which `module`'s relative imports are resolved."""
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def imports(source: str, package: str) -> list[tuple[str, str | None, int]]:
    """Return (module, name or None, level) of each import, at any depth of the code; relative ones resolved."""
    found: list[tuple[str, str | None, int]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.extend((alias.name, None, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*parents, *filter(None, [node.module])])
            found.extend((module, alias.name, node.level) for alias in node.names)
    return found


def within(module: str, packages: tuple[str, ...] | frozenset[str]) -> bool:
    """Return whether `module` is one of `packages` or lies inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def supervisor_violations(module: str, package: str, source: str) -> list[str]:
    """Return what a module of `supervisor` imports against the rules, one sentence each."""
    wrong: list[str] = []
    room = next((room for room in ROOMS if within(module, (room,))), None)
    for origin, name, level in imports(source, package):
        target = f"{origin}.{name}" if name and origin in {"supervisor", "adapters"} else origin
        top = target.partition(".")[0]
        if top == "adapters":
            wrong.append(f"{module} imports {target}: nothing in supervisor imports an adapter")
        if top == "supervisor" and not level:
            wrong.append(f"{module} imports {target} absolutely")
        if top == "supervisor" and room and not within(target, ROOMS[room]):
            wrong.append(f"{module} imports {target}: {room} may not")
        if within(target, ("supervisor.testing",)) and not within(module, ("supervisor.testing",)):
            wrong.append(f"{module} imports {target}: only testing imports testing")
        if room == "supervisor.sansio" and top in IMPURE:
            wrong.append(f"{module} imports {target}: sansio is pure")
        if room == "supervisor.process" and top == "pydantic":
            wrong.append(f"{module} imports {target}: process is the hot path")
        if top == "aiofiles" and room != "supervisor.storage":
            wrong.append(f"{module} imports {target}: aiofiles stays in storage")
        if top == "click" and not within(module, ("supervisor.cli",)):
            wrong.append(f"{module} imports {target}: click stays in the command line")
    return wrong


def adapter_violations(module: str, package: str, source: str, public: frozenset[str]) -> list[str]:
    """Return what a module of `adapters` imports against the rules, one sentence each."""
    wrong: list[str] = []
    own = ".".join(module.split(".")[:2])
    for origin, name, _ in imports(source, package):
        target = f"{origin}.{name}" if name and origin == "adapters" else origin
        if origin == "supervisor" and name not in public:
            wrong.append(f"{module} imports {name or 'the package'} from supervisor: not a public name")
        if origin.startswith("supervisor."):
            wrong.append(f"{module} imports {origin}: an adapter knows the public names only")
        if target.startswith("adapters.") and not within(target, SHARED_ADAPTERS | {own}):
            wrong.append(f"{module} imports {target}: another adapter")
    return wrong


def modules(top: str) -> list[tuple[str, str, str]]:
    """Return (module, package, source) of each module under a top-level folder."""
    found = []
    for path in sorted((ROOT / top).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found.append((module, package_of(module, path), path.read_text("utf-8")))
    return found


def public_names() -> frozenset[str]:
    """Return `supervisor.__all__`, read from the source so that the check needs no import."""
    tree = ast.parse((ROOT / "supervisor/__init__.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node).partition("=")[0]:
            assert node.value is not None
            return frozenset(ast.literal_eval(node.value))
    raise AssertionError("supervisor/__init__.py has no __all__")


def test_supervisor_keeps_the_import_direction() -> None:
    """No module of `supervisor` imports against the design."""
    found = modules("supervisor")
    assert {"supervisor.errors", "supervisor.sansio.exits"} <= {module for module, _, _ in found}
    assert [wrong for module in found for wrong in supervisor_violations(*module)] == []


def test_adapters_know_only_the_public_names() -> None:
    """No adapter reaches past `supervisor.__all__` or into another adapter."""
    public = public_names()
    assert [wrong for module in modules("adapters") for wrong in adapter_violations(*module, public)] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("supervisor.sansio.decoder", "from ..process import spawn"),
        ("supervisor.sansio.decoder", "from .. import job"),
        ("supervisor.sansio.decoder", "from ..job import Job"),
        ("supervisor.sansio.engines.stdlib", "from ...storage.spool import Spool"),
        ("supervisor.sansio.decoder", "import asyncio"),
        ("supervisor.sansio.decoder", "import os.path"),
        ("supervisor.sansio.decoder", "from io import BytesIO"),
        ("supervisor.sansio.decoder", "def later():\n    import time"),
        ("supervisor.sansio.decoder", "from pathlib import Path"),
        ("supervisor.sansio.decoder", "from threading import Lock"),
        ("supervisor.sansio.decoder", "import socket, subprocess"),
        ("supervisor.process.reader", "from ..storage import spool"),
        ("supervisor.process.reader", "from ..pump import Pump"),
        ("supervisor.process.reader", "from .. import pump"),
        ("supervisor.process.reader", "from pydantic import BaseModel"),
        ("supervisor.process.reader", "import aiofiles"),
        ("supervisor.storage.spool", "from ..process.spawn import spawn"),
        ("supervisor.storage.spool", "from ..captures import read_capture"),
        ("supervisor.storage.spool", "from supervisor.errors import StorageError"),
        ("supervisor.storage.spool", "import supervisor"),
        ("supervisor.job", "from .testing import FakeChild"),
        ("supervisor.job", "from .testing.faults import Files"),
        ("supervisor.job", "from . import testing"),
        ("supervisor.job", "import aiofiles.os"),
        ("supervisor.job", "import click"),
        ("supervisor.job", "from supervisor import errors"),
        ("supervisor.cli.run", "from adapters import blocking"),
        ("supervisor.testing.child", "import adapters.gptme"),
    ],
)
def test_a_violation_in_supervisor_is_found(module: str, source: str) -> None:
    """Each rule fails on a planted line that breaks it."""
    assert supervisor_violations(module, module.rpartition(".")[0], source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("supervisor.sansio.decoder", "from ..errors import StorageError\nfrom . import exits\nimport signal, re"),
        ("supervisor.sansio.engines.stdlib", "from ..needles import NeedleSet\nfrom ...limits import Limits"),
        (
            "supervisor.process.reader",
            "import os, asyncio\nfrom ..sansio.exits import Exited\nfrom .status import seen",
        ),
        ("supervisor.storage.spool", "import aiofiles\nfrom pydantic import BaseModel\nfrom ..limits import Limits"),
        ("supervisor.job", "from . import process, storage\nfrom .sansio.receipt import Receipt"),
        ("supervisor.testing.child", "from ..process import transport\nfrom .faults import Files"),
        ("supervisor.cli.run", "import click\nfrom ..supervisor import Supervisor\nfrom .output import show"),
    ],
)
def test_what_the_design_allows_is_not_a_violation(module: str, source: str) -> None:
    """The checker does not forbid by being blind: allowed imports of each room pass."""
    assert supervisor_violations(module, module.rpartition(".")[0], source) == []


@pytest.mark.parametrize(
    ("module", "source", "allowed"),
    [
        ("adapters.dask", "from supervisor import Supervisor", True),
        ("adapters.dask", "from supervisor import Pump", False),
        ("adapters.dask", "import supervisor", False),
        ("adapters.dask", "from supervisor.job import Job", False),
        ("adapters.dask", "import supervisor.sansio", False),
        ("adapters.dask", "from .http import route", False),
        ("adapters.dask", "from adapters import mcp", False),
        ("adapters.gptme.hooks", "from ..blocking import run\nfrom .plugin import init", True),
        ("adapters.gptme.hooks", "from .. import transcript", True),
        ("adapters.gptme.hooks", "from ..acp import terminal", False),
    ],
)
def test_an_adapter_is_judged_by_the_public_names(module: str, source: str, *, allowed: bool) -> None:
    """Planted lines of an adapter, allowed and not."""
    found = adapter_violations(module, module.rpartition(".")[0], source, frozenset({"Supervisor"}))
    assert (found == []) is allowed


def test_a_package_resolves_its_own_relative_imports_from_itself() -> None:
    """In an `__init__.py` one dot is the package, elsewhere its parent."""
    assert package_of("supervisor.sansio", Path("__init__.py")) == "supervisor.sansio"
    assert package_of("supervisor.sansio.exits", Path("exits.py")) == "supervisor.sansio"
    assert imports("from ..errors import SpawnError", "supervisor.sansio") == [("supervisor.errors", "SpawnError", 2)]
