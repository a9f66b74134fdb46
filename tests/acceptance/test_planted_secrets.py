"""A secret in every place that carries text, and a search of all that is left of it (C8)."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, SpawnError, StorageError, Supervisor

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Conversation

    from supervisor import Receipt

SECRET: Final = "pL4nT3dVq8Rw" + "Zt6Yb2Xc9Md1"
VARIABLE: Final = "PLANTED_TOKEN"


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret is a variable's value, as most are."""
    monkeypatch.setenv(VARIABLE, SECRET)


def shown(receipt: Receipt) -> str:
    """Return every form of a receipt that somebody may read."""
    forms = (receipt.to_json().decode(), receipt.for_sharing().to_json().decode(), receipt.render(), repr(receipt))
    return "\n".join(forms)


def check(conversation: Conversation, *receipts: Receipt) -> None:
    """Nothing that was returned or lies on the disk has the secret, and no file's name does."""
    for receipt in receipts:
        assert SECRET not in shown(receipt)
    assert conversation.holding(SECRET.encode()) == []
    assert not any(SECRET in str(path) for path in conversation.path.rglob("*"))


@pytest.mark.asyncio
async def test_in_the_places_of_a_command_that_runs(conversation: Conversation, tmp_path: Path) -> None:
    """Argv, shell text, label, call id, working directory, a variable's name and value, output, input."""
    place = tmp_path / SECRET
    place.mkdir()
    environment = {**os.environ, SECRET: "value", f"X_{SECRET}_TOKEN": "other-value-1", "ALSO": f"in {SECRET} here"}
    options: dict[str, Any] = {"cwd": place, "env": environment, "label": f"a {SECRET} b", "call_id": f"call-{SECRET}"}
    async with Supervisor(conversation.path) as supervisor:
        job = await supervisor.start(["sh", "-c", "pwd; env; cat; exit 3", SECRET], stdin=PIPE, **options)
        await job.write(f"typed {SECRET}\n".encode())
        await job.write_eof()
        receipt = await job.wait()
        shell = await supervisor.run(f"echo {SECRET}; cd {place}; exit 1", shell=True, **options)
        running = await supervisor.start(["sleep", "60"], **options)
        assert (conversation.captures_of(running.receipt) / "launch.json").exists()
        check(conversation, running.receipt)
        ended = await running.terminate()
    check(conversation, receipt, shell, ended)
    marker = f"[REDACTED:{VARIABLE}]"
    assert receipt.command is not None
    assert (receipt.command[-1], receipt.label, receipt.call_id) == (marker, f"a {marker} b", f"call-{marker}")
    text = conversation.text(receipt).decode()
    assert f"/{marker}\n" in text
    assert f"{marker}=value\n" in text
    assert f"ALSO=in {marker} here\n" in text
    assert f"typed {marker}\n" in text


@pytest.mark.asyncio
@pytest.mark.parametrize("where", ["program", "directory", "interpreter", "argument"])
async def test_in_a_command_that_cannot_start(conversation: Conversation, tmp_path: Path, where: str) -> None:
    """The receipt's error names what failed, with a marker in its place, and nothing is left on disk (F6)."""
    script = tmp_path / "script"
    script.write_text(f"#!/nonexistent/{SECRET}\n")
    script.chmod(0o700)
    command, cwd = {
        "program": ([f"/nonexistent/{SECRET}"], None),
        "directory": (["true"], tmp_path / SECRET),
        "interpreter": ([str(script)], None),
        "argument": (["/nonexistent/program", SECRET, "x" * (1 << 17)], None),
    }[where]
    async with Supervisor(conversation.path) as supervisor:
        with pytest.raises(SpawnError) as caught:
            await supervisor.run(command, cwd=cwd, label=SECRET)
    assert caught.value.receipt is not None
    check(conversation, caught.value.receipt)
    assert caught.value.receipt.process is not None
    assert caught.value.receipt.process.error


@pytest.mark.asyncio
async def test_in_the_words_of_a_fault_of_the_disk(conversation: Conversation) -> None:
    """Whatever a storage fault says, receipts say it without the secret."""

    class Refusing:
        """A storage that cannot be opened, and says why at length."""

        async def open(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - it never returns
            """Refuse."""
            raise StorageError(f"opening /mnt/{SECRET}: {os.strerror(errno.EIO)}", reason="io-error")

    async with Supervisor(conversation.path, storage=Refusing()) as supervisor:
        receipt = await supervisor.run(["true"])
    check(conversation, receipt)
    assert receipt.limitations == (f"opening /mnt/[REDACTED:{VARIABLE}]: {os.strerror(errno.EIO)}",)


@pytest.mark.asyncio
async def test_a_command_that_is_not_to_be_recorded_is_nowhere(conversation: Conversation) -> None:
    """Neither in the launch record nor in the receipt."""
    argument = "not-a-known-secret-5512"
    async with Supervisor(conversation.path) as supervisor:
        receipt = await (await supervisor.start(["sh", "-c", "exit 1", argument], record_command=False)).wait()
    assert receipt.command is None
    assert conversation.holding(argument.encode()) == []


@pytest.mark.asyncio
async def test_the_search_finds_what_is_there(conversation: Conversation) -> None:
    """A test that cannot fail is a defect: with redaction off it is in the receipt and on the disk."""
    async with Supervisor(conversation.path, redaction="none") as supervisor:
        receipt = await supervisor.run(f"echo {SECRET}; exit 1", shell=True)
    with pytest.raises(AssertionError):
        check(conversation, receipt)
