"""Background jobs through gptme's own names: what is kept, what is shown, who is told of the end."""

from __future__ import annotations

import contextvars
import importlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("gptme", reason="gptme is not installed")

from adapters.blocking import BlockingSupervisor
from adapters.gptme.messages import METADATA_KEY
from supervisor import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    Deliver = Callable[[], list[Any]]
    Until = Callable[[Callable[[], object]], None]

PATIENCE = 30.0
LARGE = "echo BEGIN-MARK; seq 1 700000; echo $MY_API_TOKEN; echo END-MARK; exit 3"


def receipt_of(message: object) -> Receipt:
    """Return the receipt that a message carries, as it is after it was written and read."""
    written = message.to_dict()
    return Receipt.parse(written["metadata"][METADATA_KEY].encode())


def output(background: ModuleType, words: str) -> str:
    """Return what `output` answers."""
    (message,) = background.execute_output_command(words)
    assert message.metadata[METADATA_KEY]
    return str(message.content)


def test_all_of_a_large_output_is_kept_private_and_without_the_secret(
    background: ModuleType, conversation: Path, deliver: Deliver, no_secret: Callable[[Path], None]
) -> None:
    """The beginning too, which gptme drops; facts stand before the clipped text."""
    background.start_background_job(LARGE)
    (message,) = deliver()
    head = message.content.partition("````")[0]
    assert "finished (exit code 3)" in head
    receipt = receipt_of(message)
    assert receipt.capture_id in head
    stdout = receipt.streams["stdout"]
    assert stdout is not None
    assert stdout.reference is not None
    assert f"`{stdout.reference}` (`{conversation / stdout.reference}`)" in head
    text = (conversation / stdout.reference).read_text()
    assert text.startswith("BEGIN-MARK\n1\n2\n")
    assert text.endswith("700000\n[REDACTED:MY_API_TOKEN]\nEND-MARK\n")
    assert "END-MARK" in message.content
    assert "bytes before this are not shown" in message.content
    assert len(message.content) < 10_000
    no_secret(conversation)


def test_the_start_names_the_growing_file(background: ModuleType, conversation: Path) -> None:
    """`control_commands_help` is part of gptme's message about a start."""
    job = background.start_background_job("exec sleep 60")
    words = background.control_commands_help(job.id)
    reference = job.receipt.streams["stdout"].reference
    assert f"`{reference}`" in words
    assert (conversation / reference).exists()
    assert f"`kill {job.id}`" in words


def test_each_consumer_has_its_own_place(
    background: ModuleType, conversation: Path, tmp_path: Path, until: Until
) -> None:
    """Two sessions poll `output --new`: each gets everything once, whatever the other one did."""
    assert conversation
    gate = tmp_path / "gate"
    job = background.start_background_job(f"echo one; until [ -e {gate} ]; do sleep 0.02; done; echo two")
    session = importlib.import_module("gptme.hooks.server_confirm").current_session_id

    def poll(name: str) -> str:
        def ask() -> str:
            session.set(name)
            return output(background, f"{job.id} --new")

        return contextvars.copy_context().run(ask)

    until(lambda: "one" in job.newest("stdout", 100).text)
    assert "````stdout\none\n" in poll("a")
    assert "No new output." in poll("a")
    gate.touch()
    job.process.wait(30)
    assert "````stdout\ntwo\n" in poll("a")
    assert "````stdout\none\ntwo\n" in poll("b")
    assert "No new output." in poll("b")
    assert "````stdout\none\ntwo\n" in output(background, str(job.id))


def test_what_a_poll_leaves_out_is_counted(background: ModuleType, conversation: Path) -> None:
    """A gap is told in bytes, and nothing after it is missing."""
    assert conversation
    job = background.start_background_job("printf 'x%.0s' {1..9000}; printf 'y%.0s' {1..3000} >&2")
    job.process.wait(30)
    shown = output(background, f"{job.id} --new")
    assert "(truncated: 1000 bytes before this are not shown)...\n" + "x" * 8000 in shown
    assert "(truncated: 1000 bytes before this are not shown)...\n" + "y" * 2000 in shown


def test_characters_are_never_cut(background: ModuleType, conversation: Path) -> None:
    """Four bytes each: the limit counts characters, the gap bytes."""
    assert conversation
    job = background.start_background_job("for i in {1..8100}; do printf '\\U1F600'; done")
    job.process.wait(30)
    shown = output(background, str(job.id))
    assert "(truncated: 400 bytes before this are not shown)...\n" + "\U0001f600" * 8000 in shown


def test_reading_does_not_take_the_completion(background: ModuleType, conversation: Path, deliver: Deliver) -> None:
    """It comes once, after any number of reads, and is noted on disk as delivered."""
    job = background.start_background_job("echo done")
    (waited,) = background.execute_wait_command(str(job.id), "30")
    assert "Finished (exit code 0)" in waited.content
    (message,) = deliver()
    assert "#1 finished (exit code 0): `echo done`" in message.content
    assert list(background.background_job_completion_hook(object())) == []
    with BlockingSupervisor(conversation) as later:
        own = later.start(["true"])
        assert later.completions().next(PATIENCE).receipt.capture_id == own.capture_id


def test_a_kill_ends_the_whole_tree_and_is_told(background: ModuleType, conversation: Path, deliver: Deliver) -> None:
    """Also what left the process group; the receipt says whose wish it was."""
    assert conversation
    job = background.start_background_job("setsid sleep 60 & echo started; wait")
    (message,) = background.execute_kill_command(str(job.id))
    assert "Terminated job #1" in message.content
    (ended,) = deliver()
    process = receipt_of(ended).process
    assert process is not None
    assert (process.state, process.reason, process.survivors) == ("cancelled", "caller", ())
    assert "finished (cancelled: caller, signal 15)" in ended.content
    assert job.process.returncode == -signal.SIGTERM


def test_a_kill_for_memory_is_named_so(background: ModuleType, conversation: Path, deliver: Deliver) -> None:
    """The memory guard of gptme keeps its meaning, and the receipt its word."""
    assert conversation
    job = background.start_background_job("sleep 60")
    background._record_kill_reason(job, "Killed: system memory was nearly exhausted")
    job.kill(memory=True)
    (message,) = deliver()
    assert "finished (cancelled: memory, signal 15)" in message.content
    assert "system memory was nearly exhausted" in message.content


def test_the_memory_cap_holds(background: ModuleType, conversation: Path, deliver: Deliver) -> None:
    """The `ulimit -v` is put around the command as gptme does it."""
    assert conversation
    background.start_background_job("ulimit -v", memory_limit=1 << 30)
    (message,) = deliver()
    assert f"````stdout\n{1 << 20}\n" in message.content


def test_the_guard_watches_the_job(background: ModuleType, conversation: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the process group, and a way to end it."""
    assert conversation
    watched: list[Any] = []
    monkeypatch.setattr(importlib.import_module("gptme.tools.shell_memory"), "watch", watched.append)
    job = background.start_background_job("sleep 60")
    (target,) = watched
    assert (target.pgid, target.label, target.alive()) == (job.process.pid, "background job #1", True)
    target.on_killed("too much")
    target.kill()
    assert job.receipt.process.reason == "memory"
    assert job.kill_reason == "too much"


def test_directory_environment_and_stdin_are_gptmes(
    background: ModuleType, conversation: Path, deliver: Deliver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process's own directory and environment, in bash, with nothing to read."""
    assert conversation
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOMETHING", "else")
    background.start_background_job('pwd; echo "$SOMETHING ${BASH_VERSION:+bash}"; cat')
    (message,) = deliver()
    assert f"````stdout\n{tmp_path}\nelse bash\n" in message.content


def test_without_a_log_directory_the_command_runs(
    background: ModuleType, conversation: Path, tmp_path: Path, deliver: Deliver, until: Until
) -> None:
    """Its output is shown while it runs and at its end, and the receipt says `no-directory`."""
    conversation.rmdir()
    gate = tmp_path / "gate"
    job = background.start_background_job(f"echo one; until [ -e {gate} ]; do sleep 0.02; done; echo two; exit 4")
    assert "no-directory" in background.control_commands_help(job.id)
    until(lambda: "one" in job.newest("stdout", 100).text)
    assert "````stdout\none\n" in output(background, f"{job.id} --new")
    gate.touch()
    (message,) = deliver()
    assert "finished (exit code 4)" in message.content
    assert "unavailable (nothing is kept on disk), no-directory" in message.content
    assert "````stdout\none\ntwo\n" in message.content
    assert "````stdout\ntwo\n" in output(background, f"{job.id} --new")
    assert not conversation.exists()


def test_a_reset_ends_the_jobs_without_a_completion(background: ModuleType, conversation: Path) -> None:
    """The clean-up is gptme's own; ids start again, and nothing is open for a conversation that runs nothing."""
    job = background.start_background_job("sleep 60")
    background.reset_background_jobs("talk", all_conversations=False)
    assert not job.is_running()
    assert list(background.background_job_completion_hook(object())) == []
    assert background.list_background_jobs() == []
    assert background.start_background_job("true").id == 1
    assert conversation.is_dir()


def test_conversations_do_not_see_each_other(background: ModuleType, conversation: Path, deliver: Deliver) -> None:
    """A job belongs to who started it: files, ids and completion."""
    other = conversation.parent / "other"
    other.mkdir()
    current = importlib.import_module("gptme.hooks.server_confirm").current_conversation_id

    def elsewhere() -> None:
        current.set("other")
        background.start_background_job("echo theirs")

    background.start_background_job("echo ours")
    contextvars.copy_context().run(elsewhere)
    (message,) = deliver()
    assert "ours" in message.content
    assert len(background.list_background_jobs()) == 1
    assert len(list((other / "tool-outputs/captures").iterdir())) == 1


def test_the_list_is_gptmes(background: ModuleType, conversation: Path) -> None:
    """`jobs` shows ours as it shows its own."""
    assert conversation
    job = background.start_background_job("true")
    job.process.wait(30)
    (message,) = background.execute_jobs_command()
    assert "**#1** [⚫ Finished]" in message.content


def test_a_job_ends_with_the_interpreter(background: ModuleType, tmp_path: Path) -> None:
    """No hook of a session has to run for that."""
    assert background
    code = (
        "import os, sys\n"
        "from adapters.gptme import install\n"
        "install()\n"
        "from gptme.tools.shell_background import start_background_job\n"
        "print(start_background_job('exec sleep 600').process.pid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
