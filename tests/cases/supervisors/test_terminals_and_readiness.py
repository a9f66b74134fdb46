"""What a terminal's end means, and which text tells that a command is ready (B7, E1, F2)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from supervisor import PIPE, NeverReady, Receipt, Supervisor, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Conversation

pytestmark = pytest.mark.asyncio

TERMINAL: Final = Terminal(rows=24, columns=80)
PATIENCE: Final = 30.0


def ending(receipt: Receipt) -> tuple[str, int | None, int | None]:
    """Return state, code and signal."""
    assert receipt.process is not None
    return receipt.process.state, receipt.process.code, receipt.process.signal


async def test_h5_044_the_end_of_a_terminal_is_no_error(conversation: Conversation) -> None:
    """H5-044 (labgrid-project/labgrid#653): EIO was taken for one, and what was read before it thrown away."""
    async with Supervisor(conversation.path, durability="none") as supervisor:
        for _ in range(10):
            receipt = await (await supervisor.start(["echo", "131072"], pty=TERMINAL)).wait()
            assert ending(receipt) == ("exited", 0, None)
            assert (conversation.text(receipt), receipt.capture.state) == (b"131072\n", "complete")


async def test_h5_045_no_hangup_comes_astray(conversation: Conversation) -> None:
    """H5-045 (Yelp/dumb-init#136): a leader that lost its terminal got SIGHUP right after its start."""
    script = "trap 'echo hung up' HUP; echo $$; ps -o tty= -p $$; kill -0 $$"
    leave = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCNOTTY); print(1)"
    async with Supervisor(conversation.path) as supervisor:
        for _ in range(5):
            receipt = await supervisor.run(["sh", "-c", script], pty=TERMINAL)
            assert ending(receipt) == ("exited", 0, None)
            assert "hung up" not in receipt.stdout
            assert receipt.stdout.splitlines()[1].startswith("pts/")
        gone = await supervisor.run([sys.executable, "-S", "-c", leave], pty=TERMINAL)
    assert ending(gone) == ("exited", None, 1)  # the child's own doing: told, and no fault of ours
    assert gone.capture.state == "complete"


async def test_h5_070_what_an_earlier_run_said_makes_nobody_ready(
    conversation: Conversation, until: Callable[..., Any]
) -> None:
    """H5-070 (F1bonacc1/process-compose#102): the line of the run before made a crashing service "ready"."""
    async with Supervisor(conversation.path) as supervisor:
        await (await supervisor.start(["echo", "server ready"], label="server")).wait()
        crashed = await supervisor.start(["sh", "-c", "exit 1"], label="server")
        with pytest.raises(NeverReady):
            await crashed.wait_for("server ready", timeout=PATIENCE)
        job = await supervisor.start(["sh", "-c", "exec cat >&2"], label="server", stdin=PIPE)
        with pytest.raises(TimeoutError):
            await job.wait_for("ready", "stderr", timeout=0.01)
        for count, part in enumerate((b"server re", b"ady", b" now\n"), 1):
            await job.write(part)
            total = (9, 12, 17)[count - 1]
            await until(lambda total=total: job.receipt.streams["stderr"].raw.observed == total)
        match = await job.wait_for("server ready", "stderr", timeout=PATIENCE)
        assert (match.text, match.start.offset, match.start.capture_id) == ("server ready", 0, job.capture_id)
        await job.terminate()
