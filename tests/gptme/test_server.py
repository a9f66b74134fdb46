"""The real shell tool in the real threaded server, over the loopback, with a model that follows a script."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("gptme", reason="gptme is not installed")
pytest.importorskip("flask", reason="gptme's server is not installed")

from supervisor import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Until = Callable[[Callable[[], object]], None]

SECRET: Final = "q7Zr-secret-of-the-test-91"
TOKEN: Final = "the-token-of-the-server"
PROGRAM: Final = Path(__file__).parent.parent / "programs" / "gptme_server.py"
KEY: Final = "spoolvisor_receipt"


@dataclass(frozen=True)
class Server:
    """A running server and its log directory."""

    port: int
    logs: Path

    def ask(self, method: str, path: str, body: object = None, token: str | None = TOKEN) -> tuple[int, bytes]:
        """Return status and body of a request."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v2/conversations/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {}),
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def create(self, name: str) -> str:
        """Create a conversation that makes tool calls unasked; return its session."""
        chat = {"model": "local/scripted", "tools": ["shell"], "tool_format": "tool", "stream": False, "name": "a talk"}
        body = {"prompt": "none", "messages": [], "config": {"chat": chat}, "auto_confirm": True}
        status, answer = self.ask("PUT", name, body)
        assert status == 200, answer
        return str(json.loads(answer)["session_id"])

    def log(self, name: str) -> list[dict[str, Any]]:
        """Return the messages of a conversation."""
        _, answer = self.ask("GET", name)
        return list(json.loads(answer)["log"])

    def say(self, name: str, session: str, until: Until) -> None:
        """Have the model make its next call, once the conversation takes a message again."""
        until(lambda: self.ask("POST", name, {"role": "user", "content": "go"})[0] == 200)
        step = {"session_id": session, "model": "local/scripted", "auto_confirm": True, "stream": False}
        status, answer = self.ask("POST", f"{name}/step", step)
        assert status == 200, answer


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return the file whose appearance ends the job."""
    return tmp_path / "gate"


@pytest.fixture
def server(tmp_path: Path, gate: Path) -> Iterator[Server]:
    """Run the server; its model starts a job and polls it twice."""
    script = tmp_path / "script"
    command = f"echo BEGIN-MARK; seq 1 700000; until [ -e {gate} ]; do sleep 0.05; done; echo $MY_API_TOKEN; echo END"
    calls = [{"command": command, "background": "true"}, {"command": "output 1 --new"}, {"command": "output 1 --new"}]
    calls.append({"command": "jobs"})
    script.write_text("\n".join(map(json.dumps, calls)))
    logs = tmp_path / "logs"
    homes = dict.fromkeys(
        ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), str(tmp_path / "home")
    )
    environment = os.environ | homes | {"GPTME_LOGS_HOME": str(logs), "GPTME_SERVER_TOKEN": TOKEN}
    (tmp_path / "home").mkdir()
    with (
        (tmp_path / "server.log").open("wb") as errors,
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(script)],
            env=environment | {"MY_API_TOKEN": SECRET},
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=tmp_path,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, b"")
            assert select.select([process.stdout], [], [], 60)[0], "the server did not start"
            port = next(line for line in lines if line.strip().isdigit())
            yield Server(int(port), logs)
        finally:
            process.terminate()


def said(server: Server, name: str, part: str) -> list[dict[str, Any]]:
    """Return the system messages that hold these words."""
    return [entry for entry in server.log(name) if entry["role"] == "system" and part in entry["content"]]


def test_a_job_of_an_idle_server(server: Server, gate: Path, until: Until, no_secret: Callable[[Path], None]) -> None:
    """Started, polled by two consumers, ended while all is idle: the server is woken once, and nothing is lost."""
    name = "talk"
    first = server.create(name)
    server.say(name, first, until)
    until(lambda: server.log(name)[-1]["content"] == "noted")
    assert len(said(server, name, "Started background shell job #1")) == 1
    (started,) = said(server, name, "Its output grows in `tool-outputs/captures/")
    for number, session in enumerate((first, second_session(server, name)), start=1):
        server.say(name, session, until)
        until(lambda number=number: len(said(server, name, "**Job #1** - Running")) == number)
        until(lambda: server.log(name)[-1]["content"] == "noted")
    for poll in said(server, name, "**Job #1** - Running"):
        assert "700000" in poll["content"]  # the second consumer is not robbed by the first one
    before = len(server.log(name))

    gate.touch()
    until(lambda: said(server, name, "#1 finished (exit code 0)"))
    until(lambda: server.log(name)[-1]["role"] == "assistant")
    assert len(server.log(name)) == before + 2  # the message, and what the woken model said
    (message,) = said(server, name, "#1 finished")
    receipt = Receipt.parse(message["metadata"][KEY].encode())
    assert (receipt.capture.state, receipt.process and receipt.process.code) == ("complete", 0)
    reference = receipt.streams["stdout"] and receipt.streams["stdout"].reference
    assert reference is not None
    assert reference in message["content"].partition("````")[0]
    assert "files" not in message or not message["files"]

    status, text = server.ask("GET", f"{name}/files/{reference}")
    assert status == 200
    assert text.startswith(b"BEGIN-MARK\n1\n2\n")
    assert text.endswith(b"700000\n[REDACTED:MY_API_TOKEN]\nEND\n")
    server.say(name, first, until)  # the hooks of further steps have nothing more to deliver
    until(lambda: said(server, name, "**Background Jobs:**"))
    until(lambda: server.log(name)[-1]["content"] == "noted")
    assert len(said(server, name, "#1 finished")) == 1
    no_secret(server.logs / name)
    denied(server, name, reference)
    assert started["role"] == "system"


def denied(server: Server, name: str, reference: str) -> None:
    """Nobody else gets at it: no token, a wrong one, another conversation, traversal, a symlink out."""
    path = f"{name}/files/{reference}"
    assert server.ask("GET", path, token=None)[0] == 401
    assert server.ask("GET", path, token="wrong")[0] in {401, 403}
    server.create("other")
    assert server.ask("GET", f"other/files/{reference}")[0] == 404
    for way in (f"../{name}/{reference}", f"..%2F{name}%2F{reference}", "../../server.log"):
        status, answer = server.ask("GET", f"other/files/{way}")
        assert status in {400, 404, 308}, (way, status)
        assert b"BEGIN-MARK" not in answer
    (server.logs / "other" / "link").symlink_to(server.logs / name / reference)
    status, answer = server.ask("GET", "other/files/link")
    assert status == 400
    assert b"BEGIN-MARK" not in answer


def second_session(server: Server, name: str) -> str:
    """Return another session of the conversation, as a second client gets one."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/api/v2/conversations/{name}/events",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(request, timeout=30) as events:
        for line in events:
            if line.startswith(b"data:") and b"session_id" in line:
                return str(json.loads(line[5:])["session_id"])
    raise AssertionError("no session was announced")
