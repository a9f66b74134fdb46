"""The wheel holds what it should, and both import names are ours alone (README, second paragraph)."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
IMPORT_NAMES: Final = ("supervisor", "adapters")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel, built from this tree by its own backend, without an installer or a network."""
    pytest.importorskip("hatchling", reason="the build backend comes with the `test` extra")
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    (built,) = target.glob("*.whl")
    return zipfile.Path(built)


def names(wheel: zipfile.Path) -> set[str]:
    """Return the names of all files in the wheel."""
    return {name for name in wheel.root.namelist() if not name.endswith("/")}


def owners(import_name: str) -> set[str]:
    """Return the distributions of this environment that install `import_name`."""
    return set(packages_distributions().get(import_name, ()))


def test_the_wheel_holds_the_two_packages_and_nothing_else(wheel: zipfile.Path) -> None:
    """No tests, benchmarks or documents come along; beside the packages there is only the metadata."""
    tops = {name.partition("/")[0] for name in names(wheel)}
    assert tops == {*IMPORT_NAMES, f"{PROJECT['name']}-{PROJECT['version']}.dist-info"}


def test_the_wheel_holds_every_module_and_the_type_markers(wheel: zipfile.Path) -> None:
    """What is in the tree is in the wheel, `py.typed` of both packages included."""
    in_tree = {
        str(path.relative_to(ROOT))
        for package in IMPORT_NAMES
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".typed"}
    }
    assert {"supervisor/py.typed", "adapters/py.typed", "supervisor/__init__.py"} <= in_tree
    assert {name for name in names(wheel) if name.partition("/")[0] in IMPORT_NAMES} == in_tree


def test_the_wheel_is_for_every_python_and_has_the_command(wheel: zipfile.Path) -> None:
    """It is pure Python, carries the licence, and installs `spoolvisor`."""
    metadata = next(path for path in wheel.iterdir() if path.name.endswith(".dist-info"))
    assert "Tag: py3-none-any" in (metadata / "WHEEL").read_text()
    assert "spoolvisor = supervisor.cli:main" in (metadata / "entry_points.txt").read_text()
    assert (metadata / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("import_name", IMPORT_NAMES)
def test_an_import_name_is_ours_alone(import_name: str) -> None:
    """No other distribution of this environment installs it: no installer would have warned."""
    assert owners(import_name) <= {PROJECT["name"]}


@pytest.mark.parametrize("import_name", IMPORT_NAMES)
def test_a_collision_would_be_noticed(import_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted distribution with the same import name is counted among the owners."""
    metadata = tmp_path / "intruder-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: intruder\nVersion: 1.0\n")
    (metadata / "top_level.txt").write_text(f"{import_name}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "intruder" in owners(import_name)


def test_the_changelog_names_the_version() -> None:
    """What is released is described."""
    assert f"[{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
