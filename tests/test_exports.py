"""`import supervisor` gives the public names, defines nothing, and costs only what it must."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import supervisor
import supervisor.testing

if TYPE_CHECKING:
    from types import ModuleType

SOURCE: Final = Path(supervisor.__file__).read_text("utf-8")

PROMISED: Final = frozenset(
    {"Cursor", "CursorError", "JobFailed", "Limits", "PIPE", "Receipt", "SpawnError", "StorageError", "Supervisor"}
    | {"SupervisorError", "UnknownCapture"}
)
"""Names that the documentation uses; more may be exported."""


def in_a_fresh_interpreter(program: str) -> subprocess.CompletedProcess[str]:
    """Run `program` with the package that this test imported, from no particular directory."""
    place = str(Path(supervisor.__file__).parent.parent)
    prelude = f"import sys; sys.path.insert(0, {place!r})\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + program], capture_output=True, text=True, check=False, timeout=60
    )


def is_platform_check(node: ast.stmt) -> bool:
    """Return whether `node` is `if sys.platform ...: raise ...`."""
    return (
        isinstance(node, ast.If)
        and "sys.platform" in ast.unparse(node.test)
        and not node.orelse
        and all(isinstance(inner, ast.Raise) for inner in node.body)
    )


def is_deferred_import(node: ast.stmt) -> bool:
    """Return whether `node` imports under `if TYPE_CHECKING:`, or calls `loading.on_first_use` where it is not."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    if ast.unparse(node.test) == "TYPE_CHECKING":
        return all(isinstance(inner, ast.ImportFrom) for inner in node.body)
    loads = "__getattr__, __dir__ = loading.on_first_use("
    return ast.unparse(node.test) == "not TYPE_CHECKING" and all(
        ast.unparse(inner).replace("(__getattr__, __dir__)", "__getattr__, __dir__").startswith(loads)
        for inner in node.body
    )


def names_by_module(source: str) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the public names by module, as a type checker sees them, and as they are loaded."""
    seen: dict[str, set[str]] = {}
    loaded: dict[str, set[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in node.body:
                assert isinstance(inner, ast.ImportFrom)
                seen[str(inner.module)] = {alias.name for alias in inner.names}
        elif isinstance(node, ast.If) and is_deferred_import(node):
            (call,) = (found for found in ast.walk(node) if isinstance(found, ast.Call))
            loaded = {module: set(names) for module, names in ast.literal_eval(call.args[1]).items()}
    return seen, loaded


def defined_by(source: str) -> list[str]:
    """Return the statements of a module that are more than docstring, imports, `__all__` and the platform's check.

    Imports for type checkers, and the two names by which the others are loaded on first use, are imports too.
    """
    body = ast.parse(source).body
    if ast.get_docstring(ast.parse(source)) is not None:
        body = body[1:]
    return [
        ast.unparse(node)
        for node in body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not is_platform_check(node)
        and not is_deferred_import(node)
        and not (isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"])
    ]


def test_the_package_defines_nothing() -> None:
    """Its `__init__` holds a docstring, imports and `__all__`; every name lives in a module of its own."""
    assert ast.get_docstring(ast.parse(SOURCE))
    assert defined_by(SOURCE) == []


def test_a_definition_would_be_found() -> None:
    """The check fails on functions, constants, and code under an `if` that is not the platform's."""
    assert defined_by('"""Doc."""\nimport sys\nif sys.platform == "win32":\n    raise ImportError("no")') == []
    late = "if TYPE_CHECKING:\n    from .a import b\nif not TYPE_CHECKING:\n    "
    assert defined_by(late + "__getattr__, __dir__ = loading.on_first_use(__name__, {})") == []
    assert defined_by(late + "b = 1") == [ast.unparse(ast.parse("if not TYPE_CHECKING:\n    b = 1"))]
    for planted in ("def f(): pass", "class C: pass", "VERSION = 1", "if True:\n    import os", "print()"):
        assert defined_by(f'"""Doc."""\n__all__ = []\n{planted}') != []


def by_kind(name: str) -> tuple[int, str]:
    """Sort constants, then classes, then functions, each by name: ruff's order of `__all__` (RUF022)."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_and_every_name_can_be_imported() -> None:
    """`from supervisor import *` gives just these, each of them there, none twice, none private."""
    assert list(supervisor.__all__) == sorted(set(supervisor.__all__), key=by_kind)
    assert [name for name in supervisor.__all__ if not hasattr(supervisor, name)] == []
    assert [name for name in supervisor.__all__ if name.startswith("_")] == []


@pytest.mark.parametrize("package", [supervisor, supervisor.testing], ids=["supervisor", "testing"])
def test_names_are_loaded_from_where_a_type_checker_sees_them(package: ModuleType) -> None:
    """Both lists of a package agree, and `__all__` with them; each name is there, and no other one."""
    seen, loaded = names_by_module(Path(str(package.__file__)).read_text("utf-8"))
    assert seen == loaded
    assert set(package.__all__) == {name for names in loaded.values() for name in names}
    assert set(package.__all__) <= set(dir(package))
    assert all(hasattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        package.Missing  # noqa: B018 - it is to be looked for


def test_import_alone_costs_next_to_nothing() -> None:
    """Neither package's import, nor the pytest plugin's, brings a module that takes time to load."""
    costly = ("asyncio", "pydantic", "aiofiles", "json", "subprocess", "supervisor.supervisor", "supervisor.process")
    done = in_a_fresh_interpreter(
        f"import supervisor, supervisor.testing; print([name for name in {costly!r} if name in sys.modules])\n"
        "import pytest; before = set(sys.modules)\n"
        "import supervisor.testing.plugin; print(sorted(set(sys.modules) - before))"
    )
    assert done.stdout.splitlines() == ["[]", "['supervisor.testing.plugin']"], done.stderr


def test_the_promised_names_are_public() -> None:
    """What the documentation uses is exported."""
    assert PROMISED - set(supervisor.__all__) == frozenset()


def test_import_brings_no_adapter_test_tool_or_command_line() -> None:
    """Those cost time to import and are of no use to a program that embeds the library."""
    unwanted = ("adapters", "supervisor.testing", "supervisor.cli", "hypothesis", "pytest", "click", "uvloop")
    done = in_a_fresh_interpreter(
        f"import supervisor, json; print(json.dumps([name for name in {unwanted!r} if name in sys.modules]))"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_import_starts_nothing() -> None:
    """No thread, child or descriptor exists because the package was imported."""
    done = in_a_fresh_interpreter(
        "import os, threading\n"
        "before = os.listdir('/proc/self/fd')\n"
        "import supervisor\n"
        "print(threading.active_count(), os.listdir('/proc/self/fd') == before)"
    )
    assert done.stdout == "1 True\n", done.stderr


def test_import_on_windows_is_refused_in_one_clear_line() -> None:
    """Contract G: no Windows support, and the message says so instead of a missing system module."""
    # Everything of the standard library that looks at sys.platform is loaded first, by the package itself.
    done = in_a_fresh_interpreter(
        "import supervisor\n"
        "for name in [name for name in sys.modules if name.partition('.')[0] == 'supervisor']: del sys.modules[name]\n"
        "sys.platform = 'win32'\n"
        "try:\n    import supervisor\n"
        "except ImportError as error: print(type(error).__name__, str(error))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ImportError "), done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert "Windows" in done.stdout
    assert "spoolvisor" in done.stdout
