"""Reports of known values that reach a file, a receipt or a reader in spite of redaction (C1-C8)."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, Limits, Supervisor
from supervisor.sansio.engines.stdlib import engine_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

SECRET: Final = "kT9vQ2xLmW4zR7pB" + "nY5cJ8hF"
MARKER: Final = "[REDACTED:key]"


async def test_bug_040_a_line_of_two_mebibytes_is_not_held(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-040 (gptme/gptme#4663 contract fixture): a redactor by lines holds everything (C4)."""
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(b"A" * 2_097_152)
        await until(lambda: stream_of(job.receipt).committed == 2_097_152)
        assert stream_of(job.receipt).held == 0
        await job.write(f" password={SECRET}\n".encode())
        await job.write_eof()
        receipt = await job.wait()
    assert conversation.text(receipt)[2_097_152:] == f" password={MARKER}\n".encode()


async def test_bug_083_a_secret_may_be_split_anywhere(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-083 (managoat/fountain#2359; RamaAditya49/titen#171): it is not matched where two chunks meet (C1)."""

    async def split(supervisor: Supervisor, at: int) -> None:
        job = await supervisor.start(["cat"], stdin=PIPE)
        await job.write(f"token={SECRET[:at]}".encode())
        await until(lambda: stream_of(job.receipt).raw.observed == 6 + at)
        await job.write(f"{SECRET[at:]}\n".encode())
        await job.write_eof()
        receipt = await job.wait()
        assert receipt.stdout == f"token={MARKER}\n"
        assert conversation.text(receipt) == f"token={MARKER}\n".encode()

    async with Supervisor(conversation.path, secrets={"key": SECRET}, durability="none") as supervisor:
        await asyncio.gather(*(split(supervisor, at) for at in range(1, len(SECRET))))


async def test_bug_083_the_cut_of_a_preview_shows_no_part(
    conversation: Conversation, stream_of: Callable[..., Any]
) -> None:
    """BUG-083 (managoat/fountain#2359; RamaAditya49/titen#171): it is not matched where the preview is cut (C2)."""
    limits = Limits(preview_stdout_chars=40)
    async with Supervisor(conversation.path, secrets={"key": SECRET}, limits=limits) as supervisor:
        for before in range(0, 40, 3):
            receipt = await supervisor.run(["cat"], stdin=f"{'b' * before}{SECRET}{'a' * 40}".encode())
            preview = stream_of(receipt).preview
            assert preview.state == "clipped"
            shown = preview.head + preview.tail
            assert not any(SECRET[at : at + 4] in shown for at in range(len(SECRET) - 3))


async def test_bug_084_a_shorter_secret_leaves_no_tail_of_a_longer(conversation: Conversation) -> None:
    """BUG-084 (tinylabscom/mvm#1391): a prefix of a longer one is masked first, and its tail is shown (C6)."""
    secrets = {"short": "hunter2-", "long": "hunter2-12345"}
    async with Supervisor(conversation.path, secrets=secrets) as supervisor:
        receipt = await supervisor.run("echo hunter2-12345; exit 1", shell=True, record_command=False)
    assert receipt.stdout == "[REDACTED:short]\n"
    assert conversation.text(receipt) == b"[REDACTED:short]\n"


async def test_bug_086_usual_encodings_are_known(conversation: Conversation) -> None:
    """BUG-086 (actions/runner#2265; OpenHands/agent-canvas#1049): base64, URL and JSON forms pass (C5)."""
    secret = 'p@ss"word/1'
    url = "import json, urllib.parse as u, sys; s = sys.stdin.read(); print(json.dumps(s), u.quote_plus(s))"
    script = f'printf %s "$VALUE" | base64; printf %s "$VALUE" | "{sys.executable}" -S -c "$CODE"; exit 1'
    async with Supervisor(conversation.path, secrets={"key": secret}) as supervisor:
        environment = {"VALUE": secret, "CODE": url, "PATH": "/usr/bin:/bin"}
        receipt = await supervisor.run(script, shell=True, env=environment, record_command=False)
    # Of padded base64 the last character is shared with what would follow, so it is not in the needle.
    base, rest = receipt.stdout.splitlines()
    assert base.startswith(MARKER)
    assert base64.b64encode(secret.encode()).decode().endswith(base.removeprefix(MARKER))
    assert len(base) <= len(MARKER) + 2
    assert rest == f'"{MARKER}" {MARKER}'


async def test_bug_087_no_file_has_the_secret_at_any_moment(
    conversation: Conversation, until: Callable[..., Any], stream_of: Callable[..., Any]
) -> None:
    """BUG-087 (synthetic-sciences/openscience PR#566; FerroxLabs/wayland#714; breckenreed/hermes-webui#42) (C2)."""
    script = 'for i in $(seq 1 2000); do echo line $i; done; echo "KEY=$VALUE"; read -r line; exit 1'
    environment = {"VALUE": SECRET, "PATH": "/usr/bin:/bin"}
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        job = await supervisor.start(script, shell=True, env=environment, stdin=PIPE)
        await until(lambda: conversation.holding(f"KEY={MARKER}\n".encode()))
        assert conversation.holding(SECRET.encode()) == []
        await job.write(b"\n")
        receipt = await job.wait()
        assert conversation.holding(SECRET.encode()) == []
    assert conversation.text(receipt).endswith(f"line 2000\nKEY={MARKER}\n".encode())
    assert receipt.stdout.endswith(f"line 2000\nKEY={MARKER}\n")
    assert conversation.holding(SECRET.encode()) == []
    assert stream_of(receipt).redactions == {"key": 1}


async def test_bug_088_arguments_and_labels_are_redacted(conversation: Conversation) -> None:
    """BUG-088 (wienerdog-ai/wienerdog PR#261): a secret of the argv is in the receipt or in a file's name (C8)."""
    header = f"Authorization: Bearer {SECRET}"
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        job = await supervisor.start(["true", "-H", header], label=f"curl {header} " + "x" * 300)
        receipt = await job.wait()
    assert receipt.command == ("true", "-H", f"Authorization: Bearer {MARKER}")
    assert receipt.label is not None
    assert receipt.label.startswith(f"curl Authorization: Bearer {MARKER} xx")
    assert len(receipt.label) <= 200
    assert conversation.holding(SECRET.encode()) == []
    assert not any(SECRET in str(path) for path in conversation.path.rglob("*"))


async def test_bug_089_colours_inside_a_secret_do_not_hide_it(conversation: Conversation) -> None:
    """BUG-089 (class from chalk/strip-ansi#43 + redactors): `grep --color` breaks the match (C1)."""
    coloured = f"token={SECRET[:8]}\x1b[31m{SECRET[8:16]}\x1b[0m{SECRET[16:]}\n"
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        receipt = await supervisor.run("cat; exit 1", shell=True, stdin=coloured.encode())
    assert receipt.stdout == f"token={MARKER}\n"
    assert conversation.text(receipt) == f"token={MARKER}\n".encode()


async def test_bug_090_a_kill_in_mid_secret_shows_no_part(
    conversation: Conversation, stream_of: Callable[..., Any]
) -> None:
    """BUG-090 (gptme#4663 contract ('partial assignment')): held bytes are flushed raw at the end (C7)."""
    script = f"printf 'password={SECRET[:10]}'; exec sleep 300"
    async with Supervisor(conversation.path, secrets={"key": SECRET}) as supervisor:
        receipt = await supervisor.run(script, shell=True, time_limit=0.5, record_command=False)
    assert conversation.text(receipt) == b"password=[REDACTED:undecided]"
    assert (stream_of(receipt).omitted, stream_of(receipt).held) == (10, 0)
    assert SECRET[:10] not in json.dumps(receipt.model_dump(mode="json"))


async def test_bug_041_no_byte_is_searched_again_and_again() -> None:
    """BUG-041 (synthetic-sciences/openscience#564): the whole text is redacted anew for each chunk (B3, C4)."""
    searched = 0

    class Counting:
        """The engine, with a count of what it is given."""

        name = "stdlib"

        def __init__(self) -> None:
            self._engine = engine_for(NeedleSet.build({"token": SECRET}))

        def is_clean(self, text: bytes) -> bool:
            """Search as the engine does."""
            nonlocal searched
            searched += len(text)
            return self._engine.is_clean(text)

        def scan(self, buffer: bytes, start: int) -> Any:  # noqa: ANN401
            """Search as the engine does."""
            nonlocal searched
            searched += len(buffer)
            return self._engine.scan(buffer, start)

    sanitizer = Sanitizer(NeedleSet.build({"token": SECRET}), engine=Counting())  # type: ignore[arg-type]
    text = b"".join(sanitizer.feed(b"q" * 4096, bulk=True) for _ in range(500)) + sanitizer.finish()
    assert text == b"q" * 4096 * 500
    assert len(text) <= searched < 3 * len(text)


async def test_bug_122_a_scrubbed_child_has_no_key_of_the_hosts(
    conversation: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUG-122 (anthropics/claude-code#62156): the harness's API keys are visible to every child (C5)."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (tmp_path / "elsewhere").write_text(f"found {SECRET}\n")
    script = f"env | grep -c '^OPENAI_API_KEY=\\|{SECRET[:9]}'; cat {tmp_path}/elsewhere"
    async with Supervisor(conversation.path) as supervisor:
        jobs = [
            await supervisor.start(script, shell=True, env_policy=policy)
            for policy in ("inherit", "scrubbed", "explicit")
        ]
        receipts = [await job.wait() for job in jobs]
    assert [receipt.stdout.split()[0] for receipt in receipts] == ["1", "0", "0"]
    assert {receipt.stdout.partition("\n")[2] for receipt in receipts} == {"found [REDACTED:OPENAI_API_KEY]\n"}
    records = [json.loads((conversation.captures_of(receipt) / "launch.json").read_text()) for receipt in receipts]
    assert [record["environment"]["policy"] for record in records] == ["inherit", "scrubbed", "explicit"]
    assert "OPENAI_API_KEY" in records[1]["environment"]["removed"]
    assert conversation.holding(SECRET.encode()) == []
