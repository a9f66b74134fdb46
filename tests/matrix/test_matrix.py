"""Every shape of a process tree, made by every shell, ends with its job: nobody is left and the receipt is true (F3).

Each column of the table in docs/process-trees.md is one run of tests/programs/matrix_host.py, with all shapes at once;
each cell is a test of its own. Shells and cgroups that a machine has not are skipped by name.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor.process import cgroup

if TYPE_CHECKING:
    from collections.abc import Callable

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "process-trees.md"
SHELLS: Final = ("sh", "bash", "dash", "zsh")
HALVES: Final = ("root", "root, cgroup", "user", "user, cgroup")
BOUNDED: Final = ("prlimit", "--nproc=LIMIT:LIMIT")
AS_USER: Final = ("setpriv", "--reuid=USER", "--regid=USER", "--clear-groups")


@dataclass(frozen=True)
class Shape:
    """A script that makes a tree; `$S` is the shell; see tests/programs/matrix_host.py."""

    script: str
    processes: int
    lines: int = 1
    stopped: int = 0
    shells: tuple[str, ...] = SHELLS
    forced: bool = False
    """Whether only KILL ends it; the children of a zsh that ignores TERM do not ignore it."""


SHAPES: Final[dict[str, Shape]] = {
    "plain": Shape("echo ready; sleep 1000; :", 2),
    "background": Shape("(sleep 1000 & sleep 1000; :) & sleep 1000 & echo ready; wait", 5),
    "nohup": Shape("nohup $S -c 'echo ready; sleep 1000; :' & wait", 3),
    "setsid": Shape("setsid $S -c 'echo ready; sleep 1000; :' & wait", 3),
    "double fork": Shape("(setsid $S -c 'echo ready; sleep 1000; :' & ); echo ready; sleep 1000; :", 4, lines=2),
    "disown": Shape("sleep 1000 & disown; echo ready; sleep 1000; :", 3, shells=("bash", "zsh")),
    "coproc": Shape("coproc cat; echo ready; sleep 1000; :", 3, shells=("bash", "zsh")),
    "exec": Shape("sleep 1000 & echo ready; exec sleep 1000", 2),
    "trap-TERM": Shape("trap '' TERM; setsid $S -c 'echo ready; sleep 1000; :' & wait", 3, forced=True),
    "stopped": Shape("setsid $S -c 'kill -STOP $$; :' & echo ready; kill -STOP $$; wait", 2, stopped=2),
    "ptraced": Shape('PYTHON -S -E -c "$TRACING" & wait', 4, stopped=1),
    "fork bomb": Shape("b() { sleep 1000 & (b) & (b) & wait; }; sleep 1000 & b & echo ready; wait", 12),
}


def cells() -> list[tuple[str, str, str]]:
    """Return half, shell and shape of each cell."""
    return [(half, shell, shape) for half in HALVES for shell in SHELLS for shape in SHAPES]


def command(shell: str, name: str, *, root: bool) -> list[str]:
    """Return what makes the tree, in that shell; root's bomb runs as a user of its own, since nothing binds root."""
    path = shutil.which(shell) or ""
    script = SHAPES[name].script.replace("$S", path)
    bounds = () if name != "fork bomb" else (*AS_USER, *BOUNDED) if root else BOUNDED
    return [*bounds, path, "-c", script]


@functools.cache
def cgroup_here() -> bool:
    """Whether the supervisor can make a cgroup here."""
    made = cgroup.make("spoolvisor-matrix")
    if made is not None:
        made.remove()
    return made is not None


@pytest.fixture(scope="module")
def column() -> Callable[[str, str, list[str]], dict[str, Any]]:
    """Return a function that returns what became of all shapes of a shell, run at the first call."""

    @functools.cache
    def told(half: str, shell: str, program: tuple[str, ...]) -> dict[str, Any]:
        shapes = {
            name: {"command": command(shell, name, root=half.startswith("root")), **vars(shape)}
            for name, shape in SHAPES.items()
            if shell in shape.shells
        }
        user = "-1" if half.startswith("root") or os.geteuid() != 0 else str(200_000 + os.getpid())
        mechanism = "cgroup" if half.endswith("cgroup") else "signals"
        done = subprocess.run([*program, user, mechanism, json.dumps(shapes)], stdout=subprocess.PIPE, check=False)
        return json.loads(done.stdout or b"{}")

    return lambda half, shell, program: told(half, shell, tuple(program))


@pytest.mark.parametrize(("half", "shell", "shape"), cells())
def test_a_tree_ends_with_its_job(
    half: str,
    shell: str,
    shape: str,
    column: Callable[[str, str, list[str]], dict[str, Any]],
    program: Callable[..., list[str]],
) -> None:
    """Nobody is left, the receipt says so, and KILL was sent where nothing less ends it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is absent here")
    if shell not in SHAPES[shape].shells:
        pytest.skip(f"{shell} has no {shape}")
    if os.geteuid() != 0 and half.startswith("root"):
        pytest.skip("only root can be root")
    if half.endswith("cgroup") and not (cgroup_here() and half.startswith("root") == (os.geteuid() == 0)):
        pytest.skip("this user can make no cgroup here")
    cell = column(half, shell, program("matrix_host", "asyncio")).get(shape)
    assert cell is not None, "the run of this column has failed"
    if "absent" in cell:
        pytest.skip(cell["absent"])
    process = cell["receipt"]["process"]
    assert cell["left"] == []
    assert (process["state"], process["reason"]) == ("cancelled", "caller")
    assert (process["kill_confirmed"], process["survivors"]) == (True, [])
    if SHAPES[shape].forced and shell != "zsh":
        assert process["forced"]
        assert (cell["enclosed"] > 0) == half.endswith("cgroup")


def test_the_document_has_every_cell() -> None:
    """A table for each half, in it a row for each shape and a column for each shell, and it is true."""
    told: dict[tuple[str, str, str], str] = {}
    half, shells = "", list[str]()
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("### "):
            half, shells = line.removeprefix("### ").split(" (")[0].lower(), []
        elif half and line.startswith("| "):
            first, *words = [word.strip() for word in line.strip("|").split("|")]
            if first == "shape":
                shells = words
            else:
                told |= {(half, shell, first): word for shell, word in zip(shells, words, strict=True)}
    assert set(told) == set(cells())
    for (half, shell, shape), word in told.items():
        assert (word == "none") == (shell not in SHAPES[shape].shells), (half, shell, shape)
        assert word.startswith("KILL") or not SHAPES[shape].forced or word in {"absent", "not run"}, (
            half,
            shell,
            shape,
        )
