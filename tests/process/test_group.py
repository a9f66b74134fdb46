"""The group of a child: who is never signalled by its number (contract F3)."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from supervisor.process import group

if TYPE_CHECKING:
    import pytest

GROUP = 2**22 + 4711
"""Above the largest pid that Linux gives (proc(5), pid_max)."""


def test_number_that_somebody_else_has_is_not_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader was reaped and its pid is in use: a stranger's (field report H5-018)."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: sent.append(pid))
    assert not group.signal_group(os.getpid(), signal.SIGTERM, held=False)
    assert sent == []
    assert group.signal_group(os.getpid(), signal.SIGTERM, held=True)
    assert sent == [os.getpid()]


def test_group_without_its_leader_is_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is not in use as a pid, so it can only be the group that is left."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: sent.append(pid))
    assert group.signal_group(GROUP, signal.SIGTERM, held=False)
    assert sent == [GROUP]


def test_empty_or_forbidden_group_takes_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """False, not an exception: the caller looks at who is left (field report H5-021)."""
    assert not group.signal_group(GROUP, signal.SIGTERM, held=True)

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    assert not group.signal_group(GROUP, signal.SIGTERM, held=True)


def test_pid_of_another_user_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """EPERM says that it exists."""
    assert not group.pid_in_use(GROUP)

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert group.pid_in_use(GROUP)
