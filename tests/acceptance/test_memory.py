"""Peak memory depends neither on how much a child writes nor on how long its longest line is (B3)."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Conversation

MIB: Final = 1024 * 1024
LINE: Final = 256 * MIB
GROWTH: Final = 32 * MIB
"""Both queues, both batches, the reader's scratch and the allocator's slack; the line is eight times that."""
COMMAND: Final = f"head -c {LINE} /dev/zero | tr '\\0' x; echo; echo END >&2; exit 3"


def measured(command: list[str], conversation: Conversation) -> tuple[int, dict[str, Any]]:
    """Return by how much the peak of a host grew, and its receipt, after removing what it stored."""
    told = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=100).stdout)
    receipt = told["receipt"]
    path = conversation.path / receipt["streams"]["stdout"]["reference"]
    assert path.stat().st_size == receipt["streams"]["stdout"]["committed"]
    path.unlink()  # a quarter of a GiB need not wait for pytest's own tidying
    return told["grown"], receipt


@pytest.mark.parametrize("job_bytes", [64 * MIB, "inf"])
def test_a_line_of_256_mib_needs_less_than_32_mib(
    conversation: Conversation,
    host_program: Callable[..., list[str]],
    loop_module: str,
    job_bytes: Any,  # noqa: ANN401
) -> None:
    """With a limit that ends retention on the way, and with everything kept."""
    command = host_program("measured_host", loop_module, str(conversation.path), str(job_bytes), COMMAND)
    grown, receipt = measured(command, conversation)
    facts = receipt["streams"]["stdout"]
    assert receipt["process"]["code"] == 3
    assert facts["raw"]["observed"] == LINE + 1
    assert facts["lines"] == 1
    assert receipt["streams"]["stderr"]["preview"]["head"] == "END\n"
    if job_bytes == "inf":
        assert receipt["capture"] == {"state": "complete", "reason": None}
        assert facts["committed"] == LINE + 1
    else:
        assert receipt["capture"] == {"state": "partial", "reason": "job-limit"}
        assert facts["committed"] == 63 * MIB  # the last MiB is stderr's
    assert grown < GROWTH, f"{grown / MIB:.1f} MiB"


def test_the_measure_sees_memory(tmp_path: Path) -> None:
    """A program that holds 64 MiB shows them: a test that cannot fail is a defect."""
    program = tmp_path / "holder.py"
    program.write_text("import sys\nheld = bytearray(b'x') * (64 << 20)\nprint(open('/proc/self/status').read())\n")
    told = subprocess.run(["python3", program], check=True, capture_output=True, text=True).stdout
    (line,) = (line for line in told.splitlines() if line.startswith("VmHWM:"))
    assert int(line.split()[1]) * 1024 > 64 * MIB
