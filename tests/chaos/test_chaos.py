"""A random run of everything at once, decided by a seed: a few seconds of `tests/chaos/harness/main.py` on each loop.

With `CRASH_TESTS=full` a seed that nobody chose is tried as well; it is printed, and is in the message of a failure.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

HARNESS: Final = Path(__file__).parent / "harness"
SEED: Final = 253
ROUNDS: Final = "0:3"
PATIENCE: Final = 110

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="the harness looks at /proc"),
]


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> str:
    """Return the module whose `run` the harness uses."""
    pytest.importorskip(request.param)
    if os.environ.get("CRASH_TESTS") != "full" and request.param == "asyncio":
        pytest.skip("its time is for CI: CRASH_TESTS=full")
    return request.param


def harness(*arguments: object, patch: str = "") -> subprocess.CompletedProcess[str]:
    """Run the harness with this process's imports, after a change that breaks the product on purpose."""
    code = f"import runpy, sys\nsys.path[:] = {[str(HARNESS), *sys.path]!r}\n{patch}\ndel sys.argv[0]\n"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-W", "error", "-c", code, str(HARNESS / "main.py"), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what was done, after checking that nothing was violated."""
    print(done.stdout)  # noqa: T201 - the seed, for who wants to play it again
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_known_seed_ends_with_everything_settled(loop: str) -> None:
    """Its seed is printed first, whatever happens then."""
    done = harness("--seed", SEED, "--rounds", ROUNDS, "--loop", loop)
    assert done.stdout.startswith(f"chaos with --seed {SEED} --loop {loop}\n")
    told = figures(done)
    assert (told["seed"], told["loop"], told["found"], told["counts"]["rounds"]) == (SEED, loop, 0, 3)
    assert told["counts"]["jobs"] > 25


@pytest.mark.skipif(os.environ.get("CRASH_TESTS") != "full", reason="its time is for CI: CRASH_TESTS=full")
def test_a_seed_that_nobody_chose_ends_with_everything_settled(loop: str) -> None:
    """Ten seconds of it."""
    assert figures(harness("--seed", secrets.randbits(32), "--seconds", 10, "--loop", loop))["found"] == 0


def test_a_seed_repeats_its_decisions() -> None:
    """In another process, too; another seed, or another round, decides otherwise."""
    code = f"import sys; sys.path[:] = {[str(HARNESS), *sys.path]!r}\n"
    code += "from plans import plan; print(plan(*map(int, sys.argv[1:])))"

    def planned(seed: int, number: int) -> str:
        command = [sys.executable, "-c", code, str(seed), str(number)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    first = planned(SEED, 1)
    assert first == planned(SEED, 1)
    assert len({first, planned(SEED, 2), planned(SEED + 1, 1)}) == 3


BREAKS: Final[dict[str, tuple[str, str]]] = {
    "a byte is lost": (
        (
            "from supervisor.sansio.decoder import Decoder as C\nwas = C.feed\n"
            "C.feed = lambda self, data: was(self, data[:-1] if len(data) > 9 else data)"
        ),
        "the text is not what was printed",
    ),
    "a secret is spilled": (
        (
            "from supervisor.sansio.needles import NeedleSet as C\nwas = C.build.__func__\n"
            "C.build = classmethod(lambda cls, *sources, **more: was(cls, **more))"
        ),
        "has a secret or half of one",
    ),
    "a discarded byte is not counted": (
        (
            "from supervisor.sansio.ledger import Ledger as C\nwas = C.snapshot\nfrom dataclasses import replace\n"
            "C.snapshot = lambda self: (lambda s: replace(s, observed=s.observed + 1))(was(self))"
        ),
        "it does not add up",
    ),
    "an end is told to nobody": (
        (
            "from supervisor.completions import Offers as C\nwas = C.offer\n"
            "C.offer = lambda self, receipt, *, marked: None if marked else was(self, receipt, marked=marked)\n"
            "async def earlier(self): return []\nC._earlier = earlier"
        ),
        "was never told",
    ),
    "a receipt is not the published one": (
        (
            "from supervisor import reporting as m\nwas = m.after_publication\n"
            "m.after_publication = lambda r, o: was(r, o).model_copy(update={'label': 'other'})"
        ),
        "its receipt on the disk is another one",
    ),
    "a descriptor is kept": (
        (
            "import os\nfrom supervisor import ending as m\nwas = m.carry\n"
            "m.carry = lambda course: (os.open('/', os.O_RDONLY), was(course))[1]"
        ),
        "a descriptor:",
    ),
}
"""By what is broken: how, and what the run then says."""


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                os.environ.get("CRASH_TESTS") != "full" and name != "a byte is lost", reason="CRASH_TESTS=full"
            ),
        )
        for name in BREAKS
    ],
)
def test_a_broken_product_is_found(broken: str) -> None:
    """A run that cannot fail is a defect: what a mutant breaks is said, with the seed and round."""
    patch, words = BREAKS[broken]
    rounds = "0" if "descriptor" in broken else ROUNDS  # what is left behind is waited for, ten seconds a round
    done = harness("--seed", SEED, "--rounds", rounds, patch=patch)
    assert done.returncode == 1, done.stderr
    assert any(line.startswith(f"violation: --seed {SEED} --rounds ") for line in done.stdout.splitlines())
    assert words in done.stdout
