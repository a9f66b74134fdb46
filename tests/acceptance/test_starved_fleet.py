"""When the system has nothing left for one more command, the others do not notice (F6, F9)."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation


def told(command: list[str]) -> dict[str, Any]:
    """Return what the host says."""
    host = subprocess.run(command, check=True, capture_output=True, timeout=60)
    answer: dict[str, Any] = json.loads(host.stdout)
    assert answer["texts"] == ["0 lives\n", "1 lives\n", "2 lives\n"]
    return answer


def test_without_descriptors_the_running_jobs_go_on(
    conversation: Conversation, host_program: Callable[..., list[str]], loop_module: str
) -> None:
    """Each start that fails is EMFILE; the jobs beside it are whole, on disk too."""
    answer = told(host_program("crowded", loop_module, "EMFILE", str(conversation.path)))
    assert answer["errors"] == [["resources", errno.EMFILE, "not-started"]] * len(answer["errors"])
    assert len(answer["errors"]) >= 5  # a pipe has two ends, and a child has two pipes and a null device
    assert answer["states"] == ["complete"] * 3
    assert len(conversation.captures()) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that nobody else is")
def test_without_processes_the_running_jobs_go_on(host_program: Callable[..., list[str]], loop_module: str) -> None:
    """EAGAIN of a thread, and then of the fork itself; without a directory, for that user could enter none of ours."""
    answer = told(host_program("crowded", loop_module, "EAGAIN"))
    assert answer["errors"] == [["resources", errno.EAGAIN, "not-started"]] * len(answer["errors"])
    assert len(answer["errors"]) >= 2
