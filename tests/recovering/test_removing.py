"""Captures are removed when their owner says so, never a live one, and give back what they had (D1, D5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from supervisor import (
    PIPE,
    Limits,
    LiveCapture,
    Supervisor,
    UnknownCapture,
    list_captures,
    recover,
    remove_captures,
)

if TYPE_CHECKING:
    from conftest import Left


@pytest.mark.asyncio
async def test_removing_frees_what_it_says_and_leaves_the_others(left: Left) -> None:
    """Published or left behind, a dead capture goes with all its files; the same id may be given twice."""
    directory, ids = left.path, left.ids
    assert await remove_captures(directory, [ids[0], ids[0]]) == len(left.text(0)) + len("problem of 0\n")
    assert [receipt.capture_id for receipt in await list_captures(directory)] == ids[1:]
    await recover(directory)
    await remove_captures(directory, ids[1:])
    assert list(left.captures.iterdir()) == []
    with pytest.raises(UnknownCapture):
        await remove_captures(directory, [ids[0]])
    with pytest.raises(ValueError, match="capture id"):
        await remove_captures(directory, ["../.supervisor"])


@pytest.mark.asyncio
async def test_nothing_is_removed_if_one_of_the_captures_cannot_be(left: Left) -> None:
    """An unknown id and a live one are found before the first file is touched."""
    directory, ids = left.path, left.ids
    async with Supervisor(directory) as supervisor:
        live = await supervisor.start("read _", shell=True, stdin=PIPE)
        with pytest.raises(LiveCapture):
            await remove_captures(directory, [ids[0], live.capture_id])
        with pytest.raises(UnknownCapture):
            await remove_captures(directory, [ids[0], ids[0][:-1] + ("0" if ids[0][-1] != "0" else "1")])
        assert len(await list_captures(directory)) == 5 + 1


@pytest.mark.asyncio
async def test_what_is_removed_is_given_back_to_an_open_supervisor(left: Left) -> None:
    """With the allowance used up nothing is retained; after old or own captures were removed there is room [D5]."""
    directory, ids = left.path, left.ids
    used = sum(path.stat().st_size for path in left.captures.glob("*/*.live"))
    async with Supervisor(directory, limits=Limits(conversation_bytes=used + 10)) as supervisor:
        full = await (await supervisor.start(["printf", "0123456789"])).wait()
        assert full.capture.state == "complete"
        refused = await (await supervisor.start(["printf", "x"])).wait()
        assert refused.capture.reason == "conversation-limit"
        assert await remove_captures(directory, [full.capture_id]) == len("0123456789")
        old = await remove_captures(directory, ids[:1])
        await asyncio.sleep(0)  # the loop takes what was given back from whatever thread
        fits = await (await supervisor.start(["head", "-c", str(old + 10), "/dev/zero"])).wait()
        room = await (await supervisor.start(["printf", "%s", "y" * (old + 10)])).wait()
        assert fits.capture.state == "complete"
        assert room.capture.state == "complete"
        over = await (await supervisor.start(["printf", "z"])).wait()
        assert over.capture.reason == "conversation-limit"
