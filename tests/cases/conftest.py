"""The cases use the fixtures of the acceptance tests: a conversation, child programs, hosts, disks."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

NAME: Final = "spoolvisor_acceptance_fixtures"


def fixtures_of(path: Path) -> ModuleType:
    """Return the module at `path`; no folder of tests is a package, so there is no other way to its names."""
    spec = spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[NAME] = module  # where `dataclass` looks its own module up
    spec.loader.exec_module(module)
    return module


_acceptance: Final = fixtures_of(Path(__file__).parents[1] / "acceptance" / "conftest.py")
conversation: Final = _acceptance.conversation
disk: Final = _acceptance.disk
first_text: Final = _acceptance.first_text
host_program: Final = _acceptance.host_program
loop_module: Final = _acceptance.loop_module
mounted: Final = _acceptance.mounted
program: Final = _acceptance.program
until: Final = _acceptance.until


@pytest.fixture
def leftover(conversation: _acceptance.Conversation, host_program: Callable[..., list[str]]) -> Path:
    """Return the directory of a capture that holds `begin` and whose supervisor was killed."""
    command = host_program("capture_host", "asyncio", str(conversation.path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        capture_id = process.stdout.readline().strip()
        process.kill()
    found = conversation.path / "tool-outputs" / "captures" / capture_id
    assert (found / "stdout.live").read_bytes() == b"begin\n"
    return found
