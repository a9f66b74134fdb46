"""A receipt that is read away from its files says so, and never names a path that leads nowhere [E7]."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from supervisor import Receipt, StorageError, Supervisor, export_captures, list_captures, remove_captures, resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Talk

    from supervisor.sansio.receipt import StreamFacts


def routes(receipt: Receipt, facts: Callable[..., StreamFacts]) -> tuple[bool, bool, str]:
    """Return whether stdout has a reference and a path, and its access."""
    stdout = facts(receipt)
    return stdout.reference is not None, stdout.path is not None, stdout.access


@pytest.mark.asyncio
async def test_where_its_files_are_a_receipt_is_local(talk: Talk, facts: Callable[..., StreamFacts]) -> None:
    """From JSON, and from the form for somebody else if told where to look; its texts can be read then."""
    parsed = Receipt.parse(talk.receipts[0].to_json())
    with pytest.raises(StorageError):
        await parsed.read_text("stdout")
    assert await resolve(parsed) == talk.receipts[0]
    assert (await (await resolve(parsed)).read_text("stdout")).endswith("2000\n")
    shared = talk.receipts[0].for_sharing()
    found = await resolve(shared, talk.path)
    assert routes(found, facts) == (True, True, "local")
    assert (await found.read_text("stdout")).endswith("2000\n")


@pytest.mark.asyncio
async def test_elsewhere_it_needs_a_transfer(talk: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]) -> None:
    """Without a conversation, in one that is not there, is no directory, or may not be used."""
    receipt = talk.receipts[0]
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for away in (
        await resolve(receipt.for_sharing()),
        *[await resolve(receipt, tmp_path / name) for name in ("missing", "file", "open")],
    ):
        assert routes(away, facts) == (True, False, "needs-transfer")
        assert away.capture == receipt.capture
        with pytest.raises(StorageError):
            await away.read_text("stdout")
    shutil.move(talk.path, tmp_path / "moved")
    assert routes(await resolve(receipt), facts) == (True, False, "needs-transfer")
    assert routes(await resolve(receipt, tmp_path / "moved"), facts) == (True, True, "local")


@pytest.mark.asyncio
async def test_what_was_removed_is_unavailable(talk: Talk, other: Talk, facts: Callable[..., StreamFacts]) -> None:
    """The capture, its file, or all that the conversation ever had."""
    first, second = talk.receipts
    (talk.capture(1) / "stdout.log").unlink()
    assert routes(await resolve(second), facts) == (False, False, "unavailable")
    await remove_captures(talk.path, talk.ids[:1])
    assert routes(await resolve(first), facts) == (False, False, "unavailable")
    assert routes(await resolve(first, other.path), facts) == (False, False, "unavailable")


@pytest.mark.asyncio
async def test_what_must_not_be_opened_is_unavailable(talk: Talk, facts: Callable[..., StreamFacts]) -> None:
    """A directory that is open to others; a link in the place of a file [D2]."""
    talk.capture(0).chmod(0o755)
    assert routes(await resolve(talk.receipts[0]), facts) == (False, False, "unavailable")
    stdout = talk.capture(1) / "stdout.log"
    stdout.rename(talk.path / "aside")
    stdout.symlink_to(talk.path / "aside")
    assert routes(await resolve(talk.receipts[1]), facts) == (False, False, "unavailable")
    assert facts((await list_captures(talk.path))[1]).access == "unavailable"


@pytest.mark.asyncio
async def test_a_text_that_the_receipt_carries_stays_inline(talk: Talk, facts: Callable[..., StreamFacts]) -> None:
    """It never had a file [A7]."""
    async with Supervisor(talk.path) as supervisor:
        receipt = await supervisor.run(["echo", "x"])
    assert facts(receipt).access == "inline"
    assert await resolve(receipt) == receipt


@pytest.mark.asyncio
async def test_an_exported_receipt_leads_to_its_text_wherever_it_lies(
    talk: Talk, tmp_path: Path, facts: Callable[..., StreamFacts]
) -> None:
    """The file in the export names no path; told where it is, `resolve` finds it."""
    await export_captures(talk.path, talk.ids[:1], tmp_path / "out")
    lying = Receipt.parse((tmp_path / "out/tool-outputs/captures" / talk.ids[0] / "receipt.json").read_bytes())
    assert (lying.conversation, facts(lying).path, facts(lying).access) == (None, None, "local")
    assert routes(await resolve(lying), facts) == (True, False, "needs-transfer")
    assert routes(await resolve(lying, tmp_path / "out"), facts) == (True, True, "local")
