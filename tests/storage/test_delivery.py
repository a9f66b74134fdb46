"""The durable marker of a completion: claims, releases and acknowledgements of several owners (E5)."""

from __future__ import annotations

import asyncio
import errno
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.errors import StorageError
from supervisor.limits import Limits
from supervisor.storage import Conversation, Files, LocalStorage
from supervisor.storage.delivery import ACKNOWLEDGEMENTS, MARKER_BYTES, Marker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

import pytest_asyncio

CAPTURE: Final = "20260101T000000000000Z-0123456789abcdef0123456789abcdef"


async def published(conversation: Conversation, launch: bytes | None = None) -> Path:
    """Publish a capture and return its directory."""
    capture = await conversation.create_capture(CAPTURE, ("stdout",))
    if launch is not None:
        await capture.record_launch(launch)
    await capture.seal()
    outcome = await capture.publish(b'{"a": "receipt"}')
    assert outcome.published
    return capture.path


async def opened(directory: Path, files: Files | None = None) -> Conversation:
    """Open the conversation once more, as another owner."""
    return await LocalStorage(files).open(directory, limits=Limits(), durability="none")


@pytest_asyncio.fixture
async def other(tmp_path: Path) -> AsyncIterator[Conversation]:
    """Another owner of the same conversation."""
    conversation = await opened(tmp_path)
    yield conversation
    await conversation.close()


@pytest.mark.asyncio
async def test_a_claim_stands_while_its_owner_lives(conversation: Conversation, other: Conversation) -> None:
    """Nobody else has it, nor the same owner twice; it comes with the receipt's bytes."""
    await published(conversation)
    got = await conversation.deliveries.claim(CAPTURE, earlier=False)
    assert got is not None
    assert (got.receipt, got.redelivered) == (b'{"a": "receipt"}', False)
    assert await other.deliveries.claim(CAPTURE, earlier=True) is None
    assert await conversation.deliveries.claim(CAPTURE, earlier=False) is None


@pytest.mark.asyncio
async def test_a_released_claim_is_as_if_it_had_not_been(conversation: Conversation, other: Conversation) -> None:
    """Who claims next is not told of a delivery; one claim before it that was handed over is told of all the same."""
    await published(conversation)
    await conversation.deliveries.claim(CAPTURE, earlier=False)
    await conversation.deliveries.release(CAPTURE)
    got = await other.deliveries.claim(CAPTURE, earlier=True)
    assert got is not None
    assert not got.redelivered
    await other.close()
    await conversation.deliveries.claim(CAPTURE, earlier=True)
    await conversation.deliveries.release(CAPTURE)
    again = await conversation.deliveries.claim(CAPTURE, earlier=True)
    assert again is not None
    assert again.redelivered


@pytest.mark.asyncio
async def test_what_is_acknowledged_is_not_to_be_claimed_by_anybody(
    conversation: Conversation, other: Conversation
) -> None:
    """Not by a later owner either. Acknowledging it once more writes a line more, but not for ever."""
    path = await published(conversation)
    await conversation.deliveries.claim(CAPTURE, earlier=False)
    await other.deliveries.acknowledge(CAPTURE)
    with (path / "delivered").open("ab") as marker:
        marker.write(b'{"acknowledged":true}\n' * (ACKNOWLEDGEMENTS - 2))
    await conversation.deliveries.acknowledge(CAPTURE)
    before = (path / "delivered").read_bytes()
    assert before.count(b"acknowledged") == ACKNOWLEDGEMENTS
    await conversation.deliveries.acknowledge(CAPTURE)
    assert (path / "delivered").read_bytes() == before
    await conversation.close()
    assert await other.deliveries.claim(CAPTURE, earlier=True) is None


@pytest.mark.asyncio
async def test_of_many_claims_at_once_one_is_had(conversation: Conversation, other: Conversation) -> None:
    """By 16 threads of two owners."""
    await published(conversation)
    claims = (owner.deliveries.claim(CAPTURE, earlier=False) for owner in (conversation, other) for _ in range(20))
    results = await asyncio.gather(*claims)
    assert sum(result is not None for result in results) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("content", "redelivered"),
    [
        (b"", False),
        (b'{"claimed":{"name":"0123456789abcdef.ow', True),
        (b'{"claimed":{"name":"gone.owner"}}\n', True),
        (b'{"claimed":{"name":"gone.owner"}}\n{"acknowl', True),
        (b'{"claimed":{"name":"gone.owner"}}\n{"released":"gone.owner"}\n', False),
        (bytes(100), True),
    ],
)
async def test_a_torn_or_dead_claim_is_taken_over(
    conversation: Conversation, content: bytes, *, redelivered: bool
) -> None:
    """An empty file was made by who died before it claimed; everything else may have been handed to somebody."""
    path = await published(conversation)
    (path / "delivered").write_bytes(content)
    (path / "delivered").chmod(0o600)
    got = await conversation.deliveries.claim(CAPTURE, earlier=True)
    assert got is not None
    assert got.redelivered is redelivered
    marker = Marker.parse((path / "delivered").read_bytes())
    assert marker.claims[-1]["name"] == conversation.owner.name
    await conversation.deliveries.acknowledge(CAPTURE)
    assert Marker.parse((path / "delivered").read_bytes()).acknowledged


@pytest.mark.asyncio
async def test_what_is_not_a_marker_of_ours_is_not_written(conversation: Conversation, tmp_path: Path) -> None:
    """A symlink, a second name, a file open to others, and one that is too long are refused [D2]."""
    path = await published(conversation)
    target = tmp_path / "target"
    target.write_bytes(b"theirs")
    marker = path / "delivered"
    deliveries = conversation.deliveries
    for plant in (
        partial(marker.symlink_to, target),
        partial(os.link, target, marker),
        partial(marker.touch, 0o644),
        partial(marker.write_bytes, bytes(MARKER_BYTES)),
    ):
        plant()
        with pytest.raises(Exception, match="claiming"):
            await deliveries.claim(CAPTURE, earlier=False)
        marker.unlink()
    assert target.read_bytes() == b"theirs"


@pytest.mark.asyncio
async def test_a_claim_and_an_acknowledgement_are_synced_before_they_are_told(tmp_path: Path, faulty: Files) -> None:
    """The marker's name before anything is in it, then the claim, and each acknowledgement with a line of its own."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="barrier")
    await published(conversation)
    log: list[str] = faulty.log  # type: ignore[attr-defined]

    def since(start: int) -> list[str]:
        return [name for name in log[start:] if name == "write" or name.startswith("sync")]

    start = len(log)
    await conversation.deliveries.claim(CAPTURE, earlier=False)
    assert since(start) == ["sync_directory", "write", "sync_file"]
    for _ in range(2):
        start = len(log)
        await conversation.deliveries.acknowledge(CAPTURE)
        assert since(start) == ["write", "sync_file"]
    await conversation.close()


@pytest.mark.asyncio
async def test_after_a_failed_sync_nothing_is_taken_for_synced(tmp_path: Path, faulty: Any) -> None:  # noqa: ANN401
    """[D4] A second sync of the same bytes can succeed with them lost, and a name can be missing beside its content."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="barrier")
    await published(conversation)
    deliveries = conversation.deliveries
    faulty.fail_name = "sync_directory"
    with pytest.raises(StorageError):
        await deliveries.claim(CAPTURE, earlier=False)
    faulty.fail_name = "sync_file"
    with pytest.raises(StorageError):
        await deliveries.acknowledge(CAPTURE)
    faulty.fail_name = None
    start = len(faulty.log)
    await deliveries.acknowledge(CAPTURE)
    seen = [name for name in faulty.log[start:] if name == "write" or name.startswith("sync")]
    assert seen == ["write", "sync_file"]
    marker = tmp_path / "tool-outputs" / "captures" / CAPTURE / "delivered"
    assert marker.read_bytes() == b'{"acknowledged":true}\n' * 2
    syncs = [name for name in faulty.log[:start] if name in {"sync_directory", "write", "sync_file"}]
    assert syncs[-4:] == ["sync_directory", "sync_directory", "write", "sync_file"]
    await conversation.close()


@pytest.mark.asyncio
async def test_an_earlier_owner_s_barrier_is_made_up_for_before_the_claim(tmp_path: Path, faulty: Files) -> None:
    """It may have died between the receipt's name and the sync of the directories."""
    conversation = await LocalStorage(faulty).open(tmp_path, limits=Limits(), durability="barrier")
    await published(conversation)
    log: list[str] = faulty.log  # type: ignore[attr-defined]
    start = len(log)
    await conversation.deliveries.claim(CAPTURE, earlier=True)
    seen = [name for name in log[start:] if name == "write" or name.startswith("sync")]
    assert seen == ["sync_directory", "sync_directory", "sync_directory", "write", "sync_file"]
    await conversation.close()


class Lockless(Files):
    """A file system without locks."""

    def lock(self, descriptor: int, *, exclusive: bool, wait: bool = False) -> None:  # noqa: ARG002 - the seam's
        """Refuse."""
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.asyncio
async def test_without_locks_only_who_makes_the_marker_can_claim(conversation: Conversation, tmp_path: Path) -> None:
    """Nobody could tell who else is at it; to acknowledge is one append."""
    await published(conversation)
    lockless = await opened(tmp_path, Lockless())
    assert await lockless.deliveries.claim(CAPTURE, earlier=True) is not None
    with pytest.raises(Exception, match="claiming"):
        await lockless.deliveries.claim(CAPTURE, earlier=True)
    await lockless.deliveries.acknowledge(CAPTURE)
    assert await conversation.deliveries.claim(CAPTURE, earlier=True) is None
    await lockless.close()


@pytest.mark.asyncio
async def test_only_published_ends_of_started_jobs_of_dead_owners_are_undelivered(
    conversation: Conversation, other: Conversation
) -> None:
    """Not while the owner lives, not of a foreground run, not without a launch record."""
    receipt = b'{"schema":1,"capture_id":"x","capture":{"state":"complete"},"streams":{}}'
    for owner, kept, expected in (
        (conversation.owner.name, b"true", []),
        ("gone.owner", b"false", []),
        ("gone.owner", b"true", [CAPTURE]),
    ):
        launch = b'{"owner":{"name":"%s"},"kept":%s,"receipt":%s}' % (owner.encode(), kept, receipt)
        path = await published(conversation, launch)
        assert await other.deliveries.undelivered() == expected
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    await published(conversation)
    assert await other.deliveries.undelivered() == []


@pytest.mark.asyncio
async def test_a_removed_capture_has_nothing_to_acknowledge_and_a_pending_one_nothing_to_claim(
    conversation: Conversation,
) -> None:
    """The one is no error, the other is."""
    await conversation.deliveries.acknowledge(CAPTURE)
    capture = await conversation.create_capture(CAPTURE, ("stdout",))
    with pytest.raises(Exception, match="claiming"):
        await conversation.deliveries.claim(CAPTURE, earlier=False)
    assert not (capture.path / "delivered").exists()


RECORDS: Final = st.lists(
    st.sampled_from(
        [
            b'{"claimed":{"name":"a"}}\n',
            b'{"claimed":{"name":"b"}}\n',
            b'{"released":"a"}\n',
            b'{"acknowledged":true}\n',
        ]
    ),
    max_size=6,
)


@given(RECORDS, st.data())
def test_a_marker_cut_anywhere_says_no_more_than_its_whole_lines(records: list[bytes], data: st.DataObject) -> None:
    """A crash in the middle of a line neither acknowledges nor claims; it only says that somebody was at it."""
    whole = b"".join(records)
    cut = data.draw(st.integers(0, len(whole)))
    lines = whole[:cut].count(b"\n")
    marker, expected = Marker.parse(whole[:cut]), Marker.parse(b"".join(records[:lines]))
    assert (marker.claims, marker.acknowledged) == (expected.claims, expected.acknowledged)
    assert marker.torn == (not whole[:cut].endswith(b"\n") and cut > 0)
