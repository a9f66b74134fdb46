"""gptme's own server on a free port of the loopback, with a model that follows a script; prints the port.

Arguments: a file with one shell tool call in JSON a line, which the model makes one after the other, one for each step
that follows a user's message; to everything else it answers with a word.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tiktoken
from gptme import llm
from gptme.config import get_config
from gptme.init import init
from gptme.server import session_step
from gptme.server.app import create_app
from gptme.server.auth import init_auth
from gptme.server.session_models import SessionManager
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Iterator

calls = iter(Path(sys.argv[1]).read_text().splitlines())
MODEL = "local/scripted"


def answer(messages: list[Any], *_: object, **__: object) -> tuple[str, dict[str, Any]]:
    """Return the next call after a user's message, a word after all other ones."""
    spoken = [message for message in messages if message.role in {"user", "assistant"}]
    if spoken and spoken[-1].role == "user" and spoken[-1].content.startswith("go"):
        call = json.loads(next(calls))
        return f"@shell(call-{len(messages)}): {json.dumps(call)}", {}
    return "noted", {}


class Streamed:
    """The same, in one piece, for a step that streams."""

    def __init__(self, messages: list[Any], *_: object, **__: object) -> None:
        self.text, self.metadata = answer(messages)

    def __iter__(self) -> Iterator[str]:
        """Yield all of it."""
        yield self.text


def no_encoding(name: str) -> None:
    """Have gptme count tokens by characters: it would download the encoding."""
    raise OSError(name)


tiktoken.get_encoding = tiktoken.encoding_for_model = no_encoding
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
get_config().env_overrides["OPENAI_BASE_URL"] = "http://127.0.0.1:9"
llm._chat_complete = session_step._chat_complete = answer  # the former names conversations
session_step._stream = Streamed
init(MODEL, interactive=False, tool_allowlist=["shell"], tool_format="tool", no_confirm=True, server=True)
SessionManager._server_default_model_full = MODEL
init_auth(display=False)
server = make_server("127.0.0.1", 0, create_app(), threaded=True)
print(server.port, flush=True)
server.serve_forever()
