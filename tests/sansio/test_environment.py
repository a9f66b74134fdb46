"""Which environment a command gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.environment import (
    CONTRADICTING,
    NAME_CHARACTERS,
    NAMED_CHANGES,
    NONINTERACTIVE,
    EnvChanges,
    EnvPolicy,
    changes,
    child_environment,
)

HOST = {"PATH": "/bin", "HOME": "/h", "DEPLOY_TOKEN": "hunter2-hunter2", "API_KEY": "", "FORCE_COLOR": "1"}


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        ("inherit", {"PATH", "HOME", "DEPLOY_TOKEN", "API_KEY", "FORCE_COLOR"}),
        ("scrubbed", {"PATH", "HOME", "API_KEY", "FORCE_COLOR"}),
        ("explicit", set()),
    ],
)
def test_a_policy_says_what_is_taken_over(policy: EnvPolicy, names: set[str]) -> None:
    """An empty credential is none."""
    assert child_environment(HOST, policy, given={}).keys() == names
    assert child_environment(HOST, policy, given={"X": "1"}).keys() == names | {"X"}


def test_what_the_caller_sets_and_removes_is_last() -> None:
    """A credential may be given to a child that gets no other, and a part of the profile taken back."""
    child = child_environment(
        HOST, "scrubbed", given={"DEPLOY_TOKEN": "other", "TERM": "xterm"}, remove=("HOME", "GONE"), noninteractive=True
    )
    assert (child["DEPLOY_TOKEN"], child["TERM"], child["PAGER"]) == ("other", "xterm", "cat")
    assert "HOME" not in child
    assert child_environment(HOST, "inherit", given={"A": "1"}, remove=("A",)).keys() == HOST.keys()


def test_the_profile_sets_its_own_and_removes_what_contradicts() -> None:
    """Unless the caller wants that."""
    child = child_environment(HOST, "inherit", given={}, noninteractive=True)
    assert NONINTERACTIVE.items() <= child.items()
    assert not set(CONTRADICTING) & child.keys()
    assert "FORCE_COLOR" in child_environment(HOST, "inherit", given={"FORCE_COLOR": "3"}, noninteractive=True)
    assert child_environment(HOST, "explicit", given={}, noninteractive=True) == NONINTERACTIVE


@given(
    st.dictionaries(st.sampled_from("ABCDEF"), st.sampled_from(["hunter2", "hunter3"])),
    st.dictionaries(st.sampled_from("ABCDEF"), st.sampled_from(["hunter2", "hunter3"])),
)
def test_changes_are_names_and_say_all_that_differs(host: dict[str, str], child: dict[str, str]) -> None:
    """Never a value; from the host's variables and the names nothing but values is missing to make the child's."""
    found = changes(host, child, "inherit")
    assert "hunter" not in repr(found)
    kept = {name: value for name, value in host.items() if name not in {*found.removed, *found.set}}
    assert {**kept, **{name: child[name] for name in found.set}} == child


def test_what_is_written_down_is_bounded() -> None:
    """The rest is counted (B3)."""
    child = {f"V{number:05}": "1" for number in range(NAMED_CHANGES + 3)} | {"N" * (NAME_CHARACTERS + 1): "1"}
    found = changes({}, child, "inherit")
    assert (len(found.set), found.unnamed) == (NAMED_CHANGES, 4)
    assert found.set[-1] == f"V{NAMED_CHANGES - 1:05}"
    assert changes(child, {}, "explicit").unnamed == 4


def test_changes_are_in_order() -> None:
    """They are read by people."""
    assert changes({"B": "1", "A": "1", "C": "1"}, {"D": "1", "C": "2"}, "explicit") == EnvChanges(
        "explicit", ("C", "D"), ("A", "B")
    )
