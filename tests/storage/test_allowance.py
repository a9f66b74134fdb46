"""The shared limit [D5]: never exceeded, never lost, and known again in the next run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.limits import Limits
from supervisor.storage import Allowance, LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

KIB = 1024

STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9 * KIB * KIB)), max_size=40)


@given(limit=st.integers(0, 64 * KIB * KIB), used=st.integers(0, 70 * KIB * KIB), steps=STEPS)
def test_what_is_granted_never_exceeds_the_limit(limit: int, used: int, steps: list[tuple[int, int]]) -> None:
    """Whatever captures take, in whatever order, all that was granted and all that lay there fit the limit."""
    allowance = Allowance(limit, used)
    reservations = [allowance.reservation() for _ in range(4)]
    taken = 0
    for which, wanted in steps:
        granted = reservations[which].take(wanted)
        assert 0 <= granted <= wanted
        taken += granted
        assert taken + used <= max(limit, used)
    for reservation in reservations:
        reservation.release()
    assert allowance.used == used + taken


@given(steps=st.lists(st.integers(0, 9 * KIB * KIB), max_size=40))
def test_a_single_capture_gets_every_byte_of_the_limit(steps: list[int]) -> None:
    """The steps do not make the limit smaller than it says."""
    limit = 16 * KIB * KIB + 1
    reservation = Allowance(limit, 0).reservation()
    granted = sum(map(reservation.take, steps))
    assert granted == min(limit, sum(steps))


def test_steps_double_up_to_the_last() -> None:
    """64 KiB first, so that a short output reserves little; at most 4 MiB more than what is asked for at once."""
    allowance = Allowance(math.inf, 0)
    reservation = allowance.reservation()
    seen: list[int] = []
    for _ in range(200):
        reservation.take(128 * KIB)
        if not seen or allowance.used != sum(seen):
            seen.append(allowance.used - sum(seen))
    assert seen[:6] == [128 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB, 2048 * KIB]
    assert set(seen[6:]) == {4096 * KIB}


def test_released_bytes_can_be_taken_by_others() -> None:
    """An ended capture keeps only what it holds; a second release gives nothing back."""
    allowance = Allowance(100 * KIB, 0)
    first, second = allowance.reservation(), allowance.reservation()
    assert first.take(10) == 10
    assert second.take(90 * KIB) == 36 * KIB
    first.release()
    first.release()
    assert second.take(90 * KIB) == 64 * KIB - 10
    assert second.take(1) == 0


def test_no_limit_grants_everything() -> None:
    """`inf` means none."""
    assert Allowance(math.inf, 10**15).reservation().take(10**12) == 10**12


@pytest.mark.asyncio
async def test_a_second_run_sees_what_the_first_one_kept(tmp_path: Path) -> None:
    """Live and final streams count, partial ones of dead owners too; receipts, strangers and symlinks do not."""
    limits = Limits(conversation_bytes=1000)
    first = await LocalStorage().open(tmp_path, limits=limits, durability="none")
    published = await first.create_capture("published", ("stdout", "stderr"))
    await published.spools["stdout"].write([b"x" * 300])
    await published.spools["stderr"].write([b"x" * 50])
    await published.seal()
    await published.publish(b"r" * 5000)
    leftover = await first.create_capture("leftover", ("stdout",))
    await leftover.spools["stdout"].write([b"x" * 600])
    await first.close()
    captures = tmp_path / "tool-outputs" / "captures"
    (captures / "stray.log").write_bytes(b"x" * 7000)
    (captures / "leftover" / "link.log").symlink_to(captures / "stray.log")
    (captures / "leftover" / "notes.txt").write_bytes(b"x" * 7000)
    (captures / "linked").symlink_to(captures / "published")
    second = await LocalStorage().open(tmp_path, limits=limits, durability="none")
    used, granted = second.allowance.used, second.allowance.reservation().take(100)
    await second.close()
    assert used == 950
    assert granted == 50


@pytest.mark.asyncio
async def test_an_exhausted_allowance_deletes_nothing(tmp_path: Path) -> None:
    """What lies there may already be more than a smaller limit; nothing new is granted, nothing old is touched."""
    capture = tmp_path / "tool-outputs" / "captures" / "old"
    capture.mkdir(parents=True, mode=0o700)
    capture.parent.chmod(0o700)
    (capture / "stdout.log").write_bytes(b"x" * 5000)
    conversation = await LocalStorage().open(tmp_path, limits=Limits(conversation_bytes=1000), durability="none")
    granted = conversation.allowance.reservation().take(1)
    await conversation.close()
    assert granted == 0
    assert (capture / "stdout.log").stat().st_size == 5000
