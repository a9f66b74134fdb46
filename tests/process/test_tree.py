"""The group of a child: who is in it, and who is never signalled (contract F3)."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from supervisor.process import tree

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

GROUP = 2**22 + 4711
"""Above the largest pid that Linux gives (proc(5), pid_max)."""


def stat(pid: int, name: str, state: str, group: int) -> str:
    """The text of a stat file, as far as it is looked at."""
    return f"{pid} ({name}) {state} 1 {group} {group} 0 -1 4194560"


@given(
    st.binary(max_size=16).filter(lambda name: b"\0" not in name), st.integers(1, 2**22), st.sampled_from("RSDZTtXx")
)
def test_any_name_is_skipped(name: bytes, group: int, state: str) -> None:
    """A name may hold blanks, parentheses, line feeds and what looks like the fields after it."""
    text = b"12 (" + name + b") " + state.encode() + b" 1 %d 9 0 -1 0" % group
    assert tree.state_and_group(text) == (state.encode(), group)


def test_live_members_are_found_and_the_dead_are_not(tmp_path: Path) -> None:
    """Zombies count as dead, stopped and uninterruptible ones as alive; a name cannot forge a group."""
    processes = {
        "self": stat(1, "me", "R", 1),
        "10": stat(10, "leader", "Z", GROUP),
        "11": stat(11, "a) R 1 5 (b", "S", GROUP),
        "12": stat(12, "stopped", "T", GROUP),
        "13": stat(13, "stuck", "D", GROUP),
        "14": stat(14, f"x) S 1 {GROUP} (y", "S", 7),
        "15": stat(15, "gone", "X", GROUP),
        "16": "cut short",
        "notes": "no process",
    }
    for name, text in processes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(text)
    (tmp_path / "17").mkdir()
    (tmp_path / "18" / "stat").mkdir(parents=True)
    assert sorted(tree.group_members(GROUP, tmp_path) or ()) == [11, 12, 13]


def test_without_proc_nobody_can_know(tmp_path: Path) -> None:
    """None, and never "nobody" (contract A4, F3)."""
    assert tree.group_members(GROUP, tmp_path) is None


def test_this_process_is_a_member_of_its_own_group() -> None:
    """The real /proc."""
    assert os.getpid() in (tree.group_members(os.getpgrp()) or ())


def test_number_that_somebody_else_has_is_not_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader was reaped and its pid is in use: a stranger's (field report H5-018)."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: sent.append(pid))
    assert not tree.signal_group(os.getpid(), signal.SIGTERM, held=False)
    assert sent == []
    assert tree.signal_group(os.getpid(), signal.SIGTERM, held=True)
    assert sent == [os.getpid()]


def test_group_without_its_leader_is_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is not in use as a pid, so it can only be the group that is left."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: sent.append(pid))
    assert tree.signal_group(GROUP, signal.SIGTERM, held=False)
    assert sent == [GROUP]


def test_empty_or_forbidden_group_takes_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """False, not an exception: the caller looks at who is left (field report H5-021)."""
    assert not tree.signal_group(GROUP, signal.SIGTERM, held=True)

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    assert not tree.signal_group(GROUP, signal.SIGTERM, held=True)


def test_pid_of_another_user_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """EPERM says that it exists."""
    assert not tree.pid_in_use(GROUP)

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert tree.pid_in_use(GROUP)


def test_group_that_lost_its_leader_is_left_until_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number given away says that it is; members of other users count."""
    assert not tree.group_left(GROUP)
    answers: list[type[OSError] | None] = [None, PermissionError]

    def killpg(_pid: int, number: int) -> None:
        assert number == 0
        if answer := answers.pop():
            raise answer

    monkeypatch.setattr(os, "killpg", killpg)
    assert tree.group_left(GROUP)
    assert tree.group_left(GROUP)
    assert not tree.group_left(os.getpid())
    assert answers == []
