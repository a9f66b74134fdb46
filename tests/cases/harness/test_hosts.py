"""Reports about a whole host process: what its terminal, locale, environment, stdin and end do to a job, and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., subprocess.CompletedProcess[bytes]]

SECRET: Final = "kT9vQ2xLmW4zR7pB" + "nY5cJ8hF3sD6gA1e"


@pytest.fixture
def python(tmp_path: Path) -> Command:
    """Return a function that runs this Python, able to import `supervisor`, in the test's directory, to its end."""

    def run(*arguments: str, data: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
        environment |= {"HOME": str(tmp_path), "SPOOLVISOR_DIR": str(tmp_path / "kept")}
        environment |= {"PYTHONPATH": str(Path(supervisor.__file__).parent.parent), **variables}
        command = [sys.executable, "-W", "error", *arguments]
        return subprocess.run(
            command, check=False, capture_output=True, cwd=tmp_path, env=environment, input=data, timeout=60
        )

    return run


@pytest.fixture
def spoolvisor(python: Command) -> Command:
    """Return a function that runs the command line to its end."""
    return lambda *arguments, **variables: python("-m", "supervisor", *arguments, **variables)


def test_bug_037_terminal_modes_do_not_reach_the_users_terminal(spoolvisor: Command) -> None:
    """BUG-037 (anthropics/claude-code#81210): what was captured leaves the terminal in mouse or alt-screen mode."""
    done = spoolvisor("run", "--shell", r"printf '\033[?1049h\033[?1000hhello\n'; exit 1")
    assert done.returncode == 1
    assert b"hello\n" in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr


def test_bug_143_the_locale_decides_nothing(spoolvisor: Command) -> None:
    """BUG-143 (interactive/locale class (MoonshotAI/kimi-cli#2468 notes; LC_ALL=C class)): output is decoded by it."""
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = spoolvisor("run", "--json", "--quiet", "--shell", r"printf '\xe2\x9c\x93 ok\n'", **locale)
    facts = json.loads(done.stdout)["streams"]["stdout"]
    assert (facts["preview"]["head"], facts["replaced"]) == ("✓ ok\n", 0)


def test_bug_142_a_secret_read_from_the_hosts_own_environment_is_masked(spoolvisor: Command, tmp_path: Path) -> None:
    """BUG-142 (breckenreed/hermes-webui#42): a child reads it through /proc/<ppid>/environ (C5)."""
    script = "tr '\\0' '\\n' < /proc/$PPID/environ | grep -a '^OPENAI_API_KEY='"
    done = spoolvisor("run", "--shell", f"{script}; exit 1", OPENAI_API_KEY=SECRET)
    assert b"OPENAI_API_KEY=[REDACTED:OPENAI_API_KEY]\n" in done.stdout
    texts = [done.stdout, done.stderr, *(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())]
    assert not any(SECRET.encode() in text for text in texts)
    assert any(b"OPENAI_API_KEY=[REDACTED:OPENAI_API_KEY]\n" in text for text in texts[2:])


@pytest.mark.parametrize(
    "script", ["cat; echo got-eof", "read -r line || echo got-eof", "sleep 0.1 & cat; echo got-eof"]
)
def test_bug_101_the_hosts_stdin_is_nobodys(spoolvisor: Command, script: str) -> None:
    """BUG-101 (aaif-goose/goose PR#568; SWE-agent/SWE-ReX#281): a tool reads the host's own protocol (F7)."""
    done = spoolvisor("run", "--shell", script, data=b'{"jsonrpc": "2.0", "method": "initialize"}\n')
    assert done.returncode == 0
    assert b"got-eof\n" in done.stdout
    assert b"jsonrpc" not in done.stdout + done.stderr


def test_bug_081_a_loop_that_ends_leaves_no_child(python: Command, tmp_path: Path) -> None:
    """BUG-081 (python/cpython#125502; python/cpython#87744): "Event loop is closed", and a child is left (F10)."""
    script = (
        "import asyncio, sys\n"
        "from supervisor import Supervisor\n"
        "async def main():\n"
        "    asyncio.get_running_loop().slow_callback_duration = 60\n"  # how busy the machine is, is not asked
        "    async with Supervisor(sys.argv[1]) as supervisor:\n"
        "        job = await supervisor.start(['sleep', '309'])\n"
        "    return job\n"
        "job = asyncio.run(main())\n"
        "print(job.receipt.process.reason, job.receipt.process.kill_confirmed)\n"
    )
    (tmp_path / "conversation").mkdir(mode=0o700)
    done = python("-X", "dev", "-c", script, str(tmp_path / "conversation"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"supervisor-shutdown True\n"


def test_bug_082_adopted_orphans_are_reaped(python: Command, loop_module: str) -> None:
    """BUG-082 (container PID-1 reaping class): orphans that came to a subreaper stay zombies for ever (F3, F10)."""
    script = """
import asyncio, importlib, sys
from pathlib import Path
from supervisor import PIPE, Supervisor
from supervisor.process import adopt_orphans, proc, subreaper

subreaper.REAP_SECONDS = subreaper.SETTLED_SECONDS = 0.01

async def main():
    assert adopt_orphans()
    async with Supervisor() as supervisor:
        job = await supervisor.start("(sleep 0.2 & echo $!); read -r line; echo end; exit 3",
                                     shell=True, stdin=PIPE, window_bytes=1024)
        shown = job.live("stdout")
        orphan = int((await anext(shown)).text)
        while Path(f"/proc/{orphan}").exists():
            await asyncio.sleep(0.01)
        await job.write(b"go\\n")
        receipt = await job.wait()
    print(receipt.process.code, receipt.process.survivors, Path("/proc/thread-self/children").read_text() or "none")

importlib.import_module(sys.argv[1]).run(main())
"""
    done = python("-c", script, loop_module)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"3 () none\n"


def test_bug_043_memory_is_a_matter_of_budgets_and_not_of_output(
    python: Command, tmp_path: Path, loop_module: str
) -> None:
    """BUG-043 (anthropics/claude-code#11155): background output is kept in memory, many GB of it (B3)."""
    script = """
import importlib, sys
from pathlib import Path
from supervisor import Limits, Supervisor

def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

async def main():
    limits = Limits(job_bytes=10_000, queue_bytes=65_536)
    async with Supervisor("conversation", limits=limits, durability="none", redaction="none") as supervisor:
        async def together(size):
            jobs = [await supervisor.start(f"head -c {size} /dev/zero | tr '\\\\0' m", shell=True) for _ in range(10)]
            return [await job.wait() for job in jobs]
        await together(500_000)
        before = peak()
        receipts = await together(2_000_000)
    print(peak() - before, {receipt.streams["stdout"].raw.observed for receipt in receipts})

importlib.import_module(sys.argv[1]).run(main())
"""
    (tmp_path / "conversation").mkdir(mode=0o700)
    done = python("-c", script, loop_module)
    grown, observed = done.stdout.split()
    assert (done.stderr, observed) == (b"", b"{2000000}")
    assert int(grown) * 1024 < 10 * (2_000_000 - 500_000) / 2
