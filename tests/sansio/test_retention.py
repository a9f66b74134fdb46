"""What one job may keep (contract D5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.limits import Limits
from supervisor.sansio.retention import RawRetention, Retention, cut

if TYPE_CHECKING:
    from supervisor.sansio.words import StreamName


def test_stdout_leaves_the_reserve_alone_and_stderr_may_use_everything() -> None:
    """A job that fills its limit with stdout can still say why it failed."""
    retention = Retention(Limits(job_bytes=100, stderr_reserve_bytes=30))
    assert retention.allow("stdout", 1000) == 70
    retention.take("stdout", 70)
    assert retention.allow("stdout", 1) == 0
    assert retention.allow("stderr", 1000) == 30
    retention.take("stderr", 30)
    assert retention.allow("stderr", 1) == 0
    assert retention.taken == 100


def test_the_reserve_is_the_last_part_whatever_stderr_wrote_before() -> None:
    """Early warnings on stderr do not use up the room for the last error."""
    retention = Retention(Limits(job_bytes=100, stderr_reserve_bytes=30))
    retention.take("stderr", 50)
    assert retention.allow("stdout", 1000) == 20
    retention.take("stderr", 40)
    assert retention.allow("stdout", 1000) == 0
    assert retention.allow("stderr", 1000) == 10


def test_the_reserve_is_at_most_half() -> None:
    """A limit below the reserve is not all reserve."""
    assert Retention(Limits(job_bytes=100)).allow("stdout", 1000) == 50


def test_a_merged_stream_keeps_no_reserve() -> None:
    """There is no stderr that could use it (B7)."""
    assert Retention(Limits(job_bytes=100), merged=True).allow("stdout", 1000) == 100


def test_no_more_is_allowed_than_wanted() -> None:
    """The answer is a number of bytes to write, not what is left."""
    assert Retention(Limits()).allow("stdout", 17) == 17


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_limit_allows_all(stream: StreamName) -> None:
    """`inf` means none, and stays so after any number of bytes."""
    retention = Retention(Limits(job_bytes=math.inf))
    retention.take(stream, 10**15)
    assert retention.allow(stream, 10**15) == 10**15


def test_without_a_limit_an_unlimited_reserve_reserves_nothing() -> None:
    """`inf - inf` is no number; stdout must not be starved by it."""
    retention = Retention(Limits(job_bytes=math.inf, stderr_reserve_bytes=math.inf))
    assert retention.allow("stdout", 5) == 5


def test_a_fraction_of_a_byte_is_not_kept() -> None:
    """Limits are numbers, bytes are whole."""
    assert Retention(Limits(job_bytes=10.9, stderr_reserve_bytes=0)).allow("stdout", 100) == 10


def test_what_was_not_written_is_given_back() -> None:
    """A short write frees what it did not use, for the same stream."""
    retention = Retention(Limits(job_bytes=100, stderr_reserve_bytes=0))
    retention.take("stdout", 100)
    retention.give_back("stdout", 40)
    assert retention.allow("stderr", 1000) == 40
    assert retention.taken == 60


def test_more_than_allowed_cannot_be_taken() -> None:
    """An overdraft is our own fault."""
    retention = Retention(Limits(job_bytes=100, stderr_reserve_bytes=30))
    with pytest.raises(AssertionError, match="more is taken"):
        retention.take("stdout", 71)
    with pytest.raises(AssertionError, match="more is taken"):
        retention.take("stdout", -1)
    assert retention.taken == 0


@pytest.mark.parametrize("count", [6, -1])
def test_more_than_taken_cannot_be_given_back(count: int) -> None:
    """Nor what another stream took."""
    retention = Retention(Limits())
    retention.take("stdout", 5)
    retention.take("stderr", 50)
    with pytest.raises(AssertionError, match="more is given back"):
        retention.give_back("stdout", count)
    assert retention.taken == 55


@given(
    st.integers(1, 300),
    st.integers(0, 300),
    st.lists(st.tuples(st.sampled_from(("stdout", "stderr")), st.integers(0, 120)), max_size=30),
)
def test_the_limit_is_never_exceeded_and_stderr_always_finds_its_reserve(
    limit: int, reserve: int, writes: list[tuple[StreamName, int]]
) -> None:
    """Whoever writes what: the sum stays within the limit, and stdout alone never makes stderr's room vanish."""
    retention = Retention(Limits(job_bytes=limit, stderr_reserve_bytes=reserve))
    written: dict[StreamName, int] = {"stdout": 0, "stderr": 0}
    for stream, wanted in writes:
        count = retention.allow(stream, wanted)
        assert 0 <= count <= wanted
        retention.take(stream, count)
        written[stream] += count
    assert retention.taken == sum(written.values()) <= limit
    assert written["stdout"] <= limit - min(reserve, limit // 2)
    assert retention.allow("stderr", limit) == limit - retention.taken


@given(
    st.integers(1, 300),
    st.integers(0, 300),
    st.lists(
        st.tuples(st.sampled_from(("stdout", "stderr")), st.booleans(), st.integers(0, 120)),
        max_size=30,
    ),
)
def test_copies_and_text_share_the_limit_and_the_text_has_half_of_it(
    limit: int, reserve: int, writes: list[tuple[StreamName, bool, int]]
) -> None:
    """Whoever writes what: the sum stays within the limit, the copies within half of it (B8)."""
    retention = Retention(Limits(job_bytes=limit, stderr_reserve_bytes=reserve))
    copies, written = RawRetention(retention), {True: 0, False: 0}
    for stream, is_copy, wanted in writes:
        account = copies if is_copy else retention
        count = account.allow(stream, wanted)
        assert 0 <= count <= wanted
        account.take(stream, count)
        written[is_copy] += count
    assert retention.taken == sum(written.values()) <= limit
    assert written[True] <= limit / 2


def test_a_copy_takes_no_more_than_half_and_without_a_limit_all() -> None:
    """Exactly; what is not allowed cannot be taken."""
    copies = RawRetention(Retention(Limits(job_bytes=101, stderr_reserve_bytes=0)))
    assert copies.allow("stdout", 1000) == 50
    copies.take("stdout", 50)
    assert copies.allow("stderr", 1) == 0
    with pytest.raises(AssertionError, match="more is taken"):
        copies.take("stderr", 1)
    copies.give_back("stdout", 20)
    assert copies.allow("stderr", 1000) == 20
    with pytest.raises(AssertionError, match="more is given back"):
        copies.give_back("stdout", 31)
    assert RawRetention(Retention(Limits(job_bytes=float("inf")))).allow("stdout", 1 << 60) == 1 << 60


def test_a_text_is_cut_at_a_character() -> None:
    """What is allowed is rarely a border of a character."""
    assert cut("a€".encode(), 3) == 1
