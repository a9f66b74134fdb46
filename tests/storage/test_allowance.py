"""The shared limit [D5]: never exceeded by anybody, never lost, and right again after any death."""

from __future__ import annotations

import asyncio
import errno
import math
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.limits import Limits
from supervisor.storage import Files, LocalStorage, SpoolFault, look_at_allowance, visiting
from supervisor.storage.allowance import FIRST_STEP, LOCK, NOT_SHARED, share

if TYPE_CHECKING:
    from pathlib import Path

    from supervisor.storage import Conversation, Figures

KIB = 1024


@given(free=st.integers(-10, 100), wanted=st.integers(0, 100), at_least=st.integers(0, 100))
def test_a_share_is_a_step_or_what_is_needed_now_or_the_rest(free: int, wanted: int, at_least: int) -> None:
    """Nothing that is not free is granted; what is needed now is refused only if it is not free."""
    granted = share(free, max(wanted, at_least), at_least)
    assert 0 <= granted <= max(0, free)
    assert granted in {max(wanted, at_least), at_least, max(0, free)}
    assert granted >= min(at_least, max(0, free))
    assert share(math.inf, wanted, 0) == wanted


async def figures(directory: Path) -> Figures:
    """Return what anybody sees of the allowance of a conversation."""
    async with visiting(Files(), directory) as visit:
        assert visit is not None
        return await visit.run("looking", lambda: look_at_allowance(visit.files, visit.rooms))


async def opened(directory: Path, limit: float, files: Files | None = None, deadline: float = 20.0) -> Conversation:
    """Open a conversation with this allowance."""
    limits = Limits(conversation_bytes=limit, stall_timeout=deadline)
    return await LocalStorage(files).open(directory, limits=limits, durability="none")


@pytest.mark.asyncio
async def test_two_supervisors_share_one_limit_to_the_byte(tmp_path: Path) -> None:
    """Each sees what the other one has reserved, and gets what it lets go."""
    first, second = await opened(tmp_path, 200 * KIB), await opened(tmp_path, 200 * KIB)
    one, two = await first.create_capture("one", ("stdout",)), await second.create_capture("two", ("stdout",))
    assert await one.reservation.take(10) == 10
    await one.spools["stdout"].write([b"x" * 10])
    assert await two.reservation.take(150 * KIB) == 136 * KIB
    assert await figures(tmp_path) == type(await figures(tmp_path))(10, 200 * KIB - 10, 200 * KIB)
    await one.seal()
    await one.publish(b"{}")
    assert await two.reservation.take(200 * KIB) == 64 * KIB - 10
    await first.close()
    await second.close()
    assert (await figures(tmp_path)).used == 10
    assert (await figures(tmp_path)).reserved == 0


@pytest.mark.asyncio
async def test_nothing_is_touched_before_the_first_byte_and_within_a_step(tmp_path: Path, faulty: Any) -> None:  # noqa: ANN401
    """A job that is silent costs nothing; one that writes touches the shared account once for each step."""
    conversation = await opened(tmp_path, 10**9, faulty)
    state = tmp_path / "tool-outputs" / ".supervisor"
    silent = await conversation.create_capture("silent", ("stdout",))
    await silent.discard()
    assert {path.name for path in state.iterdir()} == {conversation.owner.name}
    capture = await conversation.create_capture("one", ("stdout",))
    await capture.reservation.take(1)
    faulty.log.clear()
    assert [await capture.reservation.take(KIB) for _ in range(63)] == [KIB] * 63
    assert faulty.log == []
    assert await capture.reservation.take(KIB) == KIB
    assert (faulty.log.count("lock"), faulty.log.count("write_at")) == (1, 1)
    await conversation.close()
    assert [path.name for path in state.iterdir()] == [LOCK]


@pytest.mark.asyncio
async def test_a_step_opens_no_capture_whose_size_is_known(tmp_path: Path, faulty: Any) -> None:  # noqa: ANN401
    """Those of this process that still may grow count with what was reserved for them, also if that is nothing."""
    conversation = await opened(tmp_path, 10**9, faulty)
    captures = [await conversation.create_capture(f"number-{number}", ("stdout",)) for number in range(5)]
    await captures[0].reservation.take(1)
    faulty.log.clear()
    await captures[1].reservation.take(1)
    assert "open_directory" not in faulty.log
    await captures[0].discard()
    faulty.log.clear()
    await captures[1].reservation.take(FIRST_STEP)
    assert "open_directory" not in faulty.log
    await conversation.close()


@pytest.mark.asyncio
async def test_no_limit_touches_nothing_and_grants_everything(tmp_path: Path, faulty: Any) -> None:  # noqa: ANN401
    """`inf` means none."""
    conversation = await opened(tmp_path, math.inf, faulty)
    capture = await conversation.create_capture("one", ("stdout",))
    faulty.log.clear()
    assert await capture.reservation.take(10**12) == 10**12
    assert faulty.log == []
    await conversation.close()


@pytest.mark.asyncio
async def test_a_second_run_sees_what_the_first_one_kept(tmp_path: Path) -> None:
    """Live and final streams and raw copies count, of dead owners too; receipts, strangers and symlinks do not."""
    first = await opened(tmp_path, 1000)
    published = await first.create_capture("published", ("stdout", "stderr", "stderr.raw"))
    await published.spools["stdout"].write([b"x" * 300])
    await published.spools["stderr"].write([b"x" * 49])
    await published.spools["stderr.raw"].write([b"x"])
    await published.seal()
    await published.publish(b"r" * 5000)
    leftover = await first.create_capture("leftover", ("stdout", "stdout.raw"))
    await leftover.spools["stdout"].write([b"x" * 598])
    await leftover.spools["stdout.raw"].write([b"x" * 2])
    await first.close()
    captures = tmp_path / "tool-outputs" / "captures"
    (captures / "stray.log").write_bytes(b"x" * 7000)
    (captures / "leftover" / "link.log").symlink_to(captures / "stray.log")
    (captures / "leftover" / "notes.txt").write_bytes(b"x" * 7000)
    (captures / "linked").symlink_to(captures / "published")
    second = await opened(tmp_path, 1000)
    granted = await (await second.create_capture("new", ("stdout",))).reservation.take(100)
    assert (await figures(tmp_path)).used == 950
    await second.close()
    assert granted == 50


@pytest.mark.asyncio
async def test_an_exhausted_allowance_deletes_nothing(tmp_path: Path) -> None:
    """What lies there may already be more than a smaller limit; nothing new is granted, nothing old is touched."""
    capture = tmp_path / "tool-outputs" / "captures" / "old"
    capture.mkdir(parents=True, mode=0o700)
    capture.parent.chmod(0o700)
    (capture / "stdout.log").write_bytes(b"x" * 5000)
    conversation = await opened(tmp_path, 1000)
    granted = await (await conversation.create_capture("new", ("stdout",))).reservation.take(1)
    await conversation.close()
    assert granted == 0
    assert (capture / "stdout.log").stat().st_size == 5000


@pytest.mark.asyncio
async def test_what_anybody_removes_or_cuts_is_free_before_anything_is_refused(tmp_path: Path) -> None:
    """Sizes of published captures are remembered, but nobody is refused by memory."""
    conversation = await opened(tmp_path, 1000)
    for name in ("one", "two"):
        capture = await conversation.create_capture(name, ("stdout",))
        assert await capture.reservation.take(400) == 400
        await capture.spools["stdout"].write([b"x" * 400])
        await capture.seal()
        await capture.publish(b"{}")
    last = await conversation.create_capture("last", ("stdout",))
    assert await last.reservation.take(100) == 100
    os.truncate(tmp_path / "tool-outputs" / "captures" / "one" / "stdout.log", 10)
    assert await last.reservation.take(800) == 490
    await conversation.close()


class Lockless(Files):
    """A file system without locks."""

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:  # noqa: ARG002 - the seam's
        """Refuse."""
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.asyncio
async def test_without_locks_each_process_counts_for_itself_and_says_so(tmp_path: Path) -> None:
    """The limit still holds for what one process keeps, beside what lies there [D2]."""
    conversation = await opened(tmp_path, 100 * KIB, Lockless())
    first, second = [await conversation.create_capture(name, ("stdout",)) for name in ("one", "two")]
    assert NOT_SHARED not in conversation.limitations
    assert await first.reservation.take(10) == 10
    assert NOT_SHARED in conversation.limitations
    assert await second.reservation.take(90 * KIB) == 36 * KIB
    await conversation.close()


@pytest.mark.asyncio
@pytest.mark.realtime
async def test_a_lock_that_cannot_be_had_stalls_nobody_for_long(tmp_path: Path) -> None:
    """A process that was stopped inside a step holds it: the text is not kept, for `writer-stalled`; the file is [B4].

    Once it goes on, the next capture is kept again; what the late call reserved is let go with its own.
    """
    conversation = await opened(tmp_path, 1000 * KIB, deadline=0.3)
    capture = await conversation.create_capture("one", ("stdout",))
    await capture.reservation.take(1)
    lock = os.open(tmp_path / "tool-outputs" / ".supervisor" / LOCK, os.O_RDWR)
    Files().lock(lock, exclusive=True)
    with pytest.raises(SpoolFault) as fault:
        await capture.reservation.take(100 * KIB)
    assert fault.value.reason == "writer-stalled"
    os.close(lock)
    second = await conversation.create_capture("two", ("stdout",))
    assert await second.reservation.take(100 * KIB) == 100 * KIB
    for each in (capture, second):
        await each.seal()
        await each.publish(b"{}")
    assert (await figures(tmp_path)).reserved == 0
    await conversation.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
async def test_a_disk_that_fails_in_a_step_is_a_fault(tmp_path: Path, faulty: Any, number: int) -> None:  # noqa: ANN401
    """Whichever call it is, what was granted before stands, and the next try can succeed (B5)."""
    conversation = await opened(tmp_path, 10**9, faulty)
    capture = await conversation.create_capture("one", ("stdout",))
    faulty.log.clear()
    await capture.reservation.take(1)
    calls, failed, size = len(faulty.log), 0, FIRST_STEP
    faulty.number = number
    for index in range(calls):
        faulty.log.clear()
        faulty.fail_at = index
        try:
            size += await capture.reservation.take(size)
        except SpoolFault as fault:
            failed += 1
            assert fault.reason == ("no-space" if number == errno.ENOSPC else "io-error")  # noqa: PT017
    faulty.fail_at = None
    assert failed > 3
    assert await capture.reservation.take(size) == size
    faulty.fail_name = "write_at"
    await capture.seal()
    await capture.publish(b"{}")
    await conversation.close()
    assert (await figures(tmp_path)).reserved == 0


@pytest.mark.asyncio
async def test_a_crowd_of_captures_is_granted_in_turn(tmp_path: Path) -> None:
    """A thousand short outputs at once fit a limit that a thousand steps of 4 MiB would not."""
    conversation = await opened(tmp_path, 128 * KIB * KIB)
    captures = [await conversation.create_capture(f"c{count}", ("stdout",)) for count in range(100)]
    assert await asyncio.gather(*(capture.reservation.take(1000) for capture in captures)) == [1000] * 100
    seen = await figures(tmp_path)
    assert (seen.used, seen.reserved) == (0, 100 * FIRST_STEP)
    await conversation.close()
