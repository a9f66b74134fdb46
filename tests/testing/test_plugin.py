"""The pytest plugin, used by projects of its own: under each plugin that runs asynchronous tests, and under none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

import supervisor

PACKAGES: Final = Path(supervisor.__file__).parent.parent
PYTEST: Final = (
    *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)
GOOD: Final = """
import pytest
from supervisor.testing import assert_receipt

@pytest.mark.{mark}
async def test_played(supervisor, fake_children, capture_dir):
    fake_children.expect(["x"]).exit(3)
    job = await supervisor.start(["x"])
    assert_receipt(await job.wait(), code=3)
    assert list(capture_dir.glob("tool-outputs/captures/*/receipt.json"))

@pytest.mark.{mark}
async def test_real(supervisor):
    assert (await supervisor.run(["echo", "real"])).stdout == "real\\n"

@pytest.mark.{mark}
async def test_in_virtual_time(supervisor, fake_children, virtual_clock):
    fake_children.expect(["x"])
    job = await supervisor.start(["x"], idle_limit=600)
    await virtual_clock.advance(600)
    assert_receipt(await job.wait(), reason="idle-limit")

@pytest.fixture
def through_another(supervisor):
    return supervisor

@pytest.mark.{mark}
async def test_through_another_fixture(through_another, supervisor):
    assert through_another is supervisor
    job = await supervisor.start(["sleep", "60"])  # what runs on is ended after the test
    assert job.pid
"""


def run(place: Path, text: str, *arguments: str) -> tuple[dict[str, int], str]:
    """Run a test file in a project of its own; return how many passed, failed and so on, and all that was printed."""
    (place / "test_it.py").write_text(textwrap.dedent(text))
    if not entry_points(group="pytest11", name="spoolvisor"):  # the checkout, where no wheel was installed
        metadata = place / "spoolvisor_checkout-0.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: spoolvisor-checkout\nVersion: 0\n")
        (metadata / "entry_points.txt").write_text("[pytest11]\nspoolvisor = supervisor.testing.plugin\n")
    done = subprocess.run(
        [*PYTEST, f"--basetemp={place / 'base'}", *arguments, "test_it.py"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": f"{place}:{PACKAGES}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    printed = done.stdout + done.stderr
    counts = {word.rstrip("s"): int(count) for count, word in re.findall(r"(\d+) (\w+)", printed.splitlines()[-1])}
    return {word: counts[word] for word in ("passed", "failed", "error", "skipped") if word in counts}, printed


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_it_works_under_pytest_asyncio(tmp_path: Path, mode: str) -> None:
    """In auto mode without a mark too."""
    text = GOOD.replace("{mark}", "asyncio")
    if mode == "auto":
        text = text.replace("@pytest.mark.asyncio\n", "")
    counts, printed = run(tmp_path, text, f"--asyncio-mode={mode}")
    assert counts == {"passed": 4}, printed


@pytest.mark.parametrize("beside", [True, False], ids=["beside pytest-asyncio", "alone"])
def test_it_works_under_anyio(tmp_path: Path, *, beside: bool) -> None:
    """On asyncio; with another backend a test is skipped, and says why."""
    pytest.importorskip("anyio")
    alone = () if beside else ("-p", "no:asyncio", "-W", "ignore:Unknown config option")
    text = GOOD.replace("{mark}", "anyio") + (
        "\n@pytest.fixture(params=['asyncio', ('asyncio', {'use_uvloop': True})], ids=str)\n"
        "def anyio_backend(request):\n    return request.param\n"
    )
    counts, printed = run(tmp_path, text, *alone)
    assert counts == {"passed": 8}, printed


def test_it_is_skipped_where_anyio_runs_something_else(tmp_path: Path) -> None:
    """Trio is no loop of asyncio's."""
    pytest.importorskip("anyio")
    pytest.importorskip("trio")
    text = GOOD.replace("{mark}", "anyio") + "\n@pytest.fixture\ndef anyio_backend():\n    return 'trio'\n"
    counts, printed = run(tmp_path, text, "-rs")
    assert counts == {"skipped": 4}, printed
    assert "spoolvisor runs on asyncio and uvloop" in printed


def test_without_either_it_says_what_is_missing(tmp_path: Path) -> None:
    """In one line."""
    text = "def test_it(supervisor):\n    pass\n"
    counts, printed = run(tmp_path, text, "-p", "no:asyncio", "-W", "ignore:Unknown config option")
    assert counts == {"error": 1}, printed
    assert "needs an asynchronous test: pytest-asyncio or anyio runs one" in printed


def test_a_wrong_or_missing_command_fails_the_test_itself(tmp_path: Path) -> None:
    """Not its teardown; also where the code under test swallows everything; and one failure hides no other."""
    text = """
    import pytest

    @pytest.mark.asyncio
    async def test_missing(supervisor, fake_children):
        fake_children.expect(["never"])

    @pytest.mark.asyncio
    async def test_swallowed(supervisor, fake_children):
        try:
            await supervisor.run(["git", "push"])
        except BaseException:
            pass

    @pytest.mark.asyncio
    async def test_its_own(fake_children):
        fake_children.expect(["never"])
        raise KeyError("of its own")

    def test_no_loop(fake_children):
        fake_children.expect(["never"])

    async def look(child):
        assert child.launched.cwd == "/elsewhere"

    @pytest.mark.asyncio
    async def test_script(supervisor, fake_children):
        fake_children.expect(script=look)
        await supervisor.run(["x"])
    """
    counts, printed = run(tmp_path, text, "-q", "-ra")
    assert counts == {"failed": 5}, printed
    assert "assert None == '/elsewhere'" in printed
    assert "plugin.py" not in printed, "what is ours is not shown"
    assert "MissingCommand: a command was expected and never started:" in printed
    assert "UnexpectedCommand: a command was not expected:" in printed
    assert "FAILED test_it.py::test_its_own - KeyError: 'of its own'" in printed


def test_it_loads_nothing_until_a_fixture_is_used(tmp_path: Path) -> None:
    """Also in the run of a project that has nothing to do with it; and it never loads an adapter."""
    text = """
    import sys

    def ours():
        return sorted(name for name in sys.modules if name.partition(".")[0] in {"supervisor", "adapters"})

    def test_before():
        assert set(ours()) <= {
            "supervisor", "supervisor.loading", "supervisor.testing", "supervisor.testing.plugin",
            "supervisor.testing._asyncio_fixtures",
        }
        assert "pydantic" not in sys.modules

    def test_used(fake_children, virtual_clock):
        assert "supervisor.testing.fake_children" in ours()
        assert not [name for name in ours() if name.startswith("adapters")]
    """
    counts, printed = run(tmp_path, text)
    assert counts == {"passed": 2}, printed
