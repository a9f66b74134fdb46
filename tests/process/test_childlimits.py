"""Limits on a child are checked when they are made: nothing is started with a wrong one."""

from __future__ import annotations

import grp
import math
import os
import pwd
import resource
from typing import Any

import pytest

from supervisor.process.childlimits import RLIMITS, ChildLimits, Ids


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rlimits": {"nofiles": 1}}, "nofiles"),
        ({"rlimits": {"nofile": -1}}, "nofile"),
        ({"rlimits": {"nofile": 1.5}}, "nofile"),
        ({"rlimits": {"nofile": math.nan}}, "nofile"),
        ({"rlimits": {"nofile": (2, 1)}}, "nofile"),
        ({"rlimits": {"nofile": (math.inf, 1)}}, "nofile"),
        ({"rlimits": {"as": 2**63}}, "as"),
        ({"nice": -21}, "nice"),
        ({"nice": 20}, "nice"),
        ({"oom_score_adj": 1001}, "oom_score_adj"),
        ({"umask": 0o1000}, "umask"),
        ({"umask": -1}, "umask"),
        ({"memory_bytes": 0}, "memory_bytes"),
        ({"pids": 0}, "pids"),
        ({"user": "no such user"}, "user"),
        ({"user": -1}, "user"),
        ({"user": 4_000_000_001}, "group"),
        ({"group": "no such group"}, "group"),
        ({"group": 2**32 - 1}, "group"),
    ],
)
def test_a_value_that_no_system_takes_is_refused(fields: dict[str, Any], name: str) -> None:
    """And the message says which it is."""
    with pytest.raises(ValueError, match=name):
        ChildLimits(**fields)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rlimits": [("nofile", 1)]}, "rlimits"),
        ({"rlimits": {"nofile": "1"}}, "nofile"),
        ({"rlimits": {"nofile": True}}, "nofile"),
        ({"rlimits": {"nofile": (1, 2, 3)}}, "nofile"),
        ({"rlimits": {"nofile": (1, "2")}}, "nofile"),
        ({"nice": 1.0}, "nice"),
        ({"umask": "077"}, "umask"),
        ({"memory_bytes": math.inf}, "memory_bytes"),
        ({"pids": False}, "pids"),
        ({"user": 1.0}, "user"),
        ({"group": b"root"}, "group"),
    ],
)
def test_a_value_of_another_type_is_refused(fields: dict[str, Any], name: str) -> None:
    """A truth value is no number."""
    with pytest.raises(TypeError, match=name):
        ChildLimits(**fields)


def test_one_number_is_both_limits_and_infinity_is_none() -> None:
    """By the names that this system has."""
    limits = ChildLimits(rlimits={"nofile": 5, "core": (0, math.inf)})
    assert limits.numbers() == (
        ("nofile", resource.RLIMIT_NOFILE, 5, 5),
        ("core", resource.RLIMIT_CORE, 0, resource.RLIM_INFINITY),
    )
    assert {"nofile", "cpu", "as", "core", "fsize", "nproc", "stack"} <= RLIMITS.keys()


def test_what_was_given_can_change_afterwards() -> None:
    """The limits are those of the moment in which they were checked."""
    given: dict[str, int] = {"nofile": 5}
    limits = ChildLimits(rlimits=given)
    given["nofile"] = -1
    assert limits.rlimits == {"nofile": 5}


def test_a_user_brings_its_groups() -> None:
    """By name or number; a group that is given takes the place of the primary one."""
    entry = pwd.getpwuid(os.getuid())
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    assert ChildLimits(user=entry.pw_name).ids() == Ids(entry.pw_uid, entry.pw_gid, groups)
    assert ChildLimits(user=entry.pw_uid).ids() == Ids(entry.pw_uid, entry.pw_gid, groups)
    other = next(group for group in grp.getgrall() if group.gr_gid != entry.pw_gid)
    assert ChildLimits(user=entry.pw_name, group=other.gr_name).ids().group == other.gr_gid


def test_a_number_without_a_user_needs_a_group() -> None:
    """Then it has no other groups; a group alone leaves the supervisor's."""
    assert ChildLimits(user=4_000_000_001, group=7).ids() == Ids(4_000_000_001, 7, ())
    assert ChildLimits(group=7).ids() == Ids(None, 7, None)
    assert ChildLimits().ids() == Ids(None, None, None)
