"""Memory and time for input that is made to use them up: bounded and linear (contract B3, C4; RED-038, RED-039)."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from supervisor.sansio.engines.stdlib import engine_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from supervisor.sansio.engines import Engine, Findings

NEEDLES = NeedleSet.build({"A": "hunter2sec9"})
CHUNK = 64 * 1024
KEY = b"-----BEGIN " + b"PRIVATE KEY-----\n"
HOSTILE = {
    "no newline": (b"", b"x y "),
    "a token without end": (b"API_KEY=", b"a1B2"),
    "a quoted value without end": (b'token = "', b"ab\\"),
    "a key block without end": (KEY, b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"),
    "a key block in one line": (KEY, b"MIIEvQIBADANBg \\n"),
    "leads in a value": (b"", b"API_KEY="),
    "leads in a quoted value": (b"", b"token=\"token='"),
    "beginnings of web tokens": (b"", b"-eyJ"),
    "beginnings of addresses": (b"", b"://a:"),
    "at signs": (b"://a:", b"@"),
    "beginnings of key blocks": (b"", KEY + b"Proc-Type: "),
    "headers of key blocks": (KEY, b"A: "),
    "dashes": (b"", b"-----"),
    "white space after a name": (b"", b"password" + b" " * 9),
    "flags": (b"", b"--a-a-a-"),
    "names": (b"", b"token_"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_held_and_kept_is_bounded(name: str) -> None:
    """However long it goes on: what is held does not grow, and neither does what is remembered."""
    lead, body = HOSTILE[name]
    sanitizer = Sanitizer(NEEDLES)
    chunk = (body * (CHUNK // len(body) + 1))[: CHUNK // 4]
    sanitizer.feed(lead + chunk * 4, bulk=True)
    tracemalloc.start()
    try:
        sanitizer.feed(chunk, bulk=True)  # the interpreter keeps some freed tuples for later
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(6):
            sanitizer.feed(chunk, bulk=True)
            assert sanitizer.held < 1300
        assert tracemalloc.get_traced_memory()[0] - before < 4096
        sanitizer.quiet()
    finally:
        tracemalloc.stop()
    assert sanitizer.held < 1300


@pytest.mark.parametrize("name", HOSTILE)
def test_the_time_grows_with_the_length(name: str) -> None:
    """Twice the text in one piece takes about twice the time; four times would be quadratic."""
    lead, body = HOSTILE[name]

    def seconds(size: int) -> float:
        text = lead + body * (size // len(body))
        best = []
        for _ in range(3):
            sanitizer = Sanitizer(NEEDLES, engine=engine_for(NEEDLES))
            began = time.process_time()
            sanitizer.feed(text, bulk=True)
            best.append(time.process_time() - began)
        return min(best)

    small, large = seconds(CHUNK), seconds(4 * CHUNK)
    assert large < 9 * small + 0.01


def test_an_unbounded_value_is_one_marker_and_its_rest_is_dropped_at_once() -> None:
    """16 MiB after `API_KEY=`."""
    sanitizer = Sanitizer(NEEDLES)
    shown = sanitizer.feed(b"API_KEY=")
    for _ in range(256):
        shown += sanitizer.feed(b"a1B2" * (CHUNK // 4), bulk=True)
    assert shown == b"API_KEY=[REDACTED:assignment]"
    assert sanitizer.feed(b" x\n") == b" x\n"


class Counting:
    """An engine that counts what it was given to search."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.is_clean = engine.is_clean
        self.searched = 0

    def scan(self, buffer: bytes, start: int) -> Findings:
        """Search as the engine does."""
        self.searched += len(buffer)
        return self._engine.scan(buffer, start)


@pytest.mark.parametrize("name", HOSTILE)
def test_single_bytes_are_linear(name: str) -> None:
    """No byte costs more because of those before it: what is searched for one, counted, does not grow."""
    lead, body = HOSTILE[name]
    size = 2000  # more than is ever held
    data = lead + body * (3 * size // len(body) + 1)
    engine = Counting(engine_for(NEEDLES))
    sanitizer = Sanitizer(NEEDLES, engine=engine)
    work = []
    for start in range(0, 3 * size, size):
        before = engine.searched
        for byte in data[start : start + size]:
            sanitizer.feed(bytes((byte,)))
            assert sanitizer.held < 1300
        work.append(engine.searched - before)
    assert work[2] < 1.05 * work[1] < 1600 * size
